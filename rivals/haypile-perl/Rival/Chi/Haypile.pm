package Rival::Chi::Haypile;

# CHI over Cache::Haypile: what the operations of a job are on it. The file is one as without CHI.

use strict;
use warnings;

use parent qw(Rival::Chi Rival::Haypile);

use CHI::Driver::Haypile;

sub new {
    my ($class, $room) = @_;
    my $self = bless { room => $room, arguments => { Rival::Haypile::where($room) } }, $class;
    $self->open($room->{is_new});
    return $self;
}

# Opens the file; an empty one where `is_new`.
sub open {
    my ($self, $is_new) = @_;
    my %where = %{ $self->{arguments} };
    my %arguments = $where{url} ? (url => $where{url}) : (root_dir => '.', cache_size => $where{cache_size});
    unlink Rival::Haypile::SHARE_FILE if $is_new && !$where{url};
    $self->make(driver => 'Haypile', %arguments);
    return;
}

sub flush {
    my ($self) = @_;
    $self->{cache}->haypile->flush(1);
    return;
}

sub counts {
    my ($self) = @_;
    return (entries => scalar $self->{cache}->get_keys);
}

1;
