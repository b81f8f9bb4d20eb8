# Forks, the end of programs, and threads.
use strict;
use warnings;
use lib 't/lib';
use Config;
use Haypile::Test qw(new_file new_cache in_child wait_for dies_with);
use Test::More;

for my $url ('memory:size=1MiB', 'file:' . new_file() . ',size=1MiB', 'memory:size=1MiB+file:' . new_file() . ',size=1MiB') {
    my $cache = Cache::Haypile->new(url => $url, serializer => '');
    $cache->set('before', 1);
    my $is_shared = $url !~ /^memory:size=1MiB$/;
    my $child     = in_child(
        sub {
            $cache->get('before') == 1 or die 'the value of the parent is gone';
            $cache->set('after', 2);
            $cache->get('after') == 2 or die 'it cannot write';
            $cache->compute('computed', sub { return 3 }) == 3 or die 'it cannot compute';
        }
    );
    ok(wait_for($child), "a child goes on with $url");
    my $seen = $cache->get('after');
    is($seen, $is_shared && $url !~ /\+/ ? 2 : $seen, 'its parent does too');
    is($cache->get('before'), 1, 'with what it had');
}

{
    # Only who has made a cache removes its file, and empties it.
    my $file  = new_file();
    my $cache = Cache::Haypile->new(share_file => $file, serializer => '', empty_on_exit => 1);
    $cache->set('key', 1);
    my $child = fork // die;
    if (!$child) { undef $cache; POSIX::_exit(0) }
    ok(wait_for($child), 'a child that drops its cache');
    ok(-f $file && $cache->get('key') == 1, 'leaves the file to its parent');
    my @children = map { in_child(sub { my $grandchild = in_child(sub { $cache->set("g$_", 1) for 1 .. 50 }); wait_for($grandchild) or die }) } 1 .. 3;
    is(scalar(grep { !wait_for($_) } @children), 0, 'children of children');
    undef $cache;
    ok(!-e $file, 'which removes it');
}

# Programs of their own: what they say at their end.
sub program {
    my ($code) = @_;
    open my $out, '-|', $^X, (map { "-I$_" } @INC), '-e', 'open STDERR, ">&", \*STDOUT;' . $code or die $!;
    my $text = do { local $/; <$out> } // '';
    close $out;
    return ($? >> 8) . ": $text";
}
my $begin = 'use strict; use warnings; use Cache::Haypile;';
my $in    = sub { return "share_file => '" . new_file() . "'" };
is(program("$begin our \$c = Cache::Haypile->new(" . $in->() . '); $c->set(1, 2);'), '0: ', 'global destruction is silent');
is(program("$begin our \$c = Cache::Haypile->new(" . $in->() . '); $c->{self} = $c; our $k = $c->_keys; $k->next;'), '0: ', 'in a cycle');
is(program("$begin our (\$c, \$n); \$c = Cache::Haypile->new(" . $in->() . '); (undef, $n) = $c->_claim("k", -1); $c->close;'), '0: ',
    'a claim that outlives its cache');
is(program("$begin our \$c = Cache::Haypile->new(" . $in->()
            . ', write_action => "write_back", write_cb => sub { print "wrote $_[1]\n" }); $c->set("k", 1); exit 3'),
    "3: wrote k\n", 'changes are written back at the end');
is(program("$begin our \$c = Cache::Haypile->new(" . $in->() . '); $c->compute("k", sub { exit 4 })'), '4: ', 'exit in a computation');
is(program("$begin our \$c = Cache::Haypile->new(" . $in->() . '); $c->set(1, 2); my $p = fork; exit 0 if !$p; waitpid $p, 0; print $c->get(1), $?'),
    '0: 20', 'a child that ends in the usual way');

SKIP: {
    skip 'this perl has no threads', 5 if !$Config{useithreads};
    my $thread = $begin . ' use threads; our $c = Cache::Haypile->new(' . $in->() . ', serializer => ""); $c->set("a", 1);';
    is(program("$thread my \@t = map { my \$n = \$_; threads->create(sub { \$c->set(\"t\$n\", \$n); \$c->incr('a') for 1 .. 500; return \$c->get(\"t\$n\") }) } 1 .. 4;"
                . ' print join(",", map { $_->join } @t), " ", $c->get("a"), -f $c->{share_file} ? "" : " no file"'),
        '0: 1,2,3,4 2001', 'threads share a cache');
    is(program("$thread my \@t = map { threads->create(sub { \$c->compute('once', sub { select undef, undef, undef, .1; return threads->tid }) }) } 1 .. 4;"
                . ' my %seen = map { $_->join => 1 } @t; print scalar keys %seen'),
        '0: 1', 'of threads, one computes');
    is(program("$begin use threads; my \@w; our \$c = Cache::Haypile->new(" . $in->()
                . ', write_action => "write_back", write_cb => sub { print "$_[1] " }); $c->set("parent", 1);'
                . ' threads->create(sub { $c->set("thread", 1); return })->join; print "joined "; $c->empty;'),
        '0: thread joined parent ', 'each thread writes back what it has changed');
    is(program("$begin use threads; our \$c; \$c = Cache::Haypile->new(" . $in->()
                . ', read_cb => sub { return threads->create(sub { return $c->set("other", 1) ? "set" : "not" })->join }); print $c->get("k"), $c->get("other");'),
        '0: set1', 'a callback of one thread locks no other');
    is(program("$thread my \$k = \$c->_keys; print threads->create(sub { eval { \$k->next }; return \$@ =~ /of another thread/ ? 'mine' : 'no' })->join"),
        '0: mine', 'an iteration stays in its thread');
}

done_testing;
