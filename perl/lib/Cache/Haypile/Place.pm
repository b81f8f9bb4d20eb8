# Where a cache lies: the URL, and the file, that options name.
package Cache::Haypile::Place;

use strict;
use warnings;

use Carp ();
use File::Spec;

# An error is the program's that calls us.
our @CARP_NOT = ('Cache::Haypile');

# The defaults of Cache::FastMmap.
use constant { PAGE_SIZE => 65_536, NUM_PAGES => 89 };
# The smallest file of the library.
use constant SMALLEST => 1 << 20;

my %UNITS = ('' => 1, k => 1 << 10, m => 1 << 20, g => 1 << 30);

# Returns hash entries url, share_file (where it is one of this module's), is_new and cache_size.
sub of_options {
    my ($options) = @_;
    if (defined(my $url = $options->{url})) {
        for my $other (qw(share_file cache_size page_size num_pages init_file permissions)) {
            Carp::croak("`url` and `$other` exclude each other: the URL says it, as in file:/tmp/app.haypile,size=64MiB")
                if defined $options->{$other};
        }
        return { url => $url };
    }
    my $file = $options->{share_file};
    Carp::croak('`share_file` is a path, and not a reference') if ref $file;
    $file = File::Spec->catfile(File::Spec->tmpdir, "sharefile-$$-" . time . '-' . int rand 100_000)
        if !defined $file || $file eq '';
    $file = File::Spec->rel2abs($file);
    my $size    = _size($options);
    my $escaped = $file;
    utf8::encode($escaped) if utf8::is_utf8($escaped);
    $escaped =~ s{([^A-Za-z0-9_./~-])}{sprintf '%%%02X', ord $1}ge;
    my @settings = ('size=' . ($size < SMALLEST ? SMALLEST : $size));
    push @settings, 'recreate=yes' if $options->{init_file};
    push @settings, 'allow_shared=yes'
        if $options->{trusts_others} || (($options->{permissions} || 0) & 022);
    return {
        url        => "file://$escaped?" . join('&', @settings),
        share_file => $file,
        is_new     => !-f $file,
        cache_size => $size,
    };
}

# Returns the bytes of `cache_size`, or of `num_pages` pages of `page_size`.
sub _size {
    my ($options) = @_;
    return _bytes('cache_size', $options->{cache_size}) if $options->{cache_size};
    my $page  = _bytes('page_size', $options->{page_size} || PAGE_SIZE);
    my $pages = $options->{num_pages} || NUM_PAGES;
    Carp::croak("`num_pages` is a number, and not '$pages'") if $pages !~ /^\d+$/;
    return $page * $pages;
}

sub _bytes {
    my ($option, $text) = @_;
    $text =~ /^\s*(\d+(?:\.\d+)?)\s*([kmg]?)(?:i?b)?\s*$/i
        or Carp::croak("`$option` is a number of bytes, or '512k' or '10m', and not '$text'");
    return int $1 * $UNITS{ lc $2 };
}

1;
