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
use Log::Any ();
use Time::HiRes ();

extends 'CHI::Driver';

has url      => (is => 'ro');
has root_dir => (is => 'ro', default => sub { File::Spec->catdir(File::Spec->tmpdir, "chi-driver-haypile-$<") });
has cache_size      => (is => 'ro', default => sub { '64m' });
has trusts_others   => (is => 'ro');
has haypile         => (is => 'lazy', init_arg => undef);
has _key_prefix     => (is => 'lazy', init_arg => undef);
has _locks          => (is => 'lazy', init_arg => undef);

# The bytes before a value: when it was made and expires, and what was done to it (CHI::CacheObject).
my ($METADATA, $METADATA_BYTES) = ('LLLCC', 14);
my $IS_SERIALIZED = CHI::CacheObject::T_SERIALIZED;

# The logger of all drivers, as CHI documents it.
my $log = Log::Any->get_logger(category => 'CHI::Driver');

# Between a namespace and a key. No name of a namespace has it, for they are escaped, and none is empty.
my $SEPARATOR = "\0";
# Before the names of the rights to compute and to make an entry. No namespace begins so.
my $LOCKS = "\0lock\0";

# What this process computes, and what it is to make (busy_lock): by cache and key, for all objects of a cache.
my (%computing, %making);

# A longer key is digested, as CHI does for every driver that says so.
has '+max_key_length' => (default => sub { 60_000 });
# The longest with its namespace, and room for the names of its locks.
my $LONGEST = 65_000;

sub BUILD {
    my ($self, $parameters) = @_;
    # Among all caches of this process.
    $self->{cache_name} = join $SEPARATOR, $self->haypile->url, $self->_key_prefix;
    my $most = $LONGEST - length $self->_key_prefix;
    $self->{max_key_length} = $most if $self->{max_key_length} > $most && !exists $parameters->{max_key_length};
    return;
}

sub _build__key_prefix {
    my ($self) = @_;
    return _escaped($self->namespace) . $SEPARATOR;
}

sub _build_haypile {
    my ($self) = @_;
    my %where = (url => $self->url);
    if (!defined $where{url}) {
        # Nobody else may put values there.
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
    $cache->_check_writers('this serializer can', "serializer => 'JSON'")
        if !$self->trusts_others && !_is_safe($self->serializer);
    return $cache;
}

# Whether reading a value runs nothing. CHI makes a Data::Serializer of most names.
sub _is_safe {
    my ($serializer) = @_;
    my $name = ref $serializer eq 'CHI::Serializer::JSON' ? 'JSON'
        : ref $serializer eq 'Data::Serializer'           ? $serializer->serializer
        :                                                   '';
    return $name =~ /\AJSON(?:::\w+)*\z/;
}

sub _build__locks {
    my ($self) = @_;
    return $self->{haypile}->_with_prefix($LOCKS . $self->_key_prefix);
}

# Names of namespaces as parts of keys.

sub _escaped {
    my ($name) = @_;
    $name = Cache::Haypile::_name($name);
    return '%' if $name eq '';
    $name =~ s/([%\0])/sprintf '%%%02X', ord $1/ge;
    return $name;
}

sub _unescaped {
    my ($name) = @_;
    return '' if $name eq '%';
    $name =~ s/%([0-9A-F]{2})/chr hex $1/ge;
    return Cache::Haypile::_key_text($name);
}

# What every driver has.

sub fetch {
    my ($self, $key) = @_;
    my ($data) = $self->{haypile}->_read($key);
    return $data;
}

sub store {
    my ($self, $key, $data, $expires_in) = @_;
    $self->_has_made($key);
    my $ttl = -1;
    if (defined $expires_in) {
        return $self->{haypile}->_remove($key) if $expires_in <= 0;
        $ttl = int($expires_in * 1000) + 1;
    }
    $self->{haypile}->_write($key, $data, $ttl)
        or die sprintf "haypile does not take a key of %d bytes with a value of %d bytes: the limits are %d and %d\n",
        length $key, length $data, @{ $self->{haypile}->limits }{qw(key_bytes value_bytes)};
    return;
}

# CHI has transformed the key.
sub remove {
    my ($self, $key) = @_;
    $self->_has_made($key);
    $self->{haypile}->_remove($key);
    return;
}

sub clear {
    my ($self, @arguments) = @_;
    die 'clear takes no arguments' if @arguments;
    $self->{haypile}->clear;
    return;
}

sub get_keys_iterator { return $_[0]{haypile}->_own_keys }

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
        $names{ substr $key, 0, $end } = 1 if $end > 0;
    }
    return sort map { _unescaped($_) } keys %names;
}

