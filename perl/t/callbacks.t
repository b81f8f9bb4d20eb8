# A store below: read_cb, write_cb, delete_cb, what they may not do, and what happens when they die.
use strict;
use warnings;
use lib 't/lib';
use Haypile::Test qw(new_file new_cache in_child wait_for dies_with);
use Test::More;

my %below;
my @calls;
my @callbacks = (
    context   => 'context',
    read_cb   => sub { push @calls, "read $_[0] $_[1]"; return $below{ $_[1] } },
    write_cb  => sub { push @calls, "write $_[0] $_[1]"; $below{ $_[1] } = $_[2] },
    delete_cb => sub { push @calls, "delete $_[0] $_[1]"; delete $below{ $_[1] } },
);
sub calls { my @made = @calls; @calls = (); return \@made }

for my $serializer ('', 'storable') {
    %below = (old => 'value');
    my $cache = new_cache(@callbacks, serializer => $serializer);
    is($cache->get('old'), 'value', 'read from below');
    is($cache->get('old'), 'value', 'once');
    is_deeply(calls(), ['read context old'], 'by one call');
    ok(!$cache->exists('none') && !@calls, 'exists asks nobody');
    is($cache->get('none'), undef, 'it is not below');
    $cache->get('none');
    is(scalar @{ calls() }, 2, 'and is asked for again');
    ok($cache->set('new', 'one'), 'set');
    is_deeply([calls(), $below{new}], [['write context new'], 'one'], 'writes through');
    ok($cache->remove('new'), 'remove');
    is_deeply([calls(), exists $below{new}], [['delete context new'], ''], 'deletes through');
    $cache->get_and_set('old', sub { return "$_[1]!" });
    is($below{old}, 'value!', 'get_and_set writes through');
    %below = (fresh => 'f');
    is($cache->get_and_set('fresh', sub { return "$_[1]?" }), 'f?', 'get_and_set reads through');
    $cache->add('added', 'a');
    my (undef, $version) = $cache->gets('added');
    $cache->cas('added', 'b', $version);
    is($below{added}, 'b', 'add and cas write through');
    is_deeply([$cache->get_and_remove('added')], ['b', 1], 'get_and_remove');
    ok(!exists $below{added}, 'deletes through');
    calls();
}

my $remembers = new_cache(@callbacks, cache_not_found => 1);
$remembers->get('nothing') for 1 .. 3;
is_deeply(calls(), ['read context nothing'], 'cache_not_found');

# What a callback may do.
my $cache;
my $recursive = sub { return $_[1] eq 'inner' ? 'i' : $_[1] eq 'self' ? $cache->get('self') : $cache->get('inner') . 'o' };
$cache = new_cache(read_cb => $recursive);
dies_with(sub { $cache->get('outer') }, qr/already locked.*allow_recursive/, 'a callback that uses the cache');
is($cache->get('inner'), 'i', 'the cache is not locked after that');
$cache = new_cache(read_cb => $recursive, allow_recursive => 1);
is($cache->get('outer'), 'io', 'allow_recursive');
dies_with(sub { $cache->get('self') }, qr/computation of 'self' asks for 'self'/, 'one that asks for itself');
$cache = new_cache(read_cb => sub { die "below\n" });
dies_with(sub { $cache->get('key') }, qr/^below$/, 'a callback that dies') for 1, 2;
ok($cache->set('key', 1) && $cache->get('key') == 1, 'and the cache goes on');
$cache = new_cache(write_cb => sub { die 'below' }, delete_cb => sub { die 'below' });
ok($cache->set('key', 1) && $cache->remove('key'), 'writes below that fail are theirs');
ok(wait_for(in_child(sub { $cache = new_cache(read_cb => sub { exit 0 }); $cache->get('key') })), 'a callback that exits');

$cache = new_cache();
dies_with(sub { $cache->get_and_set('key', sub { die "sub\n" }) }, qr/^sub$/, 'get_and_set whose sub dies');
dies_with(sub { $cache->get_and_set('key', sub { return (1, 'bad') }) }, qr/options must be a hash reference/, 'bad options');
is_deeply([$cache->get_and_set('key', sub { return })], [undef, 0], 'a sub without a value stores none');
ok(!$cache->exists('key'), 'nothing was stored');
my $times = 0;
$cache->set('key', 0);
is($cache->get_and_set('key', sub { $cache->set('key', 10) if !$times++; return $_[1] + 1 }), 11, 'again after a change');
is($times, 2, 'with what it is now');
is_deeply([$cache->get_and_set('x' x 70_000, sub { return 1 })], [1, 0], 'a key that is too long');

