package Rival::Chi::Memory;

# CHI in the memory of the process: what the operations of a job are on it.

use strict;
use warnings;

use parent 'Rival::Chi';

use CHI::Driver::Memory;

sub new {
    my ($class, $room) = @_;
    my $self = bless { room => $room }, $class;
    $self->fresh;
    return $self;
}

# The options of such a cache.
sub options {
    my ($capacity_bytes) = @_;
    return (driver => 'Memory', global => 0, max_size => $capacity_bytes);
}

# Replaces the cache by a new, empty one.
sub fresh {
    my ($self) = @_;
    $self->{cache} = undef;
    $self->make(options($self->{room}{capacity_bytes}));
    return;
}

# How many entries there are, and the size by which it evicts.
sub counts {
    my ($self) = @_;
    my @keys = $self->{cache}->get_keys;
    return (entries => scalar @keys, charged_bytes => $self->{cache}->get_size);
}

# There is nothing to leave.
sub close {
    return;
}

1;
