# CHI's own tests of drivers, for ours.
package CHI::t::Driver::Haypile;

use strict;
use warnings;

use CHI::Test;
use File::Temp qw(tempdir);
use base qw(CHI::t::Driver);

my $root_dir;

sub supports_expires_on_backend { 1 }

sub new_cache_options {
    my $self = shift;
    $root_dir ||= tempdir('chi-driver-haypile-XXXX', TMPDIR => 1, CLEANUP => 1);
    return ($self->SUPER::new_cache_options, root_dir => $root_dir, cache_size => '4m');
}

1;
