# What the driver of CHI does beyond CHI's own tests.
use strict;
use warnings;
use lib 't/lib';
use Test::More;

BEGIN { plan skip_all => 'CHI is not installed: apt-get install libchi-perl' if !eval { require CHI; 1 } }

use Haypile::Test qw(new_file in_child wait_for dies_with server);
use Time::HiRes qw(time sleep);

my $root = new_file();
my @strict = (on_get_error => 'die', on_set_error => 'die');
sub new_chi { return CHI->new(driver => 'Haypile', root_dir => $root, cache_size => '8m', @strict, @_) }

my $cache = new_chi();
is((stat $root)[2] & 07777, 0700, 'the directory is of this user alone');
$cache->set('a', 'plain');
$cache->set('b', { c => [1, 2] });
$cache->set('d', "wide \x{263A}");
is_deeply([map { $cache->get($_) } qw(a b d e)], ['plain', { c => [1, 2] }, "wide \x{263A}", undef], 'values');
is_deeply($cache->get_multi_hashref(['a', 'e', 'b']), { a => 'plain', e => undef, b => { c => [1, 2] } }, 'many in one call');
my $other = new_chi(namespace => "odd % name\0");
$other->set('a', 'other');
is($cache->get('a'), 'plain', 'namespaces in one file are apart');
is_deeply([$cache->get_namespaces], ['Default', "odd % name\0"], 'and listed');
$other->clear;
is_deeply([[sort $cache->get_keys], [$other->get_keys]], [[qw(a b d)], []], 'and cleared apart');

my $backend = new_chi(namespace => 'backend', expires_on_backend => 1);
$backend->set('short', 1, '1 hour');
$backend->set('none',  1, { expires_in => 0 });
is_deeply([$backend->get('short'), $backend->get('none')], [1, undef], 'expires_on_backend');
dies_with(sub { $cache->set('big', 'x' x 9_000_000) }, qr/error during cache set.*haypile does not take a key of 3 bytes/s, 'too large');
SKIP: {
    my $server = server('memcached') or skip 'memcached is not installed', 2;
    dies_with(sub { CHI->new(driver => 'Haypile', url => $server) }, qr/others can write to .*JSON/s, 'Storables where others write');
    my $json = CHI->new(driver => 'Haypile', url => $server, serializer => 'JSON', @strict);
    $json->set('a', [1, { b => 2 }]);
    is_deeply($json->get('a'), [1, { b => 2 }], 'JSON there');
}

# Once for all processes, whether the entry is absent or has expired.
my $log = new_file();
sub slow {
    my ($seconds) = @_;
    open my $file, '>>', $log or die $!;
    syswrite $file, "$$\n";
    sleep $seconds;
    return "by $$";
}
sub runs { open my $file, '<', $log or return 0; my @lines = <$file>; return scalar @lines }

for my $state ('absent', 'expired') {
    unlink $log;
    local $CHI::Driver::Test_Time = time - 100;
    $cache->set('crowd', 'old', 10) if $state eq 'expired';
    undef $CHI::Driver::Test_Time;
    my @children = map { in_child(sub { $cache->compute('crowd', '1h', sub { slow(0.3) }) =~ /^by/ or die }) } 1 .. 5;
    is(scalar(grep { !wait_for($_) } @children), 0, "compute of a crowd, $state");
    is(runs(), 1, 'one computes');
    $cache->remove('crowd');
}
is_deeply([$cache->compute('list', undef, sub { return (1, 2, 3) })], [1, 2, 3], 'lists');
is_deeply([$cache->compute('list', undef, sub { die })], [1, 2, 3], 'again');
is($cache->compute('in', undef, sub { return $cache->compute('in', undef, sub { return 'inner' }) }), 'inner', 'within itself');
dies_with(sub { $cache->compute('dies', undef, sub { die "sub\n" }) }, qr/^sub$/, 'a sub that dies');
is($cache->compute('dies', undef, sub { return 1 }), 1, 'holds nothing');

# busy_lock, for an entry that is absent.
unlink $log;
my @children = map {
    in_child(
        sub {
            my $value = $cache->get('busy', busy_lock => '30s');
            return 1 if defined $value && $value eq 'made';
            defined $value and die "a wrong value: $value";
            slow(0.2);
            $cache->set('busy', 'made');
        }
    )
} 1 .. 5;
is(scalar(grep { !wait_for($_) } @children), 0, 'busy_lock of a crowd');
is(runs(), 1, 'one makes the entry');
$cache->remove('busy');
is($cache->get('busy', busy_lock => '5m'), undef, 'whoever is to make it');
my $begin = time;
is($cache->get('busy', busy_lock => '5m'), undef, 'does not wait for itself');
ok(wait_for(in_child(sub { my $began = time; defined $cache->get('busy', busy_lock => 1) and die; time - $began >= 0.9 or die 'no wait' })),
    'others wait for as long as the lock holds');
$cache->set('busy', 2);
is($cache->get('busy', busy_lock => '5m'), 2, 'until it is there');

done_testing;
