package Rival::Chi;

# What all clients by CHI have in common, whatever CHI stores in. They inherit from this beside the
# client of that store; `fail` of the hash that they are made of is that of Rival::Subject.

use strict;
use warnings;

use CHI;

# Makes the cache of these options, and takes its functions.
sub make {
    my ($self, %options) = @_;
    my $report = reporter($self->{fail});
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

# Its `set` gives the value, which is false where it is empty: no failure. Failures are reported.
sub why_not_set {
    return;
}

1;
