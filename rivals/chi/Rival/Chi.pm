package Rival::Chi;

# The base of all clients through CHI, whatever store CHI uses. They inherit from this in addition to the
# client of that store; `room` of the hash that they are made of is the one with which Rival::Subject
# opens them.

use strict;
use warnings;

use CHI;

# Makes the cache of these options, and takes its functions.
sub make {
    my ($self, %options) = @_;
    my $report = reporter($self->{room}{fail});
    my $cache = CHI->new(%options, on_get_error => $report, on_set_error => $report);
    # Its class is its own: CHI makes one of the driver and the options.
    $self->{$_} = $cache->can($_) for qw(get set);
    $self->{delete}   = $cache->can('remove');
    $self->{get_many} = \&get_many;
    $self->{cache}    = $cache;
    return;
}

# What CHI calls when its driver dies. It would log that to nowhere, and go on.
sub reporter {
    my ($fail) = @_;
    return sub {
        my ($message, $key, $error) = @_;
        $fail->($error =~ s/ at \S+ line [0-9]+\.?\s*\z//r);
    };
}

# Several keys by one call, which takes a list of them by reference.
sub get_many {
    my ($cache, @keys) = @_;
    return $cache->get_multi_hashref(\@keys);
}

# Removes all entries.
sub clear {
    my ($self) = @_;
    $self->{cache}->clear;
    return;
}

# Reads a key, or stores the value of `compute`. Its `busy_lock` is for an entry that has expired: the
# first process that finds it makes it last that much longer, and the others get the old value in the
# meantime. A value that is not stored is reported.
sub compute {
    my ($self, $key, $compute) = @_;
    # Times are whole seconds: one of them may be nearly over.
    my $busy_seconds = 1 + int(($self->{room}{job}->compute_ms + 999) / 1000);
    my $value = $self->{cache}->compute($key, { busy_lock => $busy_seconds }, $compute);
    return ($value, 1);
}

# Its `set` gives the value, which is false where it is empty: no failure. Failures are reported.
sub why_not_set {
    return;
}

1;
