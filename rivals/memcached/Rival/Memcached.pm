package Rival::Memcached;

# memcached on a socket: what the operations of a job are on it, by Cache::Memcached::Fast.

use strict;
use warnings;

use parent 'Rival::Served';

use Cache::Memcached::Fast;

sub new {
    my ($class, $room) = @_;
    my $self = $class->SUPER::new($room, 'socket');
    return $self->take(Cache::Memcached::Fast->new({
        servers => [$self->address],
        # It is the server that refuses what is too large.
        max_size => Rival::Served::MAX_ITEM_BYTES,
        # A request that takes long is waited for, and does not become a miss.
        io_timeout => 0,
    }));
}

# Empties the cache. This client gives what each server said.
sub fresh {
    my ($self) = @_;
    my ($is_done) = values %{ $self->{cache}->flush_all };
    die "memcached does not empty itself\n" if !$is_done;
    return;
}

1;
