package Rival::Server;

# A memcached of a job's own, on a socket in the working directory.
#
# Each process of the job holds a shared lock on a file as long as it lives, however it ends. A guard,
# which process 0 starts, waits for the lock on that file for itself alone, and then ends the server.
# The server is the guard's child, and the kernel kills it if the guard is killed.

use strict;
use warnings;

use Fcntl qw(LOCK_EX LOCK_NB LOCK_SH);
use IO::Socket::UNIX;
use POSIX qw(WNOHANG);
use Time::HiRes qw(clock_gettime usleep);

use constant {
    SOCKET => 'memcached.sock',
    LOCK   => 'memcached.lock',
    LOG    => 'memcached.log',
    # How long the server may take until it can be connected to.
    START_SECONDS => 10,
    PAUSE_US      => 1000,
};

# Starts a server with these arguments.
sub start {
    my ($class, @arguments) = @_;
    my $lock = lock_file();
    flock $lock, LOCK_EX | LOCK_NB or die "another job uses the memcached in this directory\n";
    flock $lock, LOCK_SH or die LOCK . ": $!\n";
    unlink SOCKET;
    pipe my $reader, my $writer or die "pipe: $!\n";
    my $guard = fork // die "fork: $!\n";
    if ($guard == 0) {
        # Nothing of the runner's ends may happen here, such as what objects do at their end.
        eval { guard($lock, $writer, @arguments) };
        POSIX::_exit(1);
    }
    close $writer;
    my $pid = readline $reader;
    my $self = bless { lock => $lock, guard => $guard, pid => defined $pid ? $pid + 0 : 0 }, $class;
    $self->await_start;
    return $self;
}

# Joins the job of whoever has started the server.
sub join_job {
    my ($class) = @_;
    my $lock = lock_file();
    flock $lock, LOCK_SH | LOCK_NB or die "the memcached of this job is gone\n";
    return bless { lock => $lock }, $class;
}

# The processor time that the server has taken so far, in nanoseconds.
sub cpu_ns {
    my ($self) = @_;
    # The clock of another process, as clock_getcpuclockid makes it in Linux.
    return int(clock_gettime((~$self->{pid} << 3) | 2) * 1e9);
}

# What the server says of itself.
sub stats {
    my $socket = IO::Socket::UNIX->new(Peer => SOCKET)
        or die 'memcached is gone: ' . SOCKET . ": $!\n";
    print {$socket} "stats\r\n";
    my %stats;
    while (defined(my $line = readline $socket)) {
        return \%stats if $line =~ /\AEND/;
        $stats{$1} = $2 if $line =~ /\ASTAT (\S+) (\S*)/;
    }
    die "memcached has ended while it was asked\n";
}

# Leaves the job. Where it is to be `alone`, no other process is in it: waits until the server has
# ended, and removes its files.
sub leave {
    my ($self, $alone) = @_;
    close $self->{lock};
    return if !$alone;
    waitpid $self->{guard}, 0;
    unlink SOCKET, LOCK, LOG;
    return;
}

sub lock_file {
    open my $lock, '>>', LOCK or die LOCK . ": $!\n";
    return $lock;
}

sub await_start {
    my ($self) = @_;
    my $deadline = time + START_SECONDS;
    while (!IO::Socket::UNIX->new(Peer => SOCKET)) {
        my $has_ended = waitpid($self->{guard}, WNOHANG) == $self->{guard};
        if ($has_ended || time > $deadline) {
            open my $log, '<', LOG or die LOG . ": $!\n";
            local $/ = undef;
            die 'memcached cannot be started: ' . (readline($log) // '') . "\n";
        }
        usleep(PAUSE_US);
    }
    return;
}

# The guard: what it was started with, until no process of the job is left.
sub guard {
    my ($runners_lock, $writer, @arguments) = @_;
    # Whoever reads the runner's output is not to wait for this process.
    open STDIN,  '<', '/dev/null' or return;
    open STDOUT, '>', '/dev/null' or return;
    open STDERR, '>', LOG         or return;
    my $lock = lock_file();
    close $runners_lock;
    my $server = fork // return;
    if ($server == 0) {
        # Perl cannot ask for the signal itself.
        exec 'setpriv', '--pdeathsig', 'KILL', 'memcached', '-s', SOCKET, @arguments
            or POSIX::_exit(1);
    }
    print {$writer} "$server\n";
    close $writer;
    # A server that ends by itself is not waited for: nobody would be told.
    local $SIG{CHLD} = sub { POSIX::_exit(1) if waitpid($server, WNOHANG) == $server };
    POSIX::_exit(1) if waitpid($server, WNOHANG) == $server;
    while (!flock $lock, LOCK_EX) {
        return if !$!{EINTR};
    }
    $SIG{CHLD} = 'DEFAULT';
    kill KILL => $server;
    waitpid $server, 0;
    POSIX::_exit(0);
}

1;