sub fetch_multi_hashref {
    my ($self, $keys) = @_;
    my @found;
    if (!eval { @found = $self->{haypile}->_read_many($keys); 1 }) {
        $self->_handle_get_error($@, join ', ', @$keys);
        return { map { $_ => undef } @$keys };
    }
    return { map { ($keys->[$_] => $found[$_] ? ${ $found[$_] } : undef) } 0 .. $#$keys };
}

# Whether this object's class is the driver's own where get() depends on it: roles and subclasses may change it.
sub _is_plain {
    my ($self) = @_;
    for my $method (qw(fetch get_object unpack_from_data transform_key cache_object_class)) {
        my $own = __PACKAGE__->can($method);
        return 0 if $self->can($method) != $own;
    }
    return 1;
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
        || !($self->{is_plain}{ ref $self } //= $self->_is_plain)
        || $log->is_debug;
    my $data = eval { ($self->{haypile}->_read($key))[0] };
    if (!defined $data) {
        return shift->SUPER::get(@_) if $@;
        return undef;
    }
    my (undef, $early, $end, $form) = unpack $METADATA, $data;
    return shift->SUPER::get(@_) if $end != CHI_Max_Time && ($CHI::Driver::Test_Time || time) >= $early;
    return substr $data, $METADATA_BYTES if $form == 0;
    return scalar $self->{serializer}->deserialize(substr $data, $METADATA_BYTES) if $form == $IS_SERIALIZED;
    return shift->SUPER::get(@_);
}

# The name of a key among all caches of this process.
sub _name {
    my ($self, $key) = @_;
    return join $SEPARATOR, Cache::Haypile::_here(), $self->{cache_name}, $key;
}

# A get() with any parameters. With `busy_lock`, CHI has one caller renew an entry that has expired; here one caller also
# makes an entry that is absent, and the others wait for it, for as long as the lock holds.
sub _get_with_all {
    my ($self, $key, %parameters) = @_;
    if (defined $key && defined $parameters{busy_lock} && !$parameters{obj}) {
        my $own = $self->transform_key($key);
        _try(sub { $self->_wait_for_maker($own, parse_duration($parameters{busy_lock})) });
    }
    return $self->SUPER::get($key, %parameters);
}

# Does something that can fail because the cache does. CHI reports that when it reads, as for every driver; all else that dies, such as a
# signal's handler, goes on.
sub _try {
    my ($code) = @_;
    return if eval { $code->(); 1 };
    die $@ if ref $@ || $@ !~ /\Athis cache is closed/ && index($@, Cache::Haypile::_last_error()) != 0;
    return;
}

# Waits until an entry is there, or this process is to make it.
sub _wait_for_maker {
    my ($self, $own, $seconds) = @_;
    my $name = $self->_name($own);
    return if $computing{$name} || ($making{$name} // 0) > Time::HiRes::time() || $seconds <= 0;
    my ($end, $nap) = (Time::HiRes::time() + $seconds, 0.001);
    while (!$self->{haypile}->_exists($own)) {
        my $outcome = $self->_locks->_add($own, $$, int($seconds * 1000) + 1);
        if ($outcome > 0) {
            # Forgotten when their locks have ended.
            my $now = Time::HiRes::time();
            if (keys %making > 1000) { delete @making{ grep { $making{$_} <= $now } keys %making } }
            $making{$name} = $now + $seconds;
        }
        my $left = $end - Time::HiRes::time();
        return if $outcome != 0 || $left <= 0;
        Time::HiRes::sleep($nap < $left ? $nap : $left);
        $nap *= 2 if $nap < 0.05;
    }
    return;
}

# Ends the lock of an entry that this process was to make.
sub _has_made {
    my ($self, $own) = @_;
    return if !%making;
    # One that has ended may be another process's by now.
    my $end = delete $making{ $self->_name($own) } or return;
    $self->_locks->_remove($own) if $end > Time::HiRes::time();
    return;
}

# One caller of all processes computes, and the others get its value.
sub compute {
    my $self = shift;
    my ($key, @rest) = @_;
    my ($code, $options) = ref $rest[0] eq 'CODE' ? @rest[0, 1] : @rest[1, 0];
    Carp::croak('must specify key and code') if !defined $key || !defined $code;
    my $own  = $self->transform_key($key);
    my $name = $self->_name($own);
    # Within a computation of the same key, nobody would end a wait. A value that is there needs none.
    my $is_needed = !$computing{$name} && !$self->_has_valid($own);
    my $claim;
    # Not the name of a lock, which is an entry.
    _try(sub { (undef, $claim) = $self->_locks->_claim("$own\0compute", -1) }) if $is_needed;
    local $computing{$name} = 1 if $is_needed;
    # It looks again: the one before may have computed it.
    return $self->SUPER::compute(@_);
}

# Whether there is an entry that has not expired. No statistics count it.
sub _has_valid {
    my ($self, $own) = @_;
    my ($above) = $self->has_subcaches ? $self->l1_cache : ();
    return 1 if $above && eval { $above->is_valid($own) };
    my $object = eval { $self->get_object($own) };
    return $object && !$object->is_expired;
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

C<get> of a plain key makes none of CHI's objects; with parameters, subcaches, statistics, a log that is on, or a role or subclass that changes how values are fetched, it does
what CHI does.

=item *

C<get_multi_arrayref> and C<get_multi_hashref> are one call of the cache.

=item *

C<compute>: one caller of all processes computes a value, whether the entry is absent or has expired, and the others wait for it. A
caller that has waited for 30 seconds computes itself. A process that dies holds nothing. Where the code returns undef, which CHI does not
store, the others compute one after another. An entry that C<expire_if> finds expired is computed without waiting.

=item *

C<busy_lock> holds for entries that are absent too: one caller gets undef, and is to C<set> the entry; the others wait for that, for as long as the lock
says.

=item *

C<expires_on_backend> makes entries expire in the cache, to the millisecond.

=item *

A key of more than 60,000 bytes is digested (C<max_key_length>); less where the name of the namespace is long.

=item *

On memcached, which cannot list its keys, C<get_keys>, C<clear>, C<purge> and C<get_namespaces> die with that.

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

CHI's values are Storables, which run code when they are read, and so do most other serializers. So a cache that other users can write, such as a server,
is refused unless the serializer is C<JSON>, or this option says that those users are trusted.

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
