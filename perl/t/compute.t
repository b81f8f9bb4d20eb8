# One computes, however many processes ask.
use strict;
use warnings;
use lib 't/lib';
use Haypile::Test qw(new_file new_cache in_child wait_for dies_with);
use Test::More;
use Time::HiRes qw(time sleep);

my $cache = new_cache();
is($cache->compute('key', sub { return "of $_[0]" }), 'of key', 'computed');
is($cache->compute('key', sub { die }), 'of key', 'once');
is($cache->compute('undef', sub { return undef }), undef, 'undef');
is($cache->compute('undef', sub { die }), undef, 'is a value');
dies_with(sub { $cache->compute('dies', sub { die "sub\n" }) }, qr/^sub$/, 'a sub that dies');
is($cache->compute('dies', sub { return 'later' }), 'later', 'holds nothing');
dies_with(sub { $cache->compute('self', sub { $cache->compute('self', sub { }) }) }, qr/asks for 'self'/, 'itself');
is($cache->compute('outer', sub { return 'o' . $cache->compute('inner', sub { return 'i' }) }), 'oi', 'within another');
$cache->compute('removed', sub { $cache->remove('removed'); return 'old' });
ok(!$cache->exists('removed'), 'a removal wins');
is($cache->compute('now', sub { return 1 }, 'now'), 1, 'for its caller alone');
ok(!$cache->exists('now'), 'nothing is stored');
my $ran = 0;
for my $leaves (1 .. 3) {
    $cache->compute('left', sub { $ran++; no warnings 'exiting'; next });
}
is($ran, 3, 'a sub that leaves by next');
is($cache->compute('left', sub { return 1 }), 1, 'holds nothing');

# Returns a sub that notes who has computed, in a file, and takes as long.
sub slow_sub {
    my ($log, $seconds) = @_;
    return sub {
        open my $file, '>>', $log or die $!;
        syswrite $file, "$$\n";
        sleep $seconds;
        return "by $$";
    };
}

sub lines {
    my ($path) = @_;
    open my $file, '<', $path or return ();
    return map { s/\n//r } <$file>;
}

{
    my $log = new_file();
    my @children = map {
        in_child(sub { $cache->compute('crowd', slow_sub($log, 0.3)) =~ /^by \d+$/ or die 'no value' })
    } 1 .. 6;
    is(scalar(grep { !wait_for($_) } @children), 0, 'a crowd of processes');
    is(scalar(lines($log)), 1, 'one computes');
}
{
    # Whoever computes is killed: another one takes over.
    my $log   = new_file();
    my $first = in_child(sub { $cache->compute('killed', slow_sub($log, 600)) });
    sleep 0.005 until lines($log);
    my $second = in_child(sub { $cache->compute('killed', sub { return 'second' }) eq 'second' or die });
    kill KILL => $first;
    wait_for($first);
    ok(wait_for($second), 'another takes over from the dead');
    is($cache->get('killed'), 'second', 'and stores');
}
{
    # A wait that a signal ends.
    my $log   = new_file();
    my $first = in_child(sub { $cache->compute('waited', slow_sub($log, 600)) });
    sleep 0.005 until lines($log);
    my $begin = time;
    dies_with(
        sub {
            local $SIG{ALRM} = sub { die "alarm\n" };
            Time::HiRes::alarm(0.2);
            $cache->compute('waited', sub { die 'not this one' });
        },
        qr/^alarm$/, 'an alarm ends a wait'
    );
    cmp_ok(time - $begin, '<', 20, 'soon');
    kill KILL => $first;
    wait_for($first);
    is($cache->compute('waited', sub { return 'now' }), 'now', 'nobody holds it');
}
{
    # A child that was forked within a computation, and goes on with it.
    my $child;
    my $value = $cache->compute('forked', sub { $child = fork // die; return $child ? 'parent' : 'child' });
    if (!$child) {
        # The value of this process is its own.
        POSIX::_exit($value eq 'child' ? 0 : 1);
    }
    ok(wait_for($child), 'a child within a computation gets its own value');
    is($cache->get('forked'), 'parent', 'its parent stores');
}
{
    # Counting by many: nothing is lost.
    $cache->set('count', 0);
    my @children = map { in_child(sub { $cache->get_and_set('count', sub { return $_[1] + 1 }) for 1 .. 500 }) } 1 .. 4;
    wait_for($_) or fail('a child') for @children;
    is($cache->get('count'), 2000, 'get_and_set of four processes');
    $cache->set('count', 0);
    @children = map { in_child(sub { $cache->incr('count') for 1 .. 500 }) } 1 .. 4;
    wait_for($_) or fail('a child') for @children;
    is($cache->get('count'), 2000, 'incr of four processes');
}

{
    # A handler that closes the cache, during a wait.
    my $log    = new_file();
    my $closed = new_cache();
    my $first  = in_child(sub { $closed->compute('waited', slow_sub($log, 0.4)) });
    sleep 0.005 until lines($log);
    local $SIG{ALRM} = sub { $closed->close };
    Time::HiRes::alarm(0.1);
    my $value = eval { $closed->compute('waited', sub { return 'own' }) };
    ok(defined $value || $@ =~ /closed/, 'a handler that closes the cache');
    wait_for($first);
}
is($cache->compute('counted', sub { return $cache->get_and_set('counted', sub { return 1 }) }), 1, 'get_and_set within');

done_testing;
