package Rival::Chi::Memcached;

# CHI over memcached: what the operations of a job are on it.

use strict;
use warnings;

use parent qw(Rival::Chi Rival::Served);

use CHI::Driver::Memcached::libmemcached;
use Rival::Chi::Memory;
use Rival::Libmemcached;

# A client of a server that listens on a `socket` or by `ip`, with more `options`.
sub new {
    my ($class, $room, $listens, %options) = @_;
    my $self = $class->Rival::Served::new($room, $listens);
    $self->{room} = $room;
    $self->make(
        driver => 'Memcached::libmemcached',
        Rival::Libmemcached::options($self->address),
        %options,
    );
    return $self;
}

# The same with memory as the first level, which has the same capacity.
sub new_below_memory {
    my ($class, $room, $listens) = @_;
    my %memory = Rival::Chi::Memory::options($room->{capacity_bytes});
    return $class->new($room, $listens, l1_cache => \%memory);
}

# The client that its driver uses.
sub connected {
    my ($self) = @_;
    return $self->{cache}->memd;
}

# Empties the cache; its driver cannot.
sub fresh {
    my ($self) = @_;
    $self->Rival::Served::fresh;
    my $cache = $self->{cache};
    my $memory = $cache->can('l1_cache') && $cache->l1_cache;
    $memory->clear if $memory;
    return;
}

# The same, and not CHI's, which is its driver's.
sub clear {
    my ($self) = @_;
    return $self->Rival::Served::clear;
}

# What the server counts. CHI does not look at its answers: what it has refused is not there, and only
# the server knows why.
sub counts {
    my ($self) = @_;
    my $stats = $self->{server}->stats;
    my $refused = $stats->{store_too_large} + $stats->{store_no_memory};
    $self->{room}{fail}->('memcached refused values that CHI set', $refused) if $refused;
    my %counts = $self->Rival::Served::counts;
    # Each of both holds the capacity, and entries that the other has not.
    my $cache = $self->{cache};
    $counts{levels} = 2 if $cache->can('l1_cache') && $cache->l1_cache;
    return %counts;
}

1;
