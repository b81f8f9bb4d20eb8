# CHI's own tests of drivers: all of them, and nothing is skipped that they run for CHI::Driver::FastMmap.
use strict;
use warnings;
use lib 't/lib';
use Test::More;

BEGIN {
    for my $needed (qw(CHI Test::Class Test::Deep Test::Warn Test::Exception)) {
        next if eval "require $needed; 1";
        plan skip_all => "$needed is not installed: apt-get install libchi-perl libtest-class-perl libtest-deep-perl"
            . ' libtest-warn-perl libtest-exception-perl';
    }
}
# Before CHI, which has its log made there.
use CHI::Test;
use CHI::t::Driver::Haypile;

CHI::t::Driver::Haypile->runtests;
