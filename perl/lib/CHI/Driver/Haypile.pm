package CHI::Driver::Haypile;

# The documentation is at the end.

use strict;
use warnings;

our $VERSION = '0.001000';

use Carp ();
use File::Path ();
use File::Spec;
use Moo;

use Cache::Haypile;
use CHI::CacheObject;
use CHI::Constants qw(CHI_Max_Time);
use CHI::Util qw(parse_duration);
use Log::Any qw($log);

extends 'CHI::Driver';

has url      => (is => 'ro');
has root_dir => (is => 'ro', default => sub { File::Spec->catdir(File::Spec->tmpdir, "chi-driver-haypile-$<") });
has cache_size      => (is => 'ro', default => sub { '64m' });
has trusts_others   => (is => 'ro');
has haypile         => (is => 'lazy', init_arg => undef);
has _key_prefix     => (is => 'lazy', init_arg => undef);

# The bytes before a value: when it was made and expires, and what was done to it (CHI::CacheObject).
my ($METADATA, $METADATA_BYTES) = ('LLLCC', 14);
my $IS_SERIALIZED = CHI::CacheObject::T_SERIALIZED;

sub BUILD {
    my ($self) = @_;
    $self->haypile;
    return;
}

# Between a namespace and a key. No name of a namespace has it, for they are escaped.
my $SEPARATOR = "\0";
# Behind a key, the name of the right to compute it, which is never an entry.
my $LOCK = "\0lock";

sub _build__key_prefix {
    my ($self) = @_;
    return _escaped($self->namespace) . $SEPARATOR;
}

sub _build_haypile {
    my ($self) = @_;
    my %where = (url => $self->url);
    if (!defined $where{url}) {
        # Values are Storables, which run code: nobody else may put some there.
        File::Path::mkpath($self->root_dir, 0, 0700) if !-d $self->root_dir;
        %where = (
            share_file => File::Spec->catfile($self->root_dir, 'cache.haypile'),
            cache_size => $self->cache_size,
        );
    }
    my $cache = Cache::Haypile->new(
        %where,
        serializer     => '',
        unlink_on_exit => 0,
        key_prefix     => $self->_key_prefix,
        trusts_others  => $self->trusts_others,
    );
    return $cache if $self->trusts_others || ref($self->serializer) ne 'CHI::Serializer::Storable';
    my $others = $cache->_text(2);
    return $cache if $others eq '';
    Carp::croak("others can write to $others, and values of the serializer Storable run code when they are read:"
            . " use serializer => 'JSON', or say trusts_others => 1");
}

sub _escaped {
    my ($name) = @_;
    utf8::encode($name) if utf8::is_utf8($name);
    $name =~ s/([%\0])/sprintf '%%%02X', ord $1/ge;
    return $name;
}

sub _unescaped {
    my ($name) = @_;
    $name =~ s/%([0-9A-F]{2})/chr hex $1/ge;
    return $name;
}

# What every driver has.

sub fetch {
    my ($self, $key) = @_;
    my ($data) = $self->{haypile}->_read($key);
    return $data;
}

sub store {
    my ($self, $key, $data, $expires_in) = @_;
    my $ttl = -1;
    if (defined $expires_in) {
        return $self->{haypile}->_remove($key) if $expires_in <= 0;
        $ttl = int($expires_in * 1000) + 1;
    }
    $self->{haypile}->_write($key, $data, $ttl)
        or die sprintf "haypile does not take a key of %d bytes with a value of %d bytes: the limits are %d and %d\n",
        length $key, length $data, @{ $self->{haypile}->limits }{qw(key_bytes value_bytes)};
    delete $self->{busy}{$key} if $self->{busy};
    return;
}

sub remove {
    my ($self, $key) = @_;
    $self->{haypile}->_remove($self->transform_key($key));
    return;
}

sub clear {
    my ($self, @arguments) = @_;
    die 'clear takes no arguments' if @arguments;
    $self->{haypile}->clear;
    return;
}

sub get_keys_iterator {
    my ($self) = @_;
    my ($keys, $prefix, $cache) = ($self->{haypile}->_keys, $self->_key_prefix, $self->{haypile});
    return sub {
        while (defined(my $key = $keys->next)) {
            next if index($key, $prefix) != 0;
            $key = substr $key, length $prefix;
            return $key if $cache->_exists($key);
        }
        return undef;
    };
}

sub get_keys {
    my ($self) = @_;
    my ($next, @keys) = $self->get_keys_iterator;
    while (defined(my $key = $next->())) { push @keys, $key }
    return @keys;
}

sub get_namespaces {
    my ($self) = @_;
    my ($keys, %names) = $self->{haypile}->_keys;
    while (defined(my $key = $keys->next)) {
        my $end = index $key, $SEPARATOR;
        $names{ substr $key, 0, $end } = 1 if $end >= 0;
    }
    return sort map { _unescaped($_) } keys %names;
}

