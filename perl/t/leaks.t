# Memory of a process that does the same for long.
use strict;
use warnings;
use lib 't/lib';
use Haypile::Test qw(new_file new_cache);
use Test::More;

plan skip_all => 'there is no /proc/self/statm' if !-r '/proc/self/statm';

sub resident {
    open my $file, '<', '/proc/self/statm' or die $!;
    return (split ' ', <$file>)[1] * 4;
}

my $cache  = new_cache();
my $coded  = new_cache(serializer => 'storable', compress => 1);
my $reads  = new_cache(read_cb => sub { return 'r' }, write_cb => sub { }, allow_recursive => 1);
my $number = $ENV{HAYPILE_LEAKS} || 20_000;
my %calls  = (
    'get and set' => sub { $cache->set("k$_[0]", "v$_[0]"); $cache->get("k$_[0]") },
    'characters'  => sub { $cache->set("k\x{263A}", "v\x{263A} $_[0]"); $cache->get("k\x{263A}") },
    'long keys'   => sub { my $key = "\x{100}" x 1000; utf8::upgrade($key); $cache->get($key) },
    'serialised'  => sub { $coded->set('k', { a => $_[0] }); $coded->get('k') },
    'compute'     => sub { $cache->remove('c'); $cache->compute('c', sub { return 1 }) },
    'get_and_set' => sub { $cache->get_and_set('g', sub { return ($_[1] // 0) + 1 }) },
    'read through' => sub { $reads->remove('r'); $reads->get('r'); $reads->set('r', 2) },
    'errors'      => sub { eval { $cache->set('k', []) }; eval { $cache->set('k', 1, { modseq => 1 }) } },
    'many'        => sub { $cache->multi_set('p', { a => 1, b => 2 }); $cache->multi_get('p', ['a', 'b', 'c']) },
    'keys'        => sub { return if $_[0] % 1000; $cache->get_keys(2) },
    'opening'     => sub { return if $_[0] % 500; new_cache(cache_size => '1m') },
);
for my $name (sort keys %calls) {
    my $call = $calls{$name};
    $call->($_ % 100) for 1 .. 2000;
    my $before = resident();
    # A call of each statement, so that nothing waits for the end of one.
    for my $step (1 .. $number) { $call->($step) }
    my $grown = resident() - $before;
    # The pages of the mapped file count too: 4 MiB.
    cmp_ok($grown, '<', 6000, "$name: grown by $grown KiB in $number");
}

done_testing;
