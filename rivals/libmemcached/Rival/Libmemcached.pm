package Rival::Libmemcached;

# memcached: what the operations of a job are on it, by Cache::Memcached::libmemcached.

use strict;
use warnings;

use parent 'Rival::Served';

use Cache::Memcached::libmemcached;

# A client of a server that listens on a `socket` or by `ip`.
sub new {
    my ($class, $room, $listens) = @_;
    my $self = $class->SUPER::new($room, $listens);
    return $self->take(Cache::Memcached::libmemcached->new({ options($self->address) }));
}

# What the client of a server is made with.
sub options {
    my ($address) = @_;
    # A request that takes longer than 5 seconds would become a miss: it is waited for.
    return (servers => [$address], behavior_poll_timeout => -1);
}

sub why_not_set {
    my ($self, $key, $value) = @_;
    my $reason = $self->{cache}->errstr // 'no reason given';
    return $self->SUPER::why_not_set($key, $value) . ": $reason";
}

1;