sub fetch_multi_hashref {
    my ($self, $keys) = @_;
    my @found = $self->{haypile}->_read_many($keys);
    return { map { ($keys->[$_] => $found[$_] ? ${ $found[$_] } : undef) } 0 .. $#$keys };
}

# The common case of get(), without the objects of CHI: a plain key, no parameters, no subcaches, no statistics and no log.
sub get {
    my ($self, $key) = @_;
    return shift->_get_with_all(@_)
        if @_ != 2
        || !defined $key
        || ref $key
        || utf8::is_utf8($key)
        || length $key > $self->{max_key_length}
        || $self->{ns_stats}
        || $log->is_debug;
    my $data = eval { ($self->{haypile}->_read($key))[0] };
    if (!defined $data) {
        return shift->SUPER::get(@_) if $@;
        return undef;
    }
    my (undef, $early, $end, $form) = unpack $METADATA, $data;
    return shift->SUPER::get(@_) if $end != CHI_Max_Time && ($CHI::Driver::Test_Time || time) >= $early;
    return substr $data, $METADATA_BYTES if $form == 0;
    return $self->{serializer}->deserialize(substr $data, $METADATA_BYTES) if $form == $IS_SERIALIZED;
    return shift->SUPER::get(@_);
}

# A get() with any parameters. With `busy_lock`, CHI has one caller renew an entry that has expired; here one caller also
# makes an entry that is absent, and the others wait for it, for as long as the lock holds.
sub _get_with_all {
    my ($self, $key, %parameters) = @_;
    my $own = defined $key && defined $parameters{busy_lock} ? $self->transform_key($key) : undef;
    return $self->SUPER::get($key, %parameters)
        if !defined $own || $parameters{obj} || $self->{haypile}->_exists($own);
    my $seconds = parse_duration($parameters{busy_lock});
    # In a child of a fork, they are those of its parent.
    @$self{qw(busy busy_pid)} = ({}, $$) if !$self->{busy} || $self->{busy_pid} != $$;
    if (my $held = $self->{busy}{$own}) {
        # This process is the one that makes it.
        return $self->SUPER::get($key, %parameters) if $held->[1] > time;
        delete $self->{busy}{$own};
    }
    my (undef, $claim) = $self->{haypile}->_claim($own . $LOCK, -1, $seconds * 1000);
    $self->{busy}{$own} = [$claim, time + $seconds] if $claim && !$self->{haypile}->_exists($own);
    return $self->SUPER::get($key, %parameters);
}

# One caller of all processes computes, and the others get its value.
sub compute {
    my $self = shift;
    my ($key, @rest) = @_;
    my ($code, $options) = ref $rest[0] eq 'CODE' ? @rest[0, 1] : @rest[1, 0];
    Carp::croak('must specify key and code') if !defined $key || !defined $code;
    my $own = $self->transform_key($key);
    # Within a computation of the same key, nobody would end a wait.
    return $self->SUPER::compute(@_) if $self->{computing}{$own};
    my %reading = ref $options eq 'HASH' && $options->{expire_if} ? (expire_if => $options->{expire_if}) : ();
    my $value = $self->get($key, %reading);
    my $claim;
    if (!defined $value) {
        (undef, $claim) = $self->{haypile}->_claim($own . $LOCK, -1);
        local $self->{computing}{$own} = 1;
        # It looks again: the one before may have computed it.
        return $self->SUPER::compute(@_);
    }
    return wantarray ? (ref $value eq 'ARRAY' ? @$value : $value) : $value;
}

1;

__END__

=encoding utf8

=head1 NAME

CHI::Driver::Haypile - CHI on Haypile's caches: one file for all processes, memory, memcached, Redis

=head1 SYNOPSIS

    use CHI;

    my $cache = CHI->new(driver => 'Haypile', root_dir => '/var/cache/app', cache_size => '256m');
    my $user  = $cache->compute("user:$id", '10 minutes', sub { load_user($id) });

    my $shared = CHI->new(driver => 'Haypile', url => 'redis://127.0.0.1:6379/0', serializer => 'JSON');

=head1 DESCRIPTION

Everything that L<CHI> says holds. CHI's own tests of drivers pass, those of subcaches among them.

=over 4

=item *

All namespaces are in one file, which all processes share. C<get_namespaces> lists those that have entries.

=item *

C<get> of a plain key makes none of CHI's objects; with parameters, subcaches, statistics or a log that is on, it does what CHI does.

=item *

C<get_multi_arrayref> and C<get_multi_hashref> are one call of the cache.

=item *

C<compute>: one caller of all processes computes a value, whether the entry is absent or has expired, and the others wait for it. A
caller that has waited for 30 seconds computes itself. A process that dies holds nothing.

=item *

C<busy_lock> holds for entries that are absent too: one caller gets undef, and is to C<set> the entry; the others wait for that, for as long as the lock
says.

=item *

C<expires_on_backend> makes entries expire in the cache, to the millisecond.

=back

=head1 CONSTRUCTOR

=over 4

=item root_dir

The directory of the file, F<cache.haypile>. The default is F<chi-driver-haypile-UID> in the directory of temporary files. It is made for this user
alone.

    my $cache = CHI->new(driver => 'Haypile', root_dir => '/var/cache/app');

=item cache_size

The size of a new file: bytes, or C<512k>, C<64m> (the default), C<2g>. An existing file keeps its own.

    my $cache = CHI->new(driver => 'Haypile', root_dir => '/var/cache/app', cache_size => '1g');

=item url

Any cache of Haypile in the place of the file, as for L<Cache::Haypile>.

    my $cache = CHI->new(driver => 'Haypile', url => 'memory:size=64MiB');

=item trusts_others

CHI's values are Storables, which run code when they are read. So a cache that other users can write, such as a server, is refused unless
the serializer is another one, or this option says that those users are trusted.

    my $cache = CHI->new(driver => 'Haypile', url => 'memcached://127.0.0.1:11211', trusts_others => 1);

=back

=head1 METHODS

=head2 haypile

Returns the L<Cache::Haypile> below, for statistics and warnings.

    print $cache->haypile->url, "\n";
    warn $_ for $cache->haypile->warnings;

=head1 SEE ALSO

L<CHI>, L<Cache::Haypile>

=cut
