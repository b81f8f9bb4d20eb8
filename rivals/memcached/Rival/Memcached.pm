package Rival::Memcached;

# memcached: what the operations of a job are on it, by libmemcached.

use strict;
use warnings;

use List::Util qw(max);
use Memcached::libmemcached;
use Rival::Runner;
use Rival::Server;

use constant {
    NOT_FOUND     => 16,
    MAX_KEY_BYTES => 250,
    # Its own limit of an item, and what it takes beside key and value, amply.
    ITEM_BYTES      => 1 << 20,
    ITEM_MORE_BYTES => 1 << 10,
};

sub new {
    my ($class, $room) = @_;
    my ($keys, $values) = @{ $room->{job} }{qw(keys values)};
    for my $key (@$keys) {
        next if $key =~ /\A[^\x00-\x20\x7f]{1,${\MAX_KEY_BYTES}}\z/;
        die "memcached takes keys of 1 to ${\MAX_KEY_BYTES} bytes without blanks and control characters, "
            . 'and not ' . unpack('H*', substr $key, 0, 32) . " (in hexadecimal digits)\n";
    }
    my $self = bless {
        get       => Memcached::libmemcached->can('memcached_get'),
        set       => Memcached::libmemcached->can('memcached_set'),
        delete    => Memcached::libmemcached->can('memcached_delete'),
        get_many  => Memcached::libmemcached->can('mget_into_hashref'),
        is_remote => 1,
        is_alone  => $room->{processes} == 1,
    }, $class;
    $self->{server}
        = $room->{is_new}
        ? Rival::Server->start(arguments($room->{capacity_bytes}, $keys, $values))
        : Rival::Server->join_job;
    $self->{cache} = Memcached::libmemcached->new;
    $self->{cache}->memcached_server_add_unix_socket(Rival::Server::SOCKET)
        or die $self->{cache}->errstr . "\n";
    return $self;
}

# What the server is started with.
sub arguments {
    my ($capacity_bytes, $keys, $values) = @_;
    my $mib = max 1, $capacity_bytes >> 20;
    my @arguments = ('-m', $mib);
    my $largest = ITEM_MORE_BYTES + max 0, map { length($keys->[$_]) + length($values->[$_]) } 0 .. $#$keys;
    # It refuses a limit of more than half of its memory.
    my $is_tiny = $mib * (1 << 20) < 2 * ITEM_BYTES;
    push @arguments, '-I', max $largest, $is_tiny ? ITEM_BYTES / 2 : 0 if $is_tiny || $largest > ITEM_BYTES;
    # It refuses to be root unless it is told.
    push @arguments, '-u', 'root' if $> == 0;
    return @arguments;
}

# Empties the cache.
sub fresh {
    my ($self) = @_;
    $self->{cache}->memcached_flush(0) or die $self->{cache}->errstr . "\n";
    return;
}

# What went wrong, if something did.
sub why_missed {
    my ($self) = @_;
    my $error = $self->{cache}->errstr;
    return $error == 0 || $error == NOT_FOUND ? undef : "$error";
}

sub why_not_set {
    my ($self, $key, $value) = @_;
    return sprintf 'set of %d bytes of key and value: %s', length($key) + length $value,
        $self->{cache}->errstr;
}

# How many entries there are, and the bytes that the server counts for them.
sub counts {
    my ($self) = @_;
    my %stats;
    $self->{cache}->walk_stats('', sub { $stats{ $_[0] } = $_[1]; return });
    return (entries => $stats{curr_items}, charged_bytes => $stats{bytes});
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
    $self->{cache}->memcached_quit;
    $self->{server}->leave($self->{is_alone});
    return;
}

1;
