package Rival::Server;

# A memcached of a job's own. It listens on a socket in the working directory, or on a port of this
# machine's own address, which it chooses itself and writes into a file there.
#
# Each process of the job holds a shared lock on a file as long as it lives, however it ends. A guard,
# which process 0 starts, waits for the lock on that file for itself alone, and then ends the server.
# The server is the guard's child, and the kernel kills it if the guard is killed.

use strict;
use warnings;

use Fcntl qw(LOCK_EX LOCK_NB LOCK_SH);
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX qw(WNOHANG);
use Time::HiRes qw(clock_gettime usleep);

use constant {
    SOCKET => 'memcached.sock',
    PORT   => 'memcached.port',
    LOCK   => 'memcached.lock',
    LOG    => 'memcached.log',
    HOST   => '127.0.0.1',
    # How long the server may take until it can be connected to.
    START_SECONDS => 10,
    PAUSE_US      => 1000,
};

# How it is told to listen. No other server can be given the port in between: the kernel chooses it
# when the server binds, and the file has its name only when the server listens.
my %LISTENS = (
    socket => ['-s', SOCKET],
    ip     => ['-l', HOST, '-p', -1, '-U', 0],
);

# The version of memcached, or nothing if there is none.
sub version {
    my ($version) = (qx{memcached -V 2>/dev/null} // '') =~ /([0-9]+\.[0-9.]+)/;
    return $version;
}

# Starts a server that listens on a `socket` or by `ip`, with these arguments.
sub start {
    my ($class, $listens, @arguments) = @_;
    my $lock = lock_file();
    flock $lock, LOCK_EX | LOCK_NB or die "another job uses the memcached in this directory\n";
    flock $lock, LOCK_SH or die LOCK . ": $!\n";
    unlink SOCKET, PORT;
    pipe my $reader, my $writer or die "pipe: $!\n";
    my $guard = fork // die "fork: $!\n";
    if ($guard == 0) {
        # Nothing of the runner's ends may happen here, such as what objects do at their end.
        eval { guard($lock, $writer, @{ $LISTENS{$listens} }, @arguments) };
        POSIX::_exit(1);
    }
    close $writer;
    my $pid = readline $reader;
    my $self = bless {
        lock    => $lock,
        listens => $listens,
        guard   => $guard,
        pid     => defined $pid ? $pid + 0 : 0,
    }, $class;
    $self->await_start;
    return $self;
}

# Joins the job of the process that has started the server, which listens in this way.
sub join_job {
    my ($class, $listens) = @_;
    my $lock = lock_file();
    flock $lock, LOCK_SH | LOCK_NB or die "the memcached of this job is gone\n";
    return bless { lock => $lock, listens => $listens }, $class;
}

# Where it is reached, as clients write it; nothing while it has no port yet.
sub address {
    my ($self) = @_;
    return SOCKET if $self->{listens} eq 'socket';
    open my $file, '<', PORT or return;
    my ($port) = (readline($file) // '') =~ /\ATCP INET: ([0-9]+)/
        or die PORT . ": memcached has written no port there\n";
    return HOST . ":$port";
}

# A connection to it, or nothing.
sub connection {
    my ($self) = @_;
    my $address = $self->address // return;
    return IO::Socket::UNIX->new(Peer => $address) if $self->{listens} eq 'socket';
    return IO::Socket::INET->new(PeerAddr => $address);
}

# The processor time that the server has taken so far, in nanoseconds.
sub cpu_ns {
    my ($self) = @_;
    # The clock of another process, as clock_getcpuclockid makes it in Linux.
    return int(clock_gettime((~$self->{pid} << 3) | 2) * 1e9);
}

# What the server says of itself.
sub stats {
    my ($self) = @_;
    my $socket = $self->connection or die "memcached is gone: $!\n";
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
    unlink SOCKET, PORT, LOCK, LOG;
    return;
}

sub lock_file {
    open my $lock, '>>', LOCK or die LOCK . ": $!\n";
    return $lock;
}

sub await_start {
    my ($self) = @_;
    my $deadline = time + START_SECONDS;
    while (!$self->connection) {
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
    # The reader of the runner's output must not wait for this process.
    open STDIN,  '<', '/dev/null' or return;
    open STDOUT, '>', '/dev/null' or return;
    open STDERR, '>', LOG         or return;
    my $lock = lock_file();
    close $runners_lock;
    my $server = fork // return;
    if ($server == 0) {
        $ENV{MEMCACHED_PORT_FILENAME} = PORT;
        # Perl cannot ask for the signal itself.
        exec 'setpriv', '--pdeathsig', 'KILL', 'memcached', @arguments
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
