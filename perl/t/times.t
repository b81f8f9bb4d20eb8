# TTLs.
use strict;
use warnings;
use lib 't/lib';
use Cache::Haypile::Times qw(ttl_after ttl_until expires_on NOW NEVER OF_CACHE);
use Haypile::Test qw(new_file new_cache dies_with);
use Test::More;
use Time::HiRes qw(time sleep);

my %ttls = (
    '90' => 90_000, '0.25' => 250, '.5' => 500, '250ms' => 250, '10s' => 10_000, '10m' => 600_000, '2 hours' => 7_200_000,
    '1 minute' => 60_000, '1d' => 86_400_000, '1W' => 604_800_000, ' 3 s' => 3000, '0.0001' => 1,
    never => NEVER, now => NOW, '' => NOW, 0 => NOW, -1 => NOW, '9999999999d' => NEVER,
);
is(ttl_after($_), $ttls{$_}, "'$_'") for sort keys %ttls;
{
    my @warnings;
    local $SIG{__WARN__} = sub { push @warnings, @_ };
    is(ttl_after('garbage'), NOW, 'what is no time is over');
    like("@warnings", qr/'garbage' is not a time/, 'and says so');
}
is(ttl_until(0), NEVER, 'expire_on 0 is never');
is(ttl_until(time - 5), NOW, 'a time that has passed');
my $ttl = ttl_until(time + 5);
ok($ttl > 4000 && $ttl <= 5001, 'a time to come');
is(expires_on(NEVER), 0, 'never');
is(expires_on(OF_CACHE), -1, 'that of the cache');

my $cache = new_cache(expire_time => '1h');
my ($details) = ($cache->set('hour', 1), $cache->get_keys(1));
$cache->set($_->[0], 1, $_->[1])
    for ['short', '0.05'], ['now', 'now'], ['never', 'never'], ['zero', 0], ['day', { expire_time => '1d' }],
    ['on', { expire_on => time + 100 }], ['over', { expire_on => 1 }];
my %left = map { $_->{key} => $_->{expire_on} } $cache->get_keys(1);
ok(!exists $left{$_}, "$_ is not there") for qw(now zero over);
is($left{never}, 0, 'never');
my %expected = (hour => 3600, day => 86_400, on => 100);
ok(abs($left{$_} - time - $expected{$_}) < 30, "$_ expires then") for sort keys %expected;
my $end = time + 20;
sleep 0.01 while defined $cache->get('short') && time < $end;
ok(!defined $cache->get('short') && !$cache->exists('short'), 'parts of a second');
ok(!(grep { $_ eq 'short' } $cache->get_keys), 'not listed any more');

$cache->get_and_set('on', sub { return (2, { expire_on => $_[2]{expire_on} }) });
my ($kept) = grep { $_->{key} eq 'on' } $cache->get_keys(2);
ok($kept->{value} == 2 && abs($kept->{expire_on} - $left{on}) <= 1, 'get_and_set can keep the time');
$cache->touch('on', '1d');
($kept) = grep { $_->{key} eq 'on' } $cache->get_keys(1);
ok(abs($kept->{expire_on} - time - 86_400) < 30, 'touch');
ok($cache->touch('on', 'now') && !$cache->exists('on'), 'touch that ends');
ok(!$cache->touch('absent'), 'touch of nothing');

my $url = Cache::Haypile->new(url => 'memory:size=1MiB,ttl=1h', serializer => '');
$url->set('key', 1);
ok(abs(($url->get_keys(1))[0]{expire_on} - time - 3600) < 30, 'the TTL of a URL');
dies_with(sub { new_cache(expire_time => 'now') }, qr/`expire_time` is a time/, 'a cache whose entries are gone');
ok(new_cache(expire_time => 0), '0 stands for no limit there');

done_testing;
