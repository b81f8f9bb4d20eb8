package Rival::Chi::FastMmap;

# CHI over Cache::FastMmap: what the operations of a job are on it. The file is made as without CHI.

use strict;
use warnings;

use parent qw(Rival::Chi Rival::FastMmap);

use CHI::Driver::FastMmap;

sub new {
    my ($class, $room) = @_;
    my $arguments = Rival::FastMmap::arguments($room);
    # CHI has a serializer by that name itself, and tells the driver to have none.
    delete $arguments->{serializer};
    my $self = bless { room => $room, arguments => $arguments }, $class;
    $self->open($room->{is_new});
    return $self;
}

# Opens the file; with new and empty pages where `is_new`.
sub open {
    my ($self, $is_new) = @_;
    $self->make(
        driver => 'FastMmap',
        # It would make a directory elsewhere, although the file is named.
        root_dir => '.',
        %{ $self->{arguments} },
        init_file => $is_new,
    );
    return;
}

1;
