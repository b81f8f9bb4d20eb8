# Each option of Cache::FastMmap works, or is refused by its name.
use strict;
use warnings;
use lib 't/lib';
use Haypile::Test qw(new_file new_cache dies_with);
use Test::More;

{
    my $file  = new_file();
    my $cache = Cache::Haypile->new({ share_file => $file, cache_size => '2m' });
    ok(-f $file, 'share_file');
    is((stat $file)[2] & 07777, 0600, 'it is of this user alone');
    like($cache->url, qr/size=2MiB/, 'cache_size');
    my $second = Cache::Haypile->new(share_file => $file);
    $cache->set('key', { a => 1 });
    is_deeply($second->get('key'), { a => 1 }, 'two share a file');
    undef $second;
    ok(-f $file, 'who has found the file does not remove it');
    undef $cache;
    ok(!-e $file, 'who has made it does');
}
for my $case ([unlink_on_exit => 0, 1], [unlink_on_exit => 1, '']) {
    my ($option, $value, $stays) = @$case;
    my $file = new_file();
    Cache::Haypile->new(share_file => $file, $option => $value);
    is(-e $file ? 1 : '', $stays, "$option => $value");
    unlink $file;
}
{
    my $file = new_file();
    my @options = (share_file => $file, serializer => '', unlink_on_exit => 0);
    my $first = Cache::Haypile->new(@options);
    $first->set('old', 1);
    is(Cache::Haypile->new(@options)->get('old'), 1, 'without init_file');
    my $fresh = Cache::Haypile->new(@options, init_file => 1);
    is($fresh->get('old'), undef, 'with init_file');
    $fresh->set('new', 2);
    is($first->get('new'), 2, 'others go on with the new file');
    Cache::Haypile->new(@options, empty_on_exit => 1)->set('gone', 1);
    is_deeply([$first->get_keys], [], 'empty_on_exit');
}
{
    my $strange = new_file() . ' 100%,a?b=c&d#e caf' . "\xC3\xA9";
    my $cache   = Cache::Haypile->new(share_file => $strange);
    ok(-f $strange, 'any path');
}
is(Cache::Haypile->new(share_file => new_file(), page_size => '32k', num_pages => 64)->limits->{capacity_bytes} <= 2 << 20, 1,
    'num_pages x page_size');
like(Cache::Haypile->new(share_file => new_file(), cache_size => 10)->url, qr/size=1MiB/, 'the smallest file');
ok(Cache::Haypile->new('memory:size=1MiB'), 'a URL alone');
ok(Cache::Haypile->new(url => 'memory:size=1MiB')->new(share_file => new_file()), 'an object for a class');
ok(Cache::Haypile->new(share_file => new_file(), test_file => 1, start_slots => 9, catch_deadlocks => 1, enable_stats => 1),
    'options that have nothing to do');
my %refused = (
    'tombstone_expire_time'         => [tombstone_expire_time => 60],
    'no option `pagesize`'          => [pagesize => 60],
    '`write_action` is'             => [write_action => 'later'],
    '`cache_size` is a number'      => [cache_size => 'big'],
    '`num_pages` is a number'       => [num_pages => 'many'],
    'unrecognized value >yaml<'     => [serializer => 'yaml'],
    'unrecognized value >gzip<'     => [compressor => 'gzip'],
    '`url` and `share_file` exclude' => [url => 'memory:', share_file => 'x'],
    '`unlink_on_exit` needs'        => [url => 'memory:', unlink_on_exit => 1],
    '`share_file` is a path'        => [share_file => []],
    'no-such-scheme'                => [url => 'no-such-scheme:'],
    'No such file or directory'     => [share_file => '/nonexistent/directory/file'],
);
dies_with(sub { Cache::Haypile->new(@{ $refused{$_} }) }, qr/\Q$_\E.* at t.options\.t line/s, $_) for sort keys %refused;
my $cache = new_cache();
dies_with(sub { $cache->set('a', 1, { modseq => 1 }) },    qr/no `modseq`.*lease/, 'set with modseq');
dies_with(sub { $cache->get('a', { modseq => \my $m }) }, qr/no `modseq`.*gets/,  'get with modseq');
dies_with(sub { $cache->remove('a', { modseq => 1 }) },   qr/no `modseq`/,        'remove with modseq');

# Values that run code, from where others can write.
for my $serializer (qw(storable sereal)) {
    next if $serializer eq 'sereal' && !eval { require Sereal; 1 };
    my $file = new_file();
    my @options = (share_file => $file, serializer => $serializer, permissions => 0660, unlink_on_exit => 0);
    dies_with(sub { Cache::Haypile->new(@options) }, qr/others can write to \S+ \(owner \d+, mode 660\).*trusts_others/s,
        "$serializer where others write");
    ok(Cache::Haypile->new(@options, trusts_others => 1), 'unless they are trusted');
    ok(Cache::Haypile->new(@options, serializer => 'json'), 'or the serializer runs nothing');
    is((stat $file)[2] & 07777, 0660, 'permissions');
    unlink $file;
    dies_with(sub { Cache::Haypile->new(share_file => $file, serializer => $serializer, permissions => 0660) }, qr/others can write/, 'a new one');
    ok(!-e $file, 'does not stay');
}

done_testing;
