# Each call against a plain hash, in a random order, for each serialiser and kind of cache.
use strict;
use warnings;
use lib 't/lib';
use Haypile::Test qw(new_file new_cache dies_with);
use Test::More;

like(Cache::Haypile::library_version(), qr/^\d+\.\d+\.\d+$/, 'the version of the library');

srand 20_261_129;

my @texts = ('', 'plain', "nul\0byte", "caf\xE9", "\xF8Pl", "\xF8Plu", "\xF8Pln", "smile \x{263A}", 'x' x 5000, "\xF8Pl\x{263A}");

sub any { return $_[rand @_] }

# Does one random call on both, and returns what each of them has returned.
sub one_call {
    my ($cache, $model, $values) = @_;
    my ($key, $value) = (any('a' .. 'h', "wide \x{263A}", "\xE9", ''), any(@$values));
    my $call = any(qw(get set set exists remove get_and_set get_and_remove add replace cas compute multi));
    my $has  = exists $model->{$key};
    my $old  = $model->{$key};
    if ($call eq 'get')    { return ($call, $cache->get($key), $old) }
    if ($call eq 'set')    { $model->{$key} = $value; return ($call, $cache->set($key, $value) ? 1 : 0, 1) }
    if ($call eq 'exists') { return ($call, $cache->exists($key) ? 1 : 0, $has ? 1 : 0) }
    if ($call eq 'remove') { delete $model->{$key}; return ($call, $cache->remove($key) ? 1 : 0, $has ? 1 : 0) }
    if ($call eq 'get_and_set') {
        my $seen;
        my @got = $cache->get_and_set($key, sub { $seen = [$_[0], $_[1]]; return $value });
        $model->{$key} = $value;
        return ($call, [@got, $seen], [$value, 1, [$key, $old]]);
    }
    if ($call eq 'get_and_remove') {
        delete $model->{$key};
        return ($call, [$cache->get_and_remove($key)], [$old, $has ? 1 : 0]);
    }
    if ($call eq 'add') {
        $model->{$key} = $value if !$has;
        return ($call, $cache->add($key, $value) ? 1 : 0, $has ? 0 : 1);
    }
    if ($call eq 'replace') {
        $model->{$key} = $value if $has;
        return ($call, $cache->replace($key, $value) ? 1 : 0, $has ? 1 : 0);
    }
    if ($call eq 'cas') {
        my ($got, $version) = my @found = $cache->gets($key);
        return ($call, \@found, []) if !$has;
        my $is_late = rand() < 0.5;
        $cache->set($key, $old) if $is_late;
        $model->{$key} = $value if !$is_late;
        return ($call, [$got, $cache->cas($key, $value, $version) ? 1 : 0], [$old, $is_late ? 0 : 1]);
    }
    if ($call eq 'compute') {
        $model->{$key} = $value if !$has;
        return ($call, $cache->compute($key, sub { return $value }), $has ? $old : $value);
    }
    $cache->multi_set('page', { x => $value, y => 'two' });
    @$model{qw(page-x page-y)} = ($value, 'two');
    return ($call, $cache->multi_get('page', [qw(x y z)]), { x => $value, y => 'two' });
}

my @data = (@texts, undef, { a => [1, { b => 2 }] }, [], [undef, 'x']);
my %kinds = (
    'raw'           => [{ serializer => '' },         [@texts, undef]],
    'storable'      => [{ serializer => 'storable' }, \@data],
    'json'          => [{ serializer => 'json' },     \@data],
    'storable, zlib' => [{ compressor => 'zlib' },    \@data],
    'raw, zlib'     => [{ serializer => '', compress => 1 }, [grep { !/\x{263A}/ } @texts]],
    'functions' => [{ serializer => [sub { 'v' . ${ $_[0] } }, sub { \substr $_[0], 1 }] }, [grep { !/\x{263A}/ } @texts]],
);
for my $kind (sort keys %kinds) {
    my ($options, $values) = @{ $kinds{$kind} };
    for my $where ({ url => 'memory:size=4MiB' }, { share_file => new_file(), cache_size => '4m' }) {
        my $cache = Cache::Haypile->new(%$where, %$options);
        my (%model, @wrong);
        for my $step (1 .. 1500) {
            my ($call, $got, $expected) = one_call($cache, \%model, $values);
            next if Test::More::eq_deeply_or_explain($got, $expected);
            push @wrong, [$step, $call, $got, $expected];
            last;
        }
        is_deeply(\@wrong, [], "$kind, " . $cache->url);
        is_deeply([sort $cache->get_keys], [sort keys %model], 'its keys');
        is_deeply({ map { $_->{key} => $_->{value} } $cache->get_keys(2) }, \%model, 'its keys and values');
        $cache->clear;
        is_deeply([$cache->get_keys(1)], [], 'cleared');
    }
}

