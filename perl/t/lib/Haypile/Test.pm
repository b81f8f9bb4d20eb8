# Shared by the tests: a file of their own, and children.
package Haypile::Test;

use strict;
use warnings;

use Exporter 'import';
use File::Temp ();
use POSIX      ();
use Test::More;

use Cache::Haypile;

our @EXPORT_OK = qw(new_file new_cache in_child wait_for dies_with server);

my $directory = File::Temp->newdir('haypile-perl-XXXX', TMPDIR => 1);
my $files     = 0;

# Returns the path of a file that does not exist yet.
sub new_file { return "$directory/" . $files++ }

# Returns a cache of plain strings in a file of its own.
sub new_cache {
    return Cache::Haypile->new(share_file => new_file(), cache_size => '4m', serializer => '', @_);
}

# Runs a sub in a child of a fork, which ends without the rest of the test. Returns its process number.
sub in_child {
    my ($code) = @_;
    my $pid = fork // die "fork: $!";
    return $pid if $pid;
    my $is_well = eval { $code->(); 1 };
    print STDERR $@ if !$is_well;
    POSIX::_exit($is_well ? 0 : 1);
}

# Waits for a child, and says whether all was well with it.
sub wait_for {
    my ($pid) = @_;
    waitpid $pid, 0;
    return $? == 0;
}

my %servers;

# Starts a memcached or redis-server that ends with the test, and returns its URL; nothing if it is not installed, which is a failure
# where HAYPILE_REQUIRE_RIVALS=1 says so.
sub server {
    my ($name) = @_;
    my ($program) = grep { -x } map { "$_/$name" } split /:/, $ENV{PATH};
    if (!$program) {
        BAIL_OUT("$name is not installed, and required") if $ENV{HAYPILE_REQUIRE_RIVALS};
        return;
    }
    my $socket  = new_file();
    my @command = $name eq 'memcached'
        ? ($program, '-s', $socket, ($> == 0 ? ('-u', 'root') : ()))
        : ($program, '--port', 0, '--unixsocket', $socket, '--save', '', '--logfile', '/dev/null', '--dir', "$directory");
    my $pid = fork // die "fork: $!";
    if (!$pid) { exec @command or POSIX::_exit(127) }
    $servers{$pid} = $$;
    for (1 .. 6000) {
        last if -S $socket;
        select undef, undef, undef, 0.005;
    }
    return $name eq 'memcached' ? "memcached://$socket" : "redis+unix://$socket";
}

END {
    local $?;
    for my $pid (grep { $servers{$_} == $$ } keys %servers) {
        kill TERM => $pid;
        waitpid $pid, 0;
    }
}

sub dies_with {
    my ($code, $pattern, $name) = @_;
    local $@;
    my $is_alive = eval { $code->(); 1 };
    return ok(!$is_alive, "$name: dies") && like($@, $pattern, $name);
}

1;
