# A server of eight processes that share a cache which their parent has opened (--preload-app).
use strict;
use warnings;
use lib 't/lib';
use Haypile::Test qw(new_file);
use Test::More;

BEGIN {
    for my $needed (qw(Starman Plack::Runner HTTP::Tiny)) {
        plan skip_all => "$needed is not installed: apt-get install starman" if !eval "require $needed; 1";
    }
}
use IO::Socket::INET;

my ($cache, $app) = (new_file(), new_file());
open my $file, '>', $app or die $!;
print $file <<"END";
use Cache::Haypile;
my \$cache = Cache::Haypile->new(share_file => '$cache', serializer => '');
\$cache->set(parent => \$\$);
sub {
    my \$computed = \$cache->compute('slow', sub { select undef, undef, undef, .3; return \$cache->incr('runs', 1, { initial => 0 }) });
    \$cache->incr(visits => 1, { initial => 0 });
    return [200, ['Content-Type' => 'text/plain'], ["\$\$ \$computed " . \$cache->get('parent')]];
};
END
close $file;

my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 1) or die $!;
my $port   = $socket->sockport;
close $socket;
my $server = fork // die;
if (!$server) {
    open STDERR, '>', '/dev/null';
    exec $^X, (map { "-I$_" } @INC), '-S', 'starman', '--preload-app', '--workers', 8, '--listen', "127.0.0.1:$port", $app or POSIX::_exit(127);
}
my $http = HTTP::Tiny->new(keep_alive => 0, timeout => 30);
my $answer;
for (1 .. 600) {
    $answer = $http->get("http://127.0.0.1:$port/");
    last if $answer->{success};
    select undef, undef, undef, 0.05;
}
ok($answer->{success}, 'the server answers') or BAIL_OUT('Starman does not answer');
my $inspect = Cache::Haypile->new(share_file => $cache, serializer => '', unlink_on_exit => 0);
$inspect->remove($_) for qw(slow runs visits);

# Twenty clients at once.
my @pipes;
for (1 .. 20) {
    my $pid = open(my $pipe, '-|') // die;
    if (!$pid) {
        print $http->get("http://127.0.0.1:$port/")->{content} // 'failed';
        close STDOUT;
        POSIX::_exit(0);
    }
    push @pipes, $pipe;
}
my @answers = map { scalar readline $_ } @pipes;
my %workers = map { (split ' ')[0] => 1 } @answers;
cmp_ok(scalar keys %workers, '>', 1, 'several workers: ' . scalar keys %workers);
is(scalar(grep { !/^\d+ 1 \d+$/ } @answers), 0, 'all have the value of one computation') or diag explain \@answers;
is($inspect->get('runs'), 1, 'which ran once');
is($inspect->get('visits'), 20, 'every visit was counted');
kill QUIT => $server;
waitpid $server, 0;
ok(!-e $cache, 'the file goes with the parent');

done_testing;