{
    my $cache = new_cache();
    is($cache->incr('n'), undef, 'no counter is made');
    is($cache->incr('n', 5, { initial => 10 }), 15, 'unless it is asked for');
    is($cache->incr('n'), 16, 'it counts');
    is($cache->decr('n', 20), 0, 'and stops at zero');
    is($cache->get('n'), 0, 'it is text');
    $cache->set('text', 'abc');
    dies_with(sub { $cache->incr('text') }, qr/incr needs a value of 1 to 20 decimal digits.* at t.calls\.t line/, 'text is no counter');
    my ($reads, $hits) = $cache->get_statistics;
    ok($reads >= $hits && $hits >= 1, 'reads and hits');
    $cache->get_statistics(1);
    $cache->get('text');
    $cache->get('absent');
    is_deeply([$cache->get_statistics], [2, 1], 'counted again');
    $cache->set('huge', 5);
    is($cache->incr('huge', '9223372036854775808'), '9223372036854775813', 'beyond 63 bits');
    is($cache->incr('n', -3), 0, 'by less than nothing, and not below zero');
    dies_with(sub { $cache->incr('n', $_->[0], $_->[1]) }, $_->[2], "counting by $_->[0]")
        for ['0.5', undef, qr/whole numbers/], ['abc', undef, qr/whole numbers/], [1, { initial => 1.5 }, qr/begins with a whole number/],
        [1, { initial => 1, expire_time => 'now' }, qr/expires at once/];
    my $lease = $cache->lease('leased');
    ok($cache->set('leased', 'one', { lease => $lease }), 'a lease that holds');
    ok(!$cache->set('leased', 'two', { lease => $lease }), 'and one that does not any more');
    is($cache->get('leased'), 'one', 'what was there stays');
    dies_with(sub { $cache->set('leased', 'x', { lease => 'forged' }) }, qr/not a lease/, 'bytes that are no lease');
    dies_with(sub { $cache->cas('leased', 'x', 'forged') }, qr/not a version/, 'bytes that are no version');
    my $next = $cache->key_iterator;
    my %seen;
    while (defined(my $key = $next->())) { $seen{$key}++ }
    is_deeply(\%seen, { n => 1, text => 1, leased => 1, huge => 1 }, 'one key after another');
    like($cache->prometheus, qr/^haypile_/m, 'Prometheus');
    is_deeply([$cache->warnings], [], 'no warnings');
    cmp_ok($cache->limits->{value_bytes}, '>', 1 << 16, 'limits');
    $cache->flush;
}

for my $options ([], [compress => 1], [serializer => 'json']) {
    my $cache = Cache::Haypile->new(share_file => new_file(), @$options);
    is($cache->incr('n', 2, { initial => 3 }), 5, "a counter with @$options");
    is($cache->get('n'), 5, 'is read as any value');
    is(($cache->get_keys(2))[0]{value}, 5, 'and listed');
    my $plain = Cache::Haypile->new(share_file => $cache->{share_file}, serializer => '');
    $plain->set('foreign', "foreign\x04\x0b");
    dies_with(sub { $cache->get('foreign') }, qr/another program has written it|expected|Storable/, 'bytes of another program');
}

{
    my $json = new_cache(serializer => 'json');
    $json->set('n', 5);
    $json->get_and_set('n', sub { return $_[1] });
    is($json->incr('n'), 6, 'a number of JSON stays one');
}
{
    my $file = new_file();
    my ($one, $two) = map { Cache::Haypile->new(share_file => $file, serializer => '', key_prefix => $_) } 'one:', 'two:';
    $_->[0]->set('key', $_->[1]) for [$one, 1], [$two, 2];
    is($one->get('key') . $two->get('key'), '12', 'prefixes are apart');
    $one->clear;
    is_deeply([[$one->get_keys], [$two->get_keys]], [[], ['key']], 'and are cleared apart');
    is_deeply($two->multi_get('x', ['y']), {}, 'nothing of many');
}

done_testing;

# As is_deeply, without a result of the test.
sub Test::More::eq_deeply_or_explain {
    my ($got, $expected) = @_;
    return Test::More::eq_array([$got], [$expected]);
}
