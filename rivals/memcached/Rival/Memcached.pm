package Rival::Memcached;

# memcached: what the operations of a job are on it, by Cache::Memcached::Fast.

use strict;
use warnings;

use Cache::Memcached::Fast;
use List::Util qw(max);
use Rival::Runner;
use Rival::Server;

use constant {
    MAX_KEY_BYTES => 250,
    # The server's own limit of an item, the most that it can be, and what it takes beside key and
    # value, amply.
    ITEM_BYTES      => 1 << 20,
    MAX_ITEM_BYTES  => 1 << 30,
    ITEM_MORE_BYTES => 1 << 10,
};

sub new {
    my ($class, $room) = @_;
    my ($keys, $values) = @{ $room->{job} }{qw(keys values)};
    for my $key (@$keys) {
        next if $key =~ /\A[^\x00-\x20\x7f]{1,${\MAX_KEY_BYTES}}\z/;
        die "memcached takes keys of 1 to ${\MAX_KEY_BYTES} bytes without blanks and control "
            . 'characters, and not ' . unpack('H*', substr $key, 0, 32) . " (in hexadecimal digits)\n";
    }
    my $self = bless {
        get      => Cache::Memcached::Fast->can('get'),
        set      => Cache::Memcached::Fast->can('set'),
        delete   => Cache::Memcached::Fast->can('delete'),
        get_many => Cache::Memcached::Fast->can('get_multi'),
        is_alone => $room->{processes} == 1,
    }, $class;
    $self->{server}
        = $room->{is_new}
        ? Rival::Server->start(arguments($room->{capacity_bytes}, $keys, $values))
        : Rival::Server->join_job;
    $self->{cache} = Cache::Memcached::Fast->new({
        servers => [Rival::Server::SOCKET],
        # It is the server that refuses what is too large.
        max_size => MAX_ITEM_BYTES,
        # A request that takes long is waited for, and does not become a miss.
        io_timeout => 0,
    });
    return $self;
}

# What the server is started with.
sub arguments {
    my ($capacity_bytes, $keys, $values) = @_;
    my $mib = max 1, $capacity_bytes >> 20;
    my @arguments = ('-m', $mib);
    my @sizes = map { length($keys->[$_]) + length($values->[$_]) } 0 .. $#$keys;
    my $largest = ITEM_MORE_BYTES + max(0, @sizes);
    # It refuses a limit of more than half of its memory.
    my $is_tiny = $mib * (1 << 20) < 2 * ITEM_BYTES;
    push @arguments, '-I', max($largest, $is_tiny ? ITEM_BYTES / 2 : 0)
        if $is_tiny || $largest > ITEM_BYTES;
    # It refuses to be root unless it is told.
    push @arguments, '-u', 'root' if $> == 0;
    return @arguments;
}

# Empties the cache.
sub fresh {
    my ($self) = @_;
    my ($is_done) = values %{ $self->{cache}->flush_all };
    die "memcached does not empty itself\n" if !$is_done;
    return;
}

sub why_not_set {
    my ($self, $key, $value) = @_;
    return sprintf 'set of %d bytes of key and value was refused', length($key) + length $value;
}

# How many entries there are, and the bytes that the server counts for them.
sub counts {
    my ($self) = @_;
    my $stats = $self->{server}->stats;
    return (entries => $stats->{curr_items}, charged_bytes => $stats->{bytes});
}

# That the server is there: where it is not, the client says that nothing was found.
sub check {
    my ($self) = @_;
    $self->{server}->stats;
    return;
}

# The processor time of the server so far.
sub server_cpu_ns {
    my ($self) = @_;
    return $self->{server}->cpu_ns;
}

# The memory of the server.
sub server_bytes {
    my ($self) = @_;
    my ($resident) = Rival::Runner::memory($self->{server}{pid});
    return $resident;
}

# Leaves the server, which ends with the last process that uses it.
sub close {
    my ($self) = @_;
    $self->{cache}->disconnect_all;
    $self->{server}->leave($self->{is_alone});
    return;
}

1;
