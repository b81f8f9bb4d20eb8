package Rival::Served;

# What clients of a memcached of the job's own have in common: all but how the client is made. Those that
# inherit set `cache` and its functions, by `take` if it is the client itself; or else they say what
# `connected` is.

use strict;
use warnings;

use List::Util qw(max);
use Rival::Runner;
use Rival::Server;

use constant {
    MAX_KEY_BYTES => 250,
    # The server's default limit of an item, the largest possible limit, and a generous bound of the
    # bytes that an item takes in addition to key and value.
    ITEM_BYTES      => 1 << 20,
    MAX_ITEM_BYTES  => 1 << 30,
    ITEM_MORE_BYTES => 1 << 10,
};

# Starts the server, which listens on a `socket` or by `ip`, or joins the one of process 0.
sub new {
    my ($class, $room, $listens) = @_;
    my ($keys, $values) = @{ $room->{job} }{qw(keys values)};
    for my $key (@$keys) {
        next if $key =~ /\A[^\x00-\x20\x7f]{1,${\MAX_KEY_BYTES}}\z/;
        die "memcached takes keys of 1 to ${\MAX_KEY_BYTES} bytes without blanks and control "
            . 'characters, and not ' . unpack('H*', substr $key, 0, 32) . " (in hexadecimal digits)\n";
    }
    my $server
        = $room->{is_new}
        ? Rival::Server->start($listens, arguments($room->{capacity_bytes}, $keys, $values))
        : Rival::Server->join_job($listens);
    return bless { server => $server, is_alone => $room->{processes} == 1 }, $class;
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

# Takes a client of the server as the cache, and its functions.
sub take {
    my ($self, $client) = @_;
    $self->{$_} = $client->can($_) for qw(get set delete);
    $self->{get_many} = $client->can('get_multi');
    $self->{cache} = $client;
    return $self;
}

# The client that is connected to the server.
sub connected {
    my ($self) = @_;
    return $self->{cache};
}

# Where a client finds the server.
sub address {
    my ($self) = @_;
    return $self->{server}->address;
}

# Empties the cache.
sub fresh {
    my ($self) = @_;
    my $client = $self->connected;
    return if $client->flush_all;
    die 'memcached does not empty itself: ', $client->errstr // 'no reason given', "\n";
}

# The same: the server stays.
sub clear {
    my ($self) = @_;
    return $self->fresh;
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
    $self->connected->disconnect_all;
    $self->{server}->leave($self->{is_alone});
    return;
}

1;
