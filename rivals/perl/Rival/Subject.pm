package Rival::Subject;

# A subject: the runner's description of a cache. It is a hash: `name`, `version`, `about`, `options`
# (names that may follow its own, in addition to `room`), `is_shared` (several processes can use one
# cache), `is_kept` (a later process finds the flushed entries), and `open`, which makes a client. It may
# have `module`, which the runner loads before it calls `open` and measures anything. A subject that
# takes part in tortures has `torture` as well, as Rival::Torture describes it.
#
# The runner calls `open` with a hash: `capacity_bytes`, `largest_bytes` (of a key and its value),
# `is_new`, `options`, `job`, `processes`, and `fail`, a function that counts an operation as failed, for
# the reason in its argument.
#
# A client is an object with `cache`, `get`, `set`, `delete` and possibly `get_many`: functions that the
# runner calls on the cache; `set` takes the seconds that a value is to live as a third argument. Its
# methods: `fresh`, `clear`, `flush`, `counts`, `close`; `why_not_set`, which returns the reason why
# `set` returned false, or nothing if that is not a failure. It may have `compute`, which reads a key, or
# computes its value by a function and stores it, with as few computing processes as the cache can
# manage; it returns the value and, if it was computed, whether it was stored. The client of a cache with
# a server also has `server_cpu_ns`, `server_bytes`, and `check`, which dies if the server is gone,
# because then everything misses.

use strict;
use warnings;

# Returns the syntax of a subject.
sub usage {
    my ($subject) = @_;
    return "$subject->{name}\[:" . join('', map { "$_=...," } @{ $subject->{options} }) . 'room=N]';
}

# Returns the one of `subjects` that `text` names, and its options: `NAME:OPTION=VALUE,OPTION=VALUE`.
sub find {
    my ($subjects, $text) = @_;
    my ($name, $rest) = split /:/, $text, 2;
    my ($subject) = grep { $_->{name} eq ($name // '') } @$subjects;
    if (!$subject) {
        die "unknown subject '$text' (known: ", join(', ', map { usage($_) } @$subjects), ")\n";
    }
    my %options;
    for my $option (split /,/, $rest // '') {
        my ($key, $value) = split /=/, $option, 2;
        my $is_known = grep { $_ eq $key } @{ $subject->{options} }, 'room';
        my $is_sound = $is_known && defined $value
            && ($key ne 'room' || $value =~ /\A[1-9][0-9]{0,3}\z/);
        die "invalid subject '$text'; written as ${\usage($subject)}\n" if !$is_sound;
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
