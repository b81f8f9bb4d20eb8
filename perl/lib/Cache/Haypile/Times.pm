# Times as Cache::FastMmap has them: seconds, "10m", "2 hours", "never" and "now", and parts of a second.
package Cache::Haypile::Times;

use strict;
use warnings;

use Carp ();
use Exporter 'import';
use POSIX ();
use Time::HiRes ();

# An error is the program's that calls us.
our @CARP_NOT = ('Cache::Haypile');

our @EXPORT_OK = qw(ttl_after ttl_until expires_on NOW NEVER OF_CACHE);

# For a TTL in milliseconds: the entry has expired before it is written; it never does; the cache's own TTL.
use constant { NOW => 0, OF_CACHE => -1, NEVER => -2 };

my %MS = ('' => 1000, ms => 1, s => 1000, m => 60_000, h => 3_600_000, d => 86_400_000, w => 604_800_000);

# Returns the TTL of "10m", in milliseconds. Other text is, as in Cache::FastMmap, a time that is over.
sub ttl_after {
    my ($time) = @_;
    $time = '' if !defined $time;
    return NEVER if $time eq 'never';
    return NOW   if $time eq 'now';
    if ($time =~ /^\s*(\d+(?:\.\d*)?|\.\d+)\s*(ms\b|[smhdw]?)/i) {
        my $ttl = POSIX::ceil($1 * $MS{ lc $2 });
        # Beyond a thousand years, for the library counts in 64 bits.
        return $ttl > 3.2e13 ? NEVER : $ttl;
    }
    Carp::carp("'$time' is not a time, such as 90, '10m' or 'never': the entry expires at once")
        if $time ne '' && $time !~ /^-?\d+$/;
    return NOW;
}

# Returns the TTL that ends at this time, in seconds since 1970; 0 stands for never.
sub ttl_until {
    my ($time) = @_;
    return NEVER if $time == 0;
    my $ttl = POSIX::ceil(($time - Time::HiRes::time()) * 1000);
    return $ttl > 0 ? $ttl : NOW;
}

# Returns the time at which a TTL ends, in seconds since 1970; 0 if it never does, and -1 for that of the cache.
sub expires_on {
    my ($ttl) = @_;
    return $ttl == NEVER ? 0 : $ttl == OF_CACHE ? -1 : Time::HiRes::time() + $ttl / 1000;
}

1;