# Writing back.
sub new_back { return new_cache(@callbacks, write_action => 'write_back', @_) }
%below = (old => 'below');
calls();
$cache = new_back();
$cache->set("key $_", "value $_") for 1 .. 10;
is_deeply(calls(), [], 'changes wait');
my $plain = Cache::Haypile->new(share_file => $cache->{share_file}, serializer => '');
my $filler = 0;
$plain->set('filler ' . $filler++, 'f' x 1000) while $plain->exists('key 3') && $filler < 1_000_000;
is($cache->get('key 3'), 'value 3', 'a change that the cache has lost is still there');
$plain->remove("filler $_") for 0 .. $filler;
is_deeply([sort $cache->get_keys], [sort map { "key $_" } 1 .. 10], 'and listed');
$cache->remove('key 1');
ok(!$cache->exists('key 1') && !defined $cache->get('key 1'), 'removed');
calls();
ok(wait_for(in_child(sub { $cache->empty; @calls ? die 'a child writes back' : 1 })), 'a child leaves it to its parent');
$cache->expire('key 2');
is_deeply(calls(), ['write context key 2'], 'expire writes back');
$cache->empty;
is(scalar @{ calls() }, 8, 'empty writes back');
is_deeply([$cache->get_keys], [], 'and empties');
is($below{'key 5'}, 'value 5', 'it is below');
$cache->set('x', 1);
$cache->clear;
$cache->empty;
is_deeply(calls(), [], 'clear drops changes');
$cache->set("many $_", $_) for 1 .. 1500;
cmp_ok(scalar @{ calls() }, '>=', 500, 'not too many wait');
$cache->close;
is($below{'many 1500'}, 1500, 'the end writes back');

# Others change what waits.
%below = ();
$cache = new_back();
my $second = Cache::Haypile->new(@callbacks, write_action => 'write_back', share_file => $cache->{share_file}, serializer => '');
$cache->set($_, 'mine') for qw(removed written kept);
$second->remove('removed');
$plain = Cache::Haypile->new(share_file => $cache->{share_file}, serializer => '');
$plain->set('written', 'theirs');
is($cache->get('removed'), undef, 'what another process has removed does not come back');
is_deeply([sort $cache->get_keys], [qw(kept written)], 'its note is no entry');
$cache->set('removed again', 1);
$second->clear;
$cache->set('kept', 'mine');
$cache->set('written', 'mine');
$second->set('written', 'theirs');
$cache->empty;
is_deeply(\%below, { kept => 'mine' }, 'nor below, nor all that it has cleared, nor over what was written since');
$cache->set('n', 1);
$cache->incr('n', 41);
$cache->touch('n', '1h');
$cache->empty;
is($below{n}, 42, 'a counter is a change');
$cache = new_cache(@callbacks);
$cache->incr('through', 5, { initial => 0 });
is($below{through}, 5, 'and writes through');

# A callback that uses the cache, or leaves.
my @written;
$cache = new_cache(write_action => 'write_back', write_cb => sub { push @written, $_[1]; $cache->remove($_) for 'a' .. 'c' });
$cache->set($_, 1) for 'a' .. 'c';
$cache->empty;
is(scalar @written, 1, 'a callback that removes others');
@written = ();
$cache = new_cache(write_action => 'write_back', write_cb => sub { push @written, $_[1]; no warnings; last });
$cache->set($_, 1) for 'a' .. 'e';
$cache->empty;
is_deeply([sort @written], ['a' .. 'e'], 'one that leaves by last');
$cache = new_cache(write_action => 'write_back', write_cb => sub { $cache->set("again $_[1]", 1) if $_[1] !~ /again/ });
$cache->set($_, 1) for 1 .. 1100;
ok($cache->exists('again 7'), 'one that writes more');

