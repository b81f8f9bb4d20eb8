# Caches on servers, and levels above them.
use strict;
use warnings;
use lib 't/lib';
use Haypile::Test qw(dies_with server in_child wait_for);
use Test::More;

for my $name ('memcached', 'redis-server') {
    SKIP: {
        my $server = server($name) or skip "$name is not installed", 1;
        for my $url ($server, "memory:size=1MiB -> $server") {
            my $cache = Cache::Haypile->new(url => $url, serializer => 'json');
            $cache->clear;
            $cache->set('a', { b => "\x{263A}" });
            is_deeply($cache->get('a'), { b => "\x{263A}" }, "$url: a value");
            if ($name eq 'memcached') {
                is($cache->get_and_set('a', sub { return $_[1]{b} . '!' }), "\x{263A}!", 'get_and_set');
            } else {
                dies_with(sub { $cache->get_and_set('a', sub { die 'not called' }) }, qr/cannot do this: compare and swap/, 'get_and_set');
            }
            is($cache->compute('c', sub { return 1 }), 1, 'compute');
            is($cache->incr('n', 1, { initial => 4 }), 5, 'incr');
            is($cache->incr('n'), 6, 'again');
            is_deeply($cache->multi_get('x', ['y']), {}, 'many');
            ok(wait_for(in_child(sub { $cache->get('c') == 1 or die; $cache->set('child', 1) or die })), 'a child');
        }
        dies_with(sub { Cache::Haypile->new(url => $server) }, qr/others can write to .*serializer 'storable' run code/s, 'Storables');
        ok(Cache::Haypile->new(url => $server, trusts_others => 1), 'unless they are trusted');
        my $listing = Cache::Haypile->new(url => $server, serializer => '');
        if ($name eq 'memcached') {
            dies_with(sub { $listing->get_keys }, qr/cannot do this: iteration over keys/, 'keys');
        } else {
            ok((grep { $_ eq 'c' } $listing->get_keys), 'keys');
        }
    }
}

done_testing;
