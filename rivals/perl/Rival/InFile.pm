package Rival::InFile;

# The base of clients of a cache in a file of the working directory. They have `open`, which opens it, empty where its argument
# says so, and `file`, its name.

use strict;
use warnings;

# Replaces the cache by a new, empty one.
sub fresh {
    my ($self) = @_;
    $self->{cache} = undef;
    $self->open(1);
    return;
}

# Removes all entries.
sub clear {
    my ($self) = @_;
    $self->{cache}->clear;
    return;
}

# Leaves the file only if it `keeps` what is in it.
sub close {
    my ($self, $keeps) = @_;
    $self->{cache} = undef;
    unlink $self->file if !$keeps;
    return;
}

1;
