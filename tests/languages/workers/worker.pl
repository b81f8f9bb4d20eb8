# A process in Perl that uses a shared file; README.md has what it is told, and what it answers.
use strict;
use warnings;

use Cache::Haypile;

$| = 1;
my $cache = Cache::Haypile->new(url => $ARGV[0], serializer => '');

sub unhex { my ($text)  = @_; return $text eq '-' ? '' : pack 'H*', $text }
sub tohex { my ($bytes) = @_; return length $bytes ? unpack 'H*', $bytes : '-' }

# A value that says whose it is, and how it goes on.
sub made {
    my ($key, $sequence) = @_;
    return "$key:$sequence:" . chr(97 + $sequence % 26) x ($sequence * 37 % 3000);
}

sub is_sound {
    my ($key, $value) = @_;
    return $value =~ /\A\Q$key\E:(\d+):/ && made($key, $1) eq $value;
}

sub load {
    my ($owner, $first, $count, $keys, $others) = @_;
    my @others = split /,/, $others;
    for my $sequence ($first .. $first + $count - 1) {
        my $number = $sequence % $keys;
        print "w $number $sequence\n";
        my $key = "$owner:$number";
        $cache->set($key, made($key, $sequence)) or die 'not stored';
        print "a $number $sequence\n";
        $key = $others[rand @others] . ':' . int rand $keys;
        my $value = $cache->get($key);
        print "bad ", tohex($key), ' ', tohex(substr $value, 0, 200), "\n" if defined $value && !is_sound($key, $value);
    }
    return 'end';
}

my %commands = (
    load => \&load,
    keys => sub { return join ' ', 'keys', sort map { utf8::encode($_) if utf8::is_utf8($_); tohex($_) } $cache->get_keys },
    set  => sub {
        my ($key, $value, $ttl) = @_;
        return $cache->set(unhex($key), unhex($value), $ttl ? "${ttl}ms" : 'never') ? 'ok' : 'no';
    },
    get => sub {
        my $value = $cache->get(unhex($_[0]));
        return defined $value ? 'value ' . tohex($value) : 'miss';
    },
    add    => sub { return $cache->add(unhex($_[0]), unhex($_[1])) ? 'ok' : 'no' },
    delete => sub { return $cache->remove(unhex($_[0])) ? 'ok' : 'no' },
    incr   => sub {
        my $number = $cache->incr(unhex($_[0]), $_[1]);
        return defined $number ? "number $number" : 'miss';
    },
    gets => sub {
        my ($value, $version) = $cache->gets(unhex($_[0])) or return 'miss';
        return 'versioned ' . tohex($value) . ' ' . unpack 'Q', $version;
    },
    cas     => sub { return $cache->cas(unhex($_[0]), unhex($_[1]), pack 'Q', $_[2]) ? 'ok' : 'no' },
    lease   => sub { return 'lease ' . tohex($cache->lease(unhex($_[0]))) },
    leased  => sub { return $cache->set(unhex($_[0]), unhex($_[1]), { lease => unhex($_[2]) }) ? 'ok' : 'no' },
    compute => sub {
        my ($key, $ms, $value) = @_;
        my $is_computed;
        my $found = $cache->compute(
            unhex($key),
            sub { $is_computed = 1; select undef, undef, undef, $ms / 1000; return unhex($value) },
            'never'
        );
        return ($is_computed ? 'computed ' : 'value ') . tohex($found);
    },
);

print "ready\n";
while (my $line = <STDIN>) {
    my ($command, @words) = split ' ', $line;
    my $answer = eval { $commands{$command} ? $commands{$command}->(@words) : "error unknown $command" };
    print defined $answer ? $answer : 'error ' . join(' ', split ' ', $@), "\n";
}
