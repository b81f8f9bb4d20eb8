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
    $self->{$_} = Cache::Memcached::libmemcached->can($_) for qw(get set delete);
    $self->{get_many} = Cache::Memcached::libmemcached->can('get_multi');
    $self->{cache} = Cache::Memcached::libmemcached->new({ options($self->address) });
    return $self;
}

# What the client of a server is made with.
sub options {
    my ($address) = @_;
    # A request that takes longer than 5 seconds would become a miss: it is waited for.
    return (servers => [$address], behavior_poll_timeout => -1);
}

# Empties the cache.
sub fresh {
    my ($self) = @_;
    $self->{cache}->flush_all or die 'memcached does not empty itself: ', $self->errstr, "\n";
    return;
}

sub why_not_set {
    my ($self, $key, $value) = @_;
    return $self->SUPER::why_not_set($key, $value) . ': ' . $self->errstr;
}

# What the client says of its last failure.
sub errstr {
    my ($self) = @_;
    return $self->{cache}->errstr // 'no reason given';
}

# Leaves the server.
sub close {
    my ($self) = @_;
    $self->{cache}->disconnect_all;
    return $self->SUPER::close;
}

1;
