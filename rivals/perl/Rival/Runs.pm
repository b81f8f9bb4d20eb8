package Rival::Runs;

# What is timed: operations that are decoded, and the loops that do them.

use strict;
use warnings;

use List::Util qw(sum0);
use Rival::Job qw(GET SET MANY DELETE FRESH GETSET FLUSH WAIT CLEAR LOAD EXPIRE COMPUTE);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC CLOCK_PROCESS_CPUTIME_ID);

my %NAMES = (
    GET,    'get',   SET,    'set',   MANY, 'many', DELETE, 'delete', FRESH, 'fresh',
    GETSET, 'getset', FLUSH, 'flush', WAIT, 'wait', CLEAR, 'clear', LOAD, 'load',
    EXPIRE, 'expire', COMPUTE, 'compute',
);
my @COUNTED = (GET, SET, MANY, DELETE, GETSET, LOAD, EXPIRE, COMPUTE);
my @READS = (GET, MANY, GETSET, LOAD, COMPUTE);

# How long a value lives that is to expire.
use constant EXPIRY_SECONDS => 1;

# The operations of a file.
sub new {
    my ($class, $job, $name) = @_;
    my $runs = $job->operations($name);
    my %count;
    for my $run (@$runs) {
        my ($operation, $operands) = @$run;
        $count{$operation} += $operation == MANY ? sum0(map { scalar @$_ } @$operands) : @$operands;
        # A call for many takes their names.
        @$operands = map { [ $_, [ @{ $job->{keys} }[@$_] ] ] } @$operands if $operation == MANY;
    }
    my $self = bless { runs => $runs, count => \%count }, $class;
    $self->{operations} = sum0(@count{ grep { exists $count{$_} } @COUNTED });
    $self->{reads} = sum0(@count{ grep { exists $count{$_} } @READS });
    return $self;
}

# Whether there is such an operation.
sub has {
    my ($self, $operation) = @_;
    return exists $self->{count}{$operation};
}

# The keys that are written, as a hash.
sub written {
    my ($self) = @_;
    my %writes = map { $_ => 1 } SET, GETSET, EXPIRE, COMPUTE;
    return { map { $_ => 1 } map { @{ $_->[1] } } grep { $writes{ $_->[0] } } @{ $self->{runs} } };
}

# The keys of reads, one after the other.
sub keys_read {
    my ($self) = @_;
    return map { @{ $_->[1] } } grep { $_->[0] == GET } @{ $self->{runs} };
}

# Does everything, `executions` times; gives the nanoseconds that passed and that the process was
# given.
sub perform {
    my ($self, $client, $tally, $executions) = @_;
    my ($wall, $cpu) = clocks();
    perform_runs($client, $tally, $self->{runs}) for 1 .. $executions;
    my ($wall_end, $cpu_end) = clocks();
    return ($wall_end - $wall, $cpu_end - $cpu);
}

# Does everything, and times each operation by itself: lists of nanoseconds by name.
sub perform_each {
    my ($self, $client, $tally) = @_;
    my %times;
    for my $run (@{ $self->{runs} }) {
        my ($operation, $operands) = @$run;
        for my $operand (@$operands) {
            my @alone = ([ $operation, [$operand] ]);
            my $start = clock_gettime(CLOCK_MONOTONIC);
            perform_runs($client, $tally, \@alone);
            my $end = clock_gettime(CLOCK_MONOTONIC);
            push @{ $times{ $NAMES{$operation} } }, int(($end - $start) * 1e9);
        }
    }
    return \%times;
}

# The bytes of a value as words of eight, lowest byte first, and each of the bytes that are left, added
# up modulo 2^64.
sub words {
    my ($value) = @_;
    use integer;
    my $words = unpack '%64Q<*', $value;
    my $left = length($value) % 8;
    $words += unpack '%64C*', substr $value, -$left if $left;
    return $words;
}

