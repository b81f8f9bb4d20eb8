package Rival::Subject;

# What the runner has to know of a cache: a subject. It is a hash: `name`, `version`, `about`, `options`
# (names that may follow its own, beside `room`), `is_shared` (several processes can use one cache),
# `is_kept` (a later process finds what was flushed), and `open`, which makes a client. Perhaps `module`,
# which is loaded before `open` is called and anything is measured. One that takes part in tortures has
# `torture` as well, as Rival::Torture describes it.
#
# `open` is called with a hash: `capacity_bytes`, `largest_bytes` (of a key and its value), `is_new`,
# `options`, `job`, `processes`, and `fail`, a function that counts an operation as failed, for the
# reason that it is called with.
#
# A client is an object with `cache`, `get`, `set`, `delete` and perhaps `get_many`: functions that
# are called on the cache; `set` takes the seconds that a value is to live as a third argument. Its
# methods: `fresh`, `clear`, `flush`, `counts`, `close`; `why_not_set`, which gives the reason that `set`
# gave false, or nothing if that is no failure; perhaps `compute`, which reads a key, or has its value
# computed by a function and stores it, and gives the value and, where it was computed, whether it was
# stored: so that as few processes compute as the cache can manage; and those of a cache with a server:
# `server_cpu_ns`, `server_bytes`, and `check`, which dies if the server is gone, for then everything
# misses.

use strict;
use warnings;

# How a subject is written.
sub usage {
    my ($subject) = @_;
    return "$subject->{name}\[:" . join('', map { "$_=...," } @{ $subject->{options} }) . 'room=N]';
}

# The one of `subjects` that is asked for, and its options: `NAME:OPTION=VALUE,OPTION=VALUE`.
sub find {
    my ($subjects, $text) = @_;
    my ($name, $rest) = split /:/, $text, 2;
    my ($subject) = grep { $_->{name} eq ($name // '') } @$subjects;
    if (!$subject) {
        my $verb = @$subjects == 1 ? 'is' : 'are';
        die "there is no subject '$text' here; there $verb ", join(', ', map { usage($_) } @$subjects),
            "\n";
    }
    my %options;
    for my $option (split /,/, $rest // '') {
        my ($key, $value) = split /=/, $option, 2;
        my $is_known = grep { $_ eq $key } @{ $subject->{options} }, 'room';
        my $is_sound = $is_known && defined $value
            && ($key ne 'room' || $value =~ /\A[1-9][0-9]{0,3}\z/);
        die "'$text' is no subject; written as ${\usage($subject)}\n" if !$is_sound;
        $options{$key} = $value;
    }
    return ($subject, \%options);
}

# Loads what the subject needs and others may not.
sub load {
    my ($subject) = @_;
    return if !$subject->{module};
    my $file = "$subject->{module}.pm" =~ s{::}{/}gr;
    require $file;
    return;
}

1;
