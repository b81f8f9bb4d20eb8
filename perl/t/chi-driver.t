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

ok(wait_for(in_child(sub { $cache->get('busy', busy_lock => '5m') == 2 or die; $cache->remove('busy') })), 'another process removes it');
$begin = time;
is($cache->get('busy', busy_lock => 1), undef, 'and it is to be made again');
cmp_ok(time - $begin, '<', 0.9, 'at once');
$cache->remove('busy');

# Whoever does not make it holds nobody up for longer than the lock.
ok(wait_for(in_child(sub { $cache->get('late', busy_lock => 1) and die })), 'one that makes nothing');
is($cache->get('late', busy_lock => '5m'), undef, 'is waited for at most so long');
$begin = time;
ok(wait_for(in_child(sub { $cache->compute('late', undef, sub { return 'l' }) eq 'l' or die })), 'compute does not wait for that');
cmp_ok(time - $begin, '<', 5, 'at all');
is($cache->get('late', busy_lock => '5m'), 'l', 'there it is');
$begin = time;
is($cache->compute('both', { busy_lock => '30s', expires_in => '1h' }, sub { return 'b' }), 'b', 'compute with busy_lock');
my $twin = new_chi();
is($cache->compute('twin', undef, sub { return $twin->compute('twin', undef, sub { return 't' }) }), 't', 'two objects of one file');
is($cache->get('mine', busy_lock => '30s'), undef, 'to be made here');
is($twin->compute('mine', undef, sub { return 'm' }), 'm', 'and made by another object');
cmp_ok(time - $begin, '<', 5, 'nothing of that waits for itself');
$cache->get("absent $_", busy_lock => 1) for 1 .. 3000;
ok(!(grep { /absent/ } $cache->get_keys) && !(grep { !/^(?:Default|odd % name|backend)/ } $cache->get_namespaces), 'locks are no entries');

$cache->remove('x');
$cache->get('x', busy_lock => '5m');
unlink $log;
@children = map { in_child(sub { $cache->compute('x', '1h', sub { slow(0.2) }) =~ /^by/ or die }) } 1 .. 4;
is(scalar(grep { !wait_for($_) } @children), 0, 'compute while somebody is to make the entry');
is(runs(), 1, 'is of one');
$cache->remove('z');
$cache->get('z', busy_lock => 1);
sleep 1.1;
ok(wait_for(in_child(sub { defined $cache->get('z', busy_lock => '5m') and die; $cache->_locks->_exists('z') or die; POSIX::_exit(0) })), 'another takes over');
$cache->remove('z');
ok($cache->_locks->_exists('z'), 'and keeps its lock');
my $long = new_chi(namespace => 'n' x 20_000);
ok($long->set('k' x 60_000, 'v') && $long->get('k' x 60_000) eq 'v', 'a long namespace');

# As CHI is otherwise.
is($cache->max_key_length, 60_000, 'the longest key');
my $digested = new_chi(namespace => 'digested', max_key_length => 10);
$digested->set('k' x 50, 'v');
is($digested->get('k' x 50), 'v', 'a digested key');
$digested->remove('k' x 50);
is($digested->get('k' x 50), undef, 'is removed');
$cache->set('k' x 70_000, 'long');
is($cache->get('k' x 70_000), 'long', 'a key that is too long is digested');
is($cache->compute('c' x 70_000, undef, sub { return 'c' }), 'c', 'and computed');
my $strict = new_chi(max_key_length => 1 << 20, on_get_error => 'ignore', on_set_error => 'ignore', namespace => 'long');
is_deeply($strict->get_multi_arrayref(['a', 'k' x 70_000]), [undef, undef], 'or is in no entry');
is($strict->compute('c' x 70_000, undef, sub { return 'c' }), 'c', 'and computed');

my ($narrow, $wide) = ("caf\xE9") x 2;
utf8::upgrade($wide);
new_chi(namespace => $narrow)->set('a', 1);
is(new_chi(namespace => $wide)->get('a'), 1, 'one text is one namespace');
new_chi(namespace => "n\x{263A}")->set('a', 1);
new_chi(namespace => '')->set('a', 1);
is(scalar(grep { $_ eq "n\x{263A}" || $_ eq '' } $cache->get_namespaces), 2, 'names of characters, and none');

my @errors;
my $closed = new_chi(namespace => 'closed', on_get_error => sub { push @errors, $_[2] }, on_set_error => 'ignore');
$closed->haypile->close;
is($closed->get('a'), undef, 'a cache that fails');
is($closed->get('a', busy_lock => 1), undef, 'and with busy_lock');
is($closed->compute('a', undef, sub { return 'own' }), 'own', 'and computed');
$closed->get_multi_arrayref(['a', 'b']);
is(scalar @errors, 4, 'tells on_get_error, each time');
dies_with(
    sub {
        local $SIG{ALRM} = sub { die "alarm\n" };
        my $child = in_child(sub { $cache->compute('slow', undef, sub { sleep 600 }) });
        sleep 0.1;
        Time::HiRes::alarm(0.1);
        my $is_well = eval { $cache->compute('slow', undef, sub { return 'not this one' }); 1 };
        my $error   = $@;
        kill KILL => $child;
        waitpid $child, 0;
        die $error if !$is_well;
    },
    qr/^alarm$/, 'an alarm ends a wait'
);
{
    package Lower;
    use Moo::Role;
    around transform_key => sub { my ($next, $self, $key) = @_; return $self->$next(lc $key) };
}
my $lower = CHI->new(driver => 'Haypile', root_dir => $root, namespace => 'lower', roles => ['+Lower']);
$lower->set('KEY', 1);
is($lower->get('Key'), 1, 'a role that changes keys');
CHI->stats->enable;
my $counted = new_chi(namespace => 'counted');
$counted->compute('a', undef, sub { return 1 });
$counted->compute('a', undef, sub { return 1 });
is_deeply([@{ $counted->{ns_stats} }{qw(absent_misses hits computes)}], [1, 1, 1], 'statistics count as CHI does');
CHI->stats->disable;
SKIP: {
    eval { require Data::Serializer; 1 } or skip 'Data::Serializer is not installed', 1;
    my $open = new_file();
    Cache::Haypile->new(share_file => $open, serializer => '', permissions => 0666, unlink_on_exit => 0);
    my $url = "file:$open,allow_shared=yes";
    dies_with(sub { CHI->new(driver => 'Haypile', url => $url, serializer => $_) }, qr/others can write to/, 'serializers that run code')
        for 'Storable', 'Data::Dumper', { serializer => 'Storable' };
}

done_testing;
