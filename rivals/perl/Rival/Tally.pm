package Rival::Tally;

# What came of operations, and what they are done with: the keys and values of a job. One for a whole job; a hash, for the loops that count in it.

use strict;
use warnings;

use List::Util qw(max);

sub new {
    my ($class, $job) = @_;
    my @heads = map { substr $_, 0, 8 } @{ $job->{values} };
    my $largest = max(0, map { length } @{ $job->{values} });
    return bless {
        keys       => $job->{keys},
        values     => $job->{values},
        heads      => \@heads,
        load       => loader($largest),
        compute_us => $job->compute_ms * 1000,
        map { $_ => 0 } qw(misses hit_bytes read_words wrong errors),
    }, $class;
}

# Makes the value of a key that is not there, and reads it as one that is: it is called in the place
# of `set`.
sub loader {
    my ($largest) = @_;
    my $room = "\0" x $largest;
    return sub {
        # A part is a copy, where the whole would be the same bytes.
        my $made = substr $_[2], 0;
        substr $room, 0, length $made, $made;
        return 1;
    };
}

# The value of a key was not taken, by what `set` gave.
sub failed {
    my ($self, $client, $key) = @_;
    my $why = $client->why_not_set($self->{keys}[$key], $self->{values}[$key]);
    $self->fail($why) if defined $why;
    return;
}

# Operations failed for a reason: one, if nothing else is said.
sub fail {
    my ($self, $why, $times) = @_;
    $self->{errors} += $times // 1;
    # A line of its own in the results.
    $self->{first_error} //= join ' ', split ' ', $why;
    return;
}

1;