{
    no warnings 'exiting';
    my ($rounds, $runs) = (0, 0);
    $cache = new_cache(read_cb => sub { last }, allow_recursive => 1);
    for (1 .. 3) { $rounds++; $cache->get('key') }
    is($rounds, 3, 'a read_cb that leaves by last leaves nothing else');
    $cache = new_cache();
    for (1 .. 3) { $runs++; $cache->get_and_set('key', sub { next }) }
    is($runs, 3, 'a sub of get_and_set that leaves');
    $cache->set('key', 1);
    my $tries = 0;
    dies_with(sub { $cache->get_and_set('key', sub { $cache->set('key', ++$tries); return 1 }) }, qr/has changed 1000 times/, 'one that changes its key');
    $cache = new_cache(serializer => [sub { last }, sub { \$_[0] }]);
    for (1) { eval { $cache->set('key', 1) }; like($@, qr/outside a loop block/, 'a serializer that leaves'); }
}

{
    package False;
    use overload bool => sub { return 0 }, '""' => sub { return 'false' };
}
$cache = new_cache(read_cb => sub { die bless [], 'False' }, cache_not_found => 1);
ok(!defined eval { $cache->get('key'); 1 }, 'an exception that is false');
ok(!$cache->exists('key'), 'stores nothing');
dies_with(sub { new_cache(read_cb => 'name') }, qr/`read_cb` is a sub/, 'a callback that is none');

# However a callback is left, the cache can be used.
my $left = 0;
$cache = new_cache(read_cb => sub { kill ALRM => $$; return undef });
for (1 .. 300) {
    local $SIG{ALRM} = sub { die "alarm\n" };
    eval { $cache->get('key'); 1 } or $left++;
}
is($left, 300, 'left by a signal');
ok($cache->set('key', 1), 'it is not locked');
$cache = new_cache(read_cb => sub { my $child = fork // die; return $child if $child; POSIX::_exit($cache->set('child', 1) ? 0 : 1) });
my $child = $cache->get('key');
ok(wait_for($child), 'a child of a callback uses the cache');
$cache = new_cache(read_cb => sub { $cache->close });
dies_with(sub { $cache->get('key') }, qr/a callback cannot close its cache/, 'a callback that closes the cache');
{
    no warnings 'recursion';
    $cache = new_cache(read_cb => sub { $_[1] > 2000 ? 1 : $cache->get($_[1] + 1) }, allow_recursive => 1);
    dies_with(sub { $cache->get(0) }, qr/nested more than 1000 deep/, 'callbacks that are nested without end');
}

# Two processes' caches with write_back on one store, as two objects.
for my $case (
    ['a newer value of another', sub { $_[1]->set('k', 'new'); $_[1]->empty }, 'new'],
    ['one that has expired since', sub { $_[1]->set('k', 'new', '20ms'); select undef, undef, undef, 0.05; $_[1]->empty(1) }, 'new'],
    ['one that was expired', sub { $_[1]->set('k', 'new'); $_[1]->expire('k') }, 'new'],
    ['a removal, and all emptied', sub { $_[1]->remove('k'); $_[1]->empty }, undef],
    ['what another has read instead', sub { $plain->remove('k'); $_[1]->get('k') }, 'old'],
    ['its own, evicted and counted', sub { $_[0]->set('k', 41); $plain->remove('k'); $_[0]->incr('k', 1, { initial => 0 }) }, 42],
    ['its own, evicted and added', sub { $plain->remove('k'); $_[0]->add('k', 'no') }, 'old'],
    ['an object that changes', sub { my $o = bless ['x'], 'Text'; $_[0]->set('k', $o); $o->[0] = 'y' }, 'x'],
) {
    my ($name, $code, $expected) = @$case;
    %below = (k => 'below');
    my $file = new_file();
    my @pair = map { Cache::Haypile->new(@callbacks, write_action => 'write_back', share_file => $file, serializer => '') } 1, 2;
    $plain = Cache::Haypile->new(share_file => $file, serializer => '');
    $pair[0]->set('k', 'old');
    $code->(@pair);
    $_->empty for @pair;
    is($below{k}, $expected, "below is $name");
    is_deeply([$plain->get_keys], [], 'notes are no keys');
}
{
    package Text;
    use overload '""' => sub { return $_[0][0] };
}
%below = (k => 'below');
calls();
$cache = new_back();
$cache->set('k', 'short', '20ms');
select undef, undef, undef, 0.05;
is($cache->get('k'), 'short', 'what has expired was written back, and is read again');
is_deeply(calls(), ['write context k', 'read context k'], 'from below');
$cache->set('n', 1, { expire_time => '1h' });
$cache->incr('n');
ok(abs(($cache->_dirty->{n}{expires_on}) - time - 3600) < 30, 'a counter keeps its time');

done_testing;
