# Keys and values that nobody expects.
use strict;
use warnings;
use utf8;
use lib 't/lib';
use Haypile::Test qw(new_cache dies_with);
use Test::More;

my $cache = new_cache();

{
    my @warnings;
    local $SIG{__WARN__} = sub { push @warnings, @_ };
    ok($cache->set(undef, 'u'), 'undef is the empty key');
    is($cache->get(''), 'u', 'as perl makes a string of it');
    like("@warnings", qr/uninitialized/, 'and says so');
}
$cache->set('undef', undef);
ok($cache->exists('undef') && !defined $cache->get('undef'), 'undef is a value');
dies_with(sub { $cache->set('r', $_) }, qr/reference cannot be stored/, 'a reference') for [], {}, \1, sub { };
my $reference = [];
$cache->set($reference, 'by its address');
is($cache->get("$reference"), 'by its address', 'a reference as a key');

{
    package Overloaded;
    use overload '""' => sub { return "text of ☺ $_[0][0]" };
}
my $object = bless ['x'], 'Overloaded';
$cache->set($object, $object);
is($cache->get('text of ☺ x'), 'text of ☺ x', 'objects that are texts');

{
    package Tied;
    sub TIESCALAR { return bless { reads => 0 } }
    sub FETCH { return 'tied ' . ++$_[0]{reads} }
}
tie my $tied, 'Tied';
$cache->set('tied', $tied);
is($cache->get('tied'), 'tied 1', 'a tied value is read once');
tie my $tied_key, 'Tied';
$cache->set($tied_key, 'k');
is($cache->get('tied 1'), 'k', 'and so is a tied key');
'matched' =~ /(mat)(ched)/ and $cache->set($1, $2);
is($cache->get('mat'), 'ched', 'magic of a match');
$cache->set(substr('subst', 0, 3), substr 'subst', 3);
is($cache->get('sub'), 'st', 'a part of a string');
$cache->set(1.5, -7);
is($cache->get('1.5'), '-7', 'numbers are their texts');

# The same text in both of perl's forms.
my ($narrow, $wide) = ("caf\xE9") x 2;
utf8::downgrade($narrow);
utf8::upgrade($wide);
$cache->set($narrow, 'narrow');
is($cache->get($wide), 'narrow', 'one text is one key');
$cache->set($_->[0], $_->[1]) for ['n', $narrow], ['w', $wide], ['a', do { my $a = 'ascii'; utf8::upgrade($a); $a }];
is($cache->get('n'), $wide, 'one text is one value');
ok(!utf8::is_utf8($cache->get('n')), 'bytes stay bytes');
ok(utf8::is_utf8($cache->get('w')),  'characters stay characters');
is($cache->get('a'), 'ascii', 'ASCII is itself');
$cache->set("key ☺ $_", "☺ $_") for 1 .. 3;
is_deeply([grep { /☺/ } sort $cache->get_keys], ['key ☺ 1', 'key ☺ 2', 'key ☺ 3', 'text of ☺ x'], 'keys of characters');
my $bytes = "\xE9 and \xFF";
$cache->set($bytes, $bytes);
is((grep { $_ eq $bytes } $cache->get_keys)[0], $bytes, 'keys of bytes');
my $invalid = "\xF8Plu\xFF\xFE";
$cache->set('invalid', $invalid);
is($cache->get('invalid'), $invalid, 'bytes that look like ours');
my $copy = $cache->get('w');
$copy .= '!';
is($cache->get('w'), $wide, 'what is changed is a copy');

