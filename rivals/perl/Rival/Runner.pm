package Rival::Runner;

# A runner of the laboratory (docs/job.md): does jobs on caches, on one thread.
#
#     PROGRAM list-subjects
#     PROGRAM run-job DIRECTORY SUBJECT [--process NUMBER]
#     PROGRAM run-torture ROLE PATH SEED SUBJECT NAME=NUMBER...
#
# Rival::Subject says what a subject is.

use strict;
use warnings;

use Cwd qw(getcwd);
use File::Path qw(remove_tree);
use List::Util qw(max);
use Rival::Job qw(FLUSH GET);
use Rival::Runs;
use Rival::Subject;
use Rival::Tally;
use Rival::Torture;

# What the arguments say, of one of `subjects`; gives the exit status.
sub main {
    my ($subjects, @arguments) = @_;
    $| = 1;
    my ($command, $directory, $text, @rest) = @arguments;
    $command //= '';
    if ($command eq 'list-subjects' && @arguments == 1) {
        for my $subject (@$subjects) {
            my ($name, $version, $about) = @{$subject}{qw(name version about)};
            say_line(join "\t", $name, Rival::Subject::usage($subject), 'perl', $version, $about);
        }
        return 0;
    }
    if ($command eq 'run-torture' && @arguments >= 5) {
        return done(sub { run_torture($subjects, @arguments[ 1 .. $#arguments ]) });
    }
    my $is_process = !@rest
        || @rest == 2 && $rest[0] eq '--process' && $rest[1] =~ /\A[0-9]+\z/;
    if ($command ne 'run-job' || !defined $text || !$is_process) {
        print STDERR "usage: $0 list-subjects | run-job DIRECTORY SUBJECT [--process NUMBER]",
            " | run-torture ROLE PATH SEED SUBJECT NAME=NUMBER...\n";
        return 2;
    }
    return done(sub { run_job($subjects, $directory, $text, $rest[1] // 0) });
}

# Does something, or says why it cannot be done; gives the exit status.
sub done {
    my ($work) = @_;
    return 0 if eval { $work->(); 1 };
    say_line('error ' . join ' ', split ' ', $@);
    return 2;
}

sub run_torture {
    my ($subjects, $role, $path, $seed, $text, @numbers) = @_;
    my ($subject, $options) = Rival::Subject::find($subjects, $text);
    die "$subject->{name} takes no part in tortures\n" if !$subject->{torture};
    Rival::Subject::load($subject);
    my $open = sub {
        my ($capacity_bytes, $largest_bytes) = @_;
        return $subject->{torture}->({
            capacity_bytes => $capacity_bytes * ($options->{room} // 1),
            largest_bytes  => $largest_bytes,
            options        => $options,
        });
    };
    Rival::Torture::run($open, $role, $path, $seed, @numbers);
    return;
}

sub run_job {
    my ($subjects, $directory, $text, $process) = @_;
    my ($subject, $options) = Rival::Subject::find($subjects, $text);
    my $job = Rival::Job->new($directory);
    my $processes = $job->number('processes', 1);
    my $is_open_timed = ($job->{settings}{timing} // '') eq 'open';
    refuse_what_cannot_be_done($subject, $job, $process, $processes, $is_open_timed);
    my $prepare = Rival::Runs->new($job, 'prepare.ops');
    my $runs = Rival::Runs->new($job, "timed.$process.ops");
    my $flushes = $prepare->has(FLUSH) || $runs->has(FLUSH);
    die "$subject->{name} cannot do FLUSH: it keeps nothing on disk\n"
        if $flushes && !$subject->{is_kept};
    my $tally = Rival::Tally->new($job);
    # Before the memory is noted: code is not memory of a cache.
    Rival::Subject::load($subject);
    my ($resident) = memory();
    my ($keys, $values) = @{$job}{qw(keys values)};
    my @sizes = map { length($keys->[$_]) + length($values->[$_]) } 0 .. $#$keys;
    my $open = sub {
        my ($is_new, $users) = @_;
        return $subject->{open}->({
            capacity_bytes => $job->number('capacity_bytes') * ($options->{room} // 1),
            largest_bytes  => max(0, @sizes),
            is_new         => $is_new,
            options        => $options,
            job            => $job,
            processes      => $users // $processes,
            fail           => sub { $tally->fail(@_) },
        });
    };

    my (%results, $client);
    if ($is_open_timed) {
        say_line('ready');
        return if !is_told('go');
        ($client, %results) = open_and_read($open, $runs, $tally);
    }
    else {
        my $warm_up = $job->number('warm_up', 0);
        if ($warm_up) {
            in_folder("warm-up.$process", sub {
                my $warmed = $open->(1, 1);
                $prepare->perform($warmed, $tally, 1);
                $runs->perform($warmed, $tally, $warm_up);
                $warmed->close(0);
            });
            $results{warm_up} = $warm_up;
        }
        $client = $open->($process == 0);
        if ($process == 0) {
            $prepare->perform($client, $tally, 1);
            ($results{verified_before}) = Rival::Runs::verify($client, $tally)
                if $job->number('verify_before');
        }
        @{$tally}{qw(misses hit_bytes read_words)} = (0, 0, 0);
        say_line('ready');
        return if !is_told('go');
        my $executions = $job->number('executions');
        # Until all processes have done their part: the laboratory says `verify` then.
        my $server_cpu_ns = $process == 0 && $client->can('server_cpu_ns') && $client->server_cpu_ns;
        @results{qw(wall_ns cpu_ns)} = $runs->perform($client, $tally, $executions);
        $results{operations} = $runs->{operations} * $executions;
        $results{hits} = $runs->{reads} * $executions - $tally->{misses};
        $results{server_cpu_ns} = -$server_cpu_ns if $server_cpu_ns;
    }
    @results{qw(misses hit_bytes)} = @{$tally}{qw(misses hit_bytes)};
    $results{read_words} = sprintf '%u', $tally->{read_words};
    my ($now, $peak) = memory();
    say_line('timed');
    return if !is_told('verify');
    $client->check if $client->can('check');
    $results{server_cpu_ns} += $client->server_cpu_ns if $results{server_cpu_ns};
    @results{qw(memory_bytes memory_peak_bytes)}
        = map { $_ > $resident ? $_ - $resident : 0 } $now, $peak;
    if ($process == 0) {
        # A server is a part of the cache.
        my $server = $client->can('server_bytes') ? $client->server_bytes : 0;
        $results{$_} += $server for qw(memory_bytes memory_peak_bytes);
        %results = (%results, $client->counts);
        @results{qw(verified_after verified_new)}
            = Rival::Runs::verify($client, $tally, $prepare->written)
            if $job->number('verify_after');
    }
    if ($job->{settings}{timing} eq 'each') {
        my $times = $runs->perform_each($client, $tally);
        for my $name (keys %$times) {
            my %found = Rival::Runs::percentiles($times->{$name});
            $results{"latency_${name}_$_"} = $found{$_} for keys %found;
        }
    }
    # Again, for what was verified: a server that has ended since then looks empty.
    $client->check if $client->can('check');
    %results = (
        %results,
        (map { $_ => $tally->{$_} } qw(errors wrong)),
        (defined $tally->{first_error} ? (first_error => $tally->{first_error}) : ()),
        version  => $subject->{version},
        language => 'perl',
    );
    # What is to be found later stays; anything else is removed.
    $client->close($is_open_timed || $flushes || $processes > 1);
    say_line("$_ $results{$_}") for sort keys %results;
    say_line('end');
    return;
}

sub refuse_what_cannot_be_done {
    my ($subject, $job, $process, $processes, $is_open_timed) = @_;
    my ($name, $threads) = ($subject->{name}, $job->number('threads'));
    die "$name is measured on one thread, not on $threads; ask for --threads 1\n" if $threads != 1;
    die "$name cannot be shared by processes\n" if $processes > 1 && !$subject->{is_shared};
    die "there is no process $process; the job is for $processes, from 0\n"
        if $process >= $processes;
    die "$name cannot be opened again: it keeps nothing on disk\n"
        if $is_open_timed && !$subject->{is_kept};
    die "a job with the timing open has no warm_up\n"
        if $is_open_timed && $job->number('warm_up', 0);
    return;
}

# Does something in a new and empty folder as the working directory, which is removed.
sub in_folder {
    my ($path, $work) = @_;
    my $before = getcwd() // die "the working directory: $!\n";
    remove_tree($path);
    mkdir $path or die "$path: $!\n";
    chdir $path or die "$path: $!\n";
    my $is_done = eval { $work->(); 1 };
    my $why = $@;
    chdir $before or die "$before: $!\n";
    remove_tree($path);
    die $why if !$is_done;
    return;
}

# The timed part begins with the opening: what an earlier process has left is read.
sub open_and_read {
    my ($open, $runs, $tally) = @_;
    my @keys = $runs->keys_read;
    my @start = Rival::Runs::clocks();
    my %results;
    my $note = sub {
        my ($name) = @_;
        my @now = Rival::Runs::clocks();
        @results{ "${name}wall_ns", "${name}cpu_ns" } = ($now[0] - $start[0], $now[1] - $start[1]);
    };
    my $client = $open->(0);
    $note->('open_');
    for my $at (0 .. $#keys) {
        my $misses = $tally->{misses};
        Rival::Runs::perform_runs($client, $tally, [ [ GET, [ $keys[$at] ] ] ]);
        next if $tally->{misses} > $misses;
        $note->('first_hit_');
        Rival::Runs::perform_runs($client, $tally, [ [ GET, [ @keys[ $at + 1 .. $#keys ] ] ] ]);
        last;
    }
    $note->('');
    return ($client, %results, operations => scalar @keys, hits => @keys - $tally->{misses});
}

# Writes a line to the laboratory.
sub say_line {
    my ($line) = @_;
    print "$line\n";
    return;
}

# Waits for a line; whether it was the one that is due.
sub is_told {
    my ($line) = @_;
    return (readline(STDIN) // '') eq "$line\n";
}

# Resident memory of a process, by default this one, now and at most, in bytes.
sub memory {
    my ($process) = @_;
    $process //= 'self';
    open my $status, '<', "/proc/$process/status" or die "/proc/$process/status: $!\n";
    my %kib = map { /\A(VmRSS|VmHWM):\s+([0-9]+)/ ? ($1 => $2) : () } <$status>;
    return map { $_ * 1024 } @kib{qw(VmRSS VmHWM)};
}

1;
