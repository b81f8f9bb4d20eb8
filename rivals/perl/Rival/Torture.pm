package Rival::Torture;

# The processes of a torture (docs/torture.md): they write, read, compute or do as they are told, and report each operation.
#
#     PROGRAM run-torture ROLE PATH SEED SUBJECT NAME=NUMBER...
#
# `torture` of a subject makes its client of a hash with `capacity_bytes`, `largest_bytes` (of a key and
# its value) and `options`. That has `cache`, and the functions `get`, `set` (whether it was stored) and
# `delete` to call on it; the methods `why_not_set` and `clear`; possibly `is_busy`, which says whether an error means that
# nothing has changed because another process is stopped; and possibly `compute`, as in Rival::Subject, during which no
# other process computes.

use strict;
use warnings;

use Rival::Value;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my %ROLES = (
    writer => \&write_keys, reader => \&read_keys, computer => \&compute, client => \&do_orders);

# Executes the role until standard input ends. `open` makes the client.
sub run {
    my ($open, $role, $path, $seed, @numbers) = @_;
    my $orders = orders($role, $seed, @numbers);
    chdir $path or die "$path: $!\n";
    my $begun = now();
    my $client = $open->($orders->{capacity}, $orders->{largest_bytes});
    say_lines(sprintf "opened %d\n", now() - $begun);
    $ROLES{$role}->($client, $orders);
    return;
}

sub orders {
    my ($role, $seed, @numbers) = @_;
    die "unknown role '$role' (known: writer, reader, computer, client)\n" if !$ROLES{$role};
    my %orders = map { $_ => 0 }
        qw(capacity keys writers number common longest first audit delete fetch key);
    for my $number (@numbers) {
        my ($name, $value) = $number =~ /\A([a-z_]+)=([0-9]+)\z/
            or die "'$number' is not NAME=NUMBER\n";
        $orders{$name} = $value + 0;
    }
    die "'$seed' is not a number\n" if $seed !~ /\A[0-9]+\z/;
    $orders{draw} = Rival::Value->draw($seed);
    $orders{values} = Rival::Value->new(@orders{qw(common longest)});
    $orders{largest_bytes}
        = length(Rival::Value::key($orders{keys})) + $orders{values}->largest_bytes;
    $orders{writers} ||= 1;
    return \%orders;
}

# Looks for what is there, and then writes until nobody wants that any more.
sub write_keys {
    my ($client, $orders) = @_;
    my ($values, $draw) = @{$orders}{qw(values draw)};
    my ($cache, $get, $set, $delete) = @{$client}{qw(cache get set delete)};
    audit($client, $orders);
    my $own_keys = int($orders->{keys} / $orders->{writers});
    my ($deletes, $fetches) = @{$orders}{qw(delete fetch)};
    my $sequence = $orders->{first};
    my $said = '';
    while (!is_over()) {
        my $key = own($orders, Rival::Value::skewed($draw, $own_keys));
        my $name = Rival::Value::key($key);
        my $what = Rival::Value::below($draw, 100);
        if ($what < $deletes) {
            $said = perform($client, "${said}delete $key\n", sub { $cache->$delete($name); return });
            next;
        }
        if ($what < $deletes + $fetches) {
            my $value;
            $said = perform($client, "${said}get $key\n", sub { $value = $cache->$get($name); return });
            my ($time) = $said =~ /\Adone ([0-9]+)/ or next;
            if (defined $value) {
                my ($found, $wrong) = $values->judge($key, $value);
                $said = defined $wrong ? "wrong $key $wrong\n" : "hit $found $time\n";
                next;
            }
            $said = "miss $time\n";
        }
        my $value = $values->make($key, $sequence);
        $said = perform($client, "${said}set $key $sequence\n", sub {
            return $cache->$set($name, $value) ? undef : $client->why_not_set($name, $value);
        });
        ++$sequence;
    }
    say_lines("${said}end\n");
    return;
}

# The key of a writer's own number `rank`.
sub own {
    my ($orders, $rank) = @_;
    return $rank * $orders->{writers} + $orders->{number};
}

# Says what is there of the first keys.
sub audit {
    my ($client, $orders) = @_;
    my ($cache, $get) = @{$client}{qw(cache get)};
    my $said = '';
    for my $rank (0 .. $orders->{audit} - 1) {
        my $key = own($orders, $rank);
        my $value = eval { $cache->$get(Rival::Value::key($key)) };
        $said .= "failed 0 ${\one_line($@)}\n" if $@;
        next if !defined $value;
        my ($found, $wrong) = $orders->{values}->judge($key, $value);
        $said .= defined $wrong ? "wrong $key $wrong\n" : "found $key $found\n";
    }
    say_lines("${said}ready\n");
    return;
}

# Says what comes now, does it, and gives what is to be said of it. The operation gives why it was not
# done.
sub perform {
    my ($client, $said, $operation) = @_;
    say_lines($said);
    my $begun = now();
    my $failed = eval { $operation->() } // $@;
    my $time = now() - $begun;
    return "done $time\n" if $failed eq '';
    return is_busy($client, $failed) ? "busy $time\n" : "failed $time ${\one_line($failed)}\n";
}

