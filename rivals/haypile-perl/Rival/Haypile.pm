package Rival::Haypile;

# Cache::Haypile: what the operations of a job are on it.

use strict;
use warnings;

use parent 'Rival::InFile';

# In the working directory, so that the processes of a job share it.
use constant SHARE_FILE => 'cache.haypile';

# The smallest file that there is.
use constant MIN_BYTES => 1 << 20;

sub new {
    my ($class, $room) = @_;
    my $self = bless {
        room      => $room,
        get       => Cache::Haypile->can('get'),
        set       => Cache::Haypile->can('set'),
        delete    => Cache::Haypile->can('remove'),
        get_many  => \&get_many,
        arguments => { serializer => $room->{options}{serializer} // '', where($room) },
    }, $class;
    $self->open($room->{is_new});
    return $self;
}

# What says where the cache lies.
sub where {
    my ($room) = @_;
    my $bytes = $room->{capacity_bytes} < MIN_BYTES ? MIN_BYTES : $room->{capacity_bytes};
    my $store = $room->{options}{store} // 'file';
    return (url => "memory:size=$bytes") if $store eq 'memory';
    die "store=$store: it is file or memory\n" if $store ne 'file';
    return (share_file => SHARE_FILE, cache_size => $bytes, unlink_on_exit => 0);
}

# Its name.
sub file { return SHARE_FILE }

# Opens the file; an empty one where `is_new`.
sub open {
    my ($self, $is_new) = @_;
    my %arguments = %{ $self->{arguments} };
    $arguments{init_file} = 1 if $is_new && $arguments{share_file};
    $self->{cache} = Cache::Haypile->new(%arguments);
    return;
}

# Several keys by one call.
sub get_many {
    my ($cache, @keys) = @_;
    my @found = $cache->_read_many(\@keys);
    return { map { $found[$_] ? ($keys[$_] => $cache->_decoded(${ $found[$_] })) : () } 0 .. $#keys };
}

# Reads a key, or stores the value of `compute`; of all processes, one computes.
sub compute {
    my ($self, $key, $compute) = @_;
    return ($self->{cache}->compute($key, $compute), 1);
}

# Has the system write the file.
sub flush {
    my ($self) = @_;
    $self->{cache}->flush(1);
    return;
}

# The one reason that it has.
sub why_not_set {
    my ($self, $key, $value) = @_;
    my $limits = $self->{cache}->limits;
    return sprintf 'set of %d bytes of key and value returned false; the largest value has %d bytes',
        length($key) + length($value), $limits->{value_bytes};
}

# Whether another process holds what an operation needs: nothing has changed then.
sub is_busy {
    my ($self, $error) = @_;
    return $error =~ /nothing has changed.* try again/s;
}

# How many entries there are.
sub counts {
    my ($self) = @_;
    my ($next, $entries) = ($self->{cache}->key_iterator, 0);
    $entries++ while defined $next->();
    return (entries => $entries);
}

1;