# Reading one argument changes the other.
{
    package Changes;
    use overload '""' => sub { $_[0][0]->(); return 'changed' };
}
my $key = 'K' x 300;
$cache->set($key, bless [sub { undef $key; my @others = map { 'J' x 300 } 1 .. 10 }], 'Changes');
is($cache->get('K' x 300), 'changed', 'a value that changes its key');
my $value = 'V' x 300;
$cache->set(bless([sub { undef $value; my @others = map { 'J' x 300 } 1 .. 10 }], 'Changes'), $value);
ok(!defined $value, 'a key that changes its value');
ok($cache->exists('changed'), 'is a key');
my @keys;
@keys = ('K' x 300, bless [sub { undef $keys[0]; my @others = map { 'J' x 300 } 1 .. 10 }], 'Changes');
is(ref(($cache->_read_many(\@keys))[0]), 'SCALAR', 'one of many keys that changes another');
$cache->set('regexp', qr/x/);
like($cache->get('regexp'), qr/\(\?\^:x\)/, 'a regular expression is its text');
for my $none (\1, \undef, \"abc", \my $x, sub { }, \*STDOUT, [], qr/x/) {
    dies_with(sub { Cache::Haypile::get($none, 'x') }, qr/closed, or not a Cache::Haypile/, 'a reference to something else');
}
dies_with(sub { $cache->set(1 .. 20) }, qr/too many arguments/, 'too many arguments') for 1;

my $closing = new_cache();
my $closes  = bless [sub { $closing->close }], 'Changes';
for my $call (sub { $closing->get($closes) }, sub { $closing->set($closes, 1) }, sub { $closing->exists($closes) }, sub { $closing->set('k', $closes) },
    sub { $closing->multi_get('p', [$closes]) }) {
    $closing = new_cache();
    dies_with($call, qr/closed/, 'a key or a value that closes the cache');
}

# Long ones.
my $longest = 'k' x 65_535;
ok($cache->set($longest, 'v') && $cache->get($longest) eq 'v', 'the longest key');
ok(!$cache->set("${longest}k", 'v'), 'a longer one is not stored');
ok(!defined $cache->get("${longest}k") && !$cache->exists("${longest}k") && !$cache->remove("${longest}k"), 'nor found');
for my $large (Cache::Haypile->new(url => 'memory:size=400MiB', serializer => ''), new_cache(cache_size => '900m')) {
    my ($kind) = $large->url =~ /^(\w+)/;
    cmp_ok($large->limits->{value_bytes}, '>=', 100_000_000, "$kind takes 100 MB");
    my $big = 'v' x 100_000_000;
    $large->set('short', $narrow);
    ok($large->set('big', $big), 'they are written');
    ok($large->get('big') eq $big, 'and come back');
    is($large->get('short'), $narrow, 'and a short value after them');
    ok(!$large->set('big', 'w' x 900_000_000), 'more than the cache has');
    ok($large->get('big') eq $big, 'leaves the old value');
}

# Objects that are none, and wrong arguments.
dies_with(sub { Cache::Haypile::get('Cache::Haypile', 'x') }, qr/closed, or not a Cache::Haypile/, 'a class');
dies_with(sub { Cache::Haypile::get({}, 'x') }, qr/closed, or not a Cache::Haypile/, 'a hash');
dies_with(sub { Cache::Haypile::get(bless({}, 'Cache::Haypile'), 'x') }, qr/closed/, 'an empty object');
is($cache->compute('x' x 70_000, sub { return 'own' }), 'own', 'a key that is too long is computed');
is_deeply($cache->multi_get('x' x 70_000, ['a']), {}, 'and found by none');
is(new_cache(read_cb => sub { return 'below' })->get('x' x 70_000), 'below', 'but by who reads through');
ok(new_cache(key_prefix => "\x{263A}:")->set('a', 1), 'a prefix of characters');
dies_with(sub { Cache::Haypile->new("memory:\0x") }, qr/no NUL/, 'a URL with a NUL');
dies_with(sub { $cache->get }, qr/Usage/, 'no key');
dies_with(sub { $cache->set('k') }, qr/Usage/, 'no value');
dies_with(sub { $cache->compute('k') }, qr/needs a key and a sub/, 'no sub');
my $closed = new_cache();
$closed->close;
$closed->close;
dies_with(sub { $closed->set('a', 1) }, qr/closed/, 'a closed cache');

done_testing;
