# Cache::Haypile under the name of Cache::FastMmap, for the test files of that distribution (scripts in perl/suites).
#
# Two things that its tests expect and nobody wants of a cache are added here: a value larger than a page is not stored, and
# permissions for others go together with values that run code.
package Cache::FastMmap;

use strict;
use warnings;

use parent 'Cache::Haypile';

our $VERSION = '1.63';

# Its tests look at them.
*LiveCaches = \%Cache::Haypile::LiveCaches;

my %UNITS = (k => 1 << 10, m => 1 << 20);

sub new {
    my $class   = shift;
    my %options = ref $_[0] eq 'HASH' ? %{ $_[0] } : @_;
    $options{permissions} //= 0640;
    $options{trusts_others} = 1;
    my $page = $options{page_size} || 65_536;
    $page *= $UNITS{ lc $1 } if $page =~ s/([km])$//i;
    my $self = $class->SUPER::new(%options);
    $self->{largest} = $page < 4096 ? 4096 : $page;
    return $self;
}

sub set {
    my $self = shift;
    return $self->_fits($_[0], $_[1]) ? $self->SUPER::set(@_) : 0;
}

sub get_and_set {
    my ($self, $key, $code) = @_;
    my $fits = 1;
    my @new  = $self->SUPER::get_and_set(
        $key,
        sub {
            my @new = $code->(@_);
            $fits = !@new || $self->_fits($key, $new[0]);
            return $fits ? @new : ();
        }
    );
    return wantarray ? @new : $new[0];
}

sub _fits {
    my ($self, $key, $value) = @_;
    my $stored = $self->_encoded($value);
    return length($key) + length($stored // '') <= $self->{largest};
}

sub _set_time_override { die "Cache::Haypile has no clock for tests\n" }

1;