# Reads a mix of keys; values have to be whole, and time must not run backwards.
sub read_keys {
    my ($client, $orders) = @_;
    my ($values, $draw, $keys) = @{$orders}{qw(values draw keys)};
    my ($cache, $get) = @{$client}{qw(cache get)};
    my %newest;
    say_lines("ready\n");
    while (defined(my $order = readline STDIN)) {
        my ($reads) = $order =~ /\Aread ([0-9]+)$/ or die "'$order' is no order\n";
        my ($hits, $busy, $failed, $longest, $said) = (0, 0, 0, 0, '');
        for (1 .. $reads) {
            my $key = Rival::Value::skewed($draw, $keys);
            my $name = Rival::Value::key($key);
            my $begun = now();
            my $value = eval { $cache->$get($name) };
            my $time = now() - $begun;
            $longest = $time if $time > $longest;
            if ($@ && is_busy($client, $@)) {
                ++$busy;
            }
            elsif ($@) {
                ++$failed;
                $said .= "failed ${\one_line($@)}\n";
            }
            next if !defined $value;
            ++$hits;
            my ($found, $wrong) = $values->judge($key, $value);
            my $newest = $newest{$key} // 0;
            $wrong //= "$found after $newest was read: it was overwritten" if $found < $newest;
            $newest{$key} = $found if !defined $wrong;
            $said .= "wrong $key $wrong\n" if defined $wrong;
        }
        say_lines("${said}round $reads $hits $busy $failed $longest\n");
    }
    say_lines("end\n");
    return;
}

# Computes a value that others wait for, or waits for the process that computes it.
sub compute {
    my ($client, $orders) = @_;
    my ($values, $key) = @{$orders}{qw(values key)};
    say_lines("ready\nasking\n");
    if (!$client->can('compute')) {
        say_lines("unsupported\nend\n");
        return;
    }
    my $begun = now();
    my ($value) = eval {
        $client->compute(Rival::Value::key($key), sub {
            say_lines("computing\n");
            # Nobody is there any more: a value must not come of it.
            exit 0 if (readline(STDIN) // '') ne "go\n";
            return $values->make($key, $orders->{first});
        });
    };
    my $time = now() - $begun;
    my ($found, $wrong) = defined $value ? $values->judge($key, $value) : ();
    my $said = defined $wrong ? "wrong $key $wrong"
        : defined $found ? "value $found $time"
        : "failed $time ${\one_line($@ || 'there is no value')}";
    say_lines("$said\nend\n");
    return;
}

# Does the orders of standard input, one after the other.
sub do_orders {
    my ($client, $orders) = @_;
    my ($cache, $get, $set, $delete) = @{$client}{qw(cache get set delete)};
    my $values = $orders->{values};
    my $ask = sub {
        my ($key) = @_;
        say_lines("computing\n");
        # Nobody is there any more: a value must not come of it.
        exit 0 if (readline(STDIN) // '') !~ /\Ago ([0-9]+)$/;
        return $values->make($key, $1 + 0);
    };
    my $found = sub {
        my ($word, $key, $value) = @_;
        my ($sequence, $wrong) = $values->judge($key, $value);
        return defined $wrong ? "wrong $key $wrong" : "$word $sequence";
    };
    my %operations = (
        get => sub {
            my ($key, $name) = @_;
            my $value = $cache->$get($name);
            return defined $value ? $found->('hit', $key, $value) : 'miss';
        },
        fill => sub {
            my ($key, $name) = @_;
            my $value = $cache->$get($name);
            return $found->('hit', $key, $value) if defined $value;
            $value = $ask->($key);
            $cache->$set($name, $value) or die $client->why_not_set($name, $value) . "\n";
            return 'stored';
        },
        delete => sub { my ($key, $name) = @_; $cache->$delete($name); return 'done' },
        clear => sub { $client->clear; return 'done' },
    );
    $operations{compute} = sub {
        my ($key, $name) = @_;
        my ($value) = $client->compute($name, sub { return $ask->($key) });
        return $found->('value', $key, $value);
    } if $client->can('compute');
    say_lines("ready\n");
    while (defined(my $order = readline STDIN)) {
        my ($word, $number) = $order =~ /\A(get|compute|fill|delete|invalidate|clear)(?: ([0-9]+))?$/
            or die "'$order' is no order\n";
        my $operation = $operations{$word};
        if (!$operation) {
            say_lines("unsupported\n");
            next;
        }
        my $begun = now();
        my $said = eval { $operation->(($number // 0) + 0, Rival::Value::key($number // 0)) };
        my $time = now() - $begun;
        $said = !defined $said ? (is_busy($client, $@) ? "busy $time" : "failed $time ${\one_line($@)}")
            : $said =~ /\Awrong / ? $said
            :                       "$said $time";
        say_lines("$said\n");
    }
    say_lines("end\n");
    return;
}

sub is_busy {
    my ($client, $error) = @_;
    return $client->can('is_busy') && $client->is_busy($error);
}

# Whether standard input has ended; nothing comes there.
sub is_over {
    my $ready = "\1";
    return select($ready, undef, undef, 0) > 0 && !sysread STDIN, my $read, 4096;
}

# What an error says.
sub one_line {
    my ($text) = @_;
    return substr join(' ', split ' ', $text), 0, 1000;
}

# Writes lines to the laboratory, by one system call.
sub say_lines {
    my ($lines) = @_;
    for (my $said = 0; $said < length $lines;) {
        $said += syswrite(STDOUT, $lines, length($lines) - $said, $said) // die "nobody listens: $!\n";
    }
    return;
}

# Nanoseconds.
sub now {
    return int(clock_gettime(CLOCK_MONOTONIC) * 1e9);
}

1;