# Does runs of operations. The client's functions are called on its cache, without anything
# between; a value is read for its checksum.
sub perform_runs {
    my ($client, $tally, $runs) = @_;
    my ($get, $set, $delete, $get_many) = @{$client}{qw(get set delete get_many)};
    my ($keys, $values, $heads) = @{$tally}{qw(keys values heads)};
    my ($misses, $wrong, $hit_bytes, $words) = (0, 0, 0, 0);
    for my $run (@$runs) {
        my ($operation, $operands) = @$run;
        my $cache = $client->{cache};
        if ($operation == GET || $operation == GETSET || $operation == LOAD) {
            # What is done with the value of a key that is not there.
            my $make = $operation == GETSET ? $set : $operation == LOAD ? $tally->{load} : undef;
            for my $key (@$operands) {
                my $value = $cache->$get($keys->[$key]);
                if (defined $value) {
                    my $size = length $value;
                    if ($size == length $values->[$key] && substr($value, 0, 8) eq $heads->[$key]) {
                        # What words does, without a call.
                        use integer;
                        $words += unpack '%64Q<*', $value;
                        my $left = $size % 8;
                        $words += unpack '%64C*', substr $value, -$left if $left;
                        $hit_bytes += $size;
                    }
                    else {
                        ++$wrong;
                    }
                }
                else {
                    ++$misses;
                    if ($make) {
                        $cache->$make($keys->[$key], $values->[$key])
                            or $tally->failed($client, $key);
                    }
                }
            }
        }
        elsif ($operation == SET) {
            for my $key (@$operands) {
                $cache->$set($keys->[$key], $values->[$key]) or $tally->failed($client, $key);
            }
        }
        elsif ($operation == MANY) {
            for my $many (@$operands) {
                my ($numbers, $names) = @$many;
                # Where there is no such call, each is read by itself.
                if (!$get_many) {
                    perform_runs($client, $tally, [ [ GET, $numbers ] ]);
                    next;
                }
                my $found = $cache->$get_many(@$names);
                for my $at (0 .. $#$names) {
                    my $key = $numbers->[$at];
                    my $value = $found->{ $names->[$at] };
                    if (defined $value) {
                        my $size = length $value;
                        my $is_sized = $size == length $values->[$key];
                        if ($is_sized && substr($value, 0, 8) eq $heads->[$key]) {
                            use integer;
                            $words += words($value);
                            $hit_bytes += $size;
                        }
                        else {
                            ++$wrong;
                        }
                    }
                    else {
                        ++$misses;
                    }
                }
            }
        }
        elsif ($operation == DELETE) {
            for my $key (@$operands) {
                $cache->$delete($keys->[$key]);
            }
        }
        elsif ($operation == EXPIRE) {
            for my $key (@$operands) {
                $cache->$set($keys->[$key], $values->[$key], EXPIRY_SECONDS)
                    or $tally->failed($client, $key);
            }
        }
        elsif ($operation == COMPUTE) {
            compute($client, $tally, $_) for @$operands;
        }
        elsif ($operation == CLEAR) {
            $client->clear;
        }
        elsif ($operation == FLUSH) {
            $client->flush;
        }
        elsif ($operation == WAIT) {
            Time::HiRes::usleep($operands->[0] * 1000);
        }
        else {
            $client->fresh;
        }
    }
    $tally->{misses}    += $misses;
    $tally->{wrong}     += $wrong;
    $tally->{hit_bytes} += $hit_bytes;
    use integer;
    $tally->{read_words} += $words;
    return;
}

# Reads a key, or has its value computed.
sub compute {
    my ($client, $tally, $key) = @_;
    my ($name, $due) = ($tally->{keys}[$key], $tally->{values}[$key]);
    my $is_computed = 0;
    my $compute = $client->can('compute') // \&compute_aside;
    my ($value, $is_stored) = $client->$compute($name, sub {
        $is_computed = 1;
        Time::HiRes::usleep($tally->{compute_us});
        return $due;
    });
    if ($is_computed) {
        ++$tally->{misses};
        $tally->failed($client, $key) if !$is_stored;
    }
    my $size = length $due;
    if (length $value != $size || substr($value, 0, 8) ne $tally->{heads}[$key]) {
        ++$tally->{wrong};
    }
    elsif (!$is_computed) {
        use integer;
        $tally->{read_words} += words($value);
        $tally->{hit_bytes} += $size;
    }
    return;
}

# The same on a cache that leaves it to its users: each that misses computes.
sub compute_aside {
    my ($client, $name, $compute) = @_;
    my ($cache, $get, $set) = @{$client}{qw(cache get set)};
    my $value = $cache->$get($name);
    return ($value, 0) if defined $value;
    $value = $compute->();
    return ($value, scalar $cache->$set($name, $value));
}

# Reads every key and compares the whole value; gives how many were there and right, and how many of
# these are not among those written before.
sub verify {
    my ($client, $tally, $before) = @_;
    my ($cache, $get) = @{$client}{qw(cache get)};
    my ($right, $new) = (0, 0);
    for my $key (0 .. $#{ $tally->{keys} }) {
        my $value = $cache->$get($tally->{keys}[$key]);
        next if !defined $value;
        if ($value eq $tally->{values}[$key]) {
            ++$right;
            ++$new if $before && !$before->{$key};
        }
        else {
            ++$tally->{wrong};
        }
    }
    return ($right, $new);
}

# What passed and what the process was given, in nanoseconds.
sub clocks {
    return map { int(clock_gettime($_) * 1e9) } CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID;
}

# What is said of single operations; `times` is not empty.
sub percentiles {
    my ($times) = @_;
    my @times = sort { $a <=> $b } @$times;
    my %share = (p50 => .5, p90 => .9, p99 => .99, p999 => .999);
    my %at;
    for my $name (keys %share) {
        my $at = int(@times * $share{$name});
        $at{$name} = $times[ $at > $#times ? -1 : $at ];
    }
    my $mean = sprintf '%.0f', sum0(@times) / @times;
    return (count => scalar @times, %at, max => $times[-1], mean => $mean);
}

1;
