# The bytes that a program's values become: serialisers and compressors, by the names that Cache::FastMmap has for them.
package Cache::Haypile::Values;

use strict;
use warnings;

use Carp ();

# An error is the program's that calls us.
our @CARP_NOT = ('Cache::Haypile');

my %COMPRESSORS = (
    zlib => sub {
        require Compress::Zlib;
        my $uncompress = \&Compress::Zlib::memGunzip;
        # It changes its argument.
        return (\&Compress::Zlib::memGzip, sub { &$uncompress(my $Tmp = shift) });
    },
    lz4    => sub { require Compress::LZ4;    return (\&Compress::LZ4::compress,    \&Compress::LZ4::uncompress) },
    snappy => sub { require Compress::Snappy; return (\&Compress::Snappy::compress, \&Compress::Snappy::uncompress) },
);

# Each takes a reference to the value, and returns one.
my %SERIALIZERS = (
    storable => sub {
        require Storable;
        return (\&Storable::freeze, \&Storable::thaw);
    },
    json => sub {
        my $class = eval { require JSON; 'JSON' } || do { require JSON::PP; 'JSON::PP' };
        my $json = $class->new->utf8->allow_nonref->canonical;
        return (sub { $json->encode(${ $_[0] }) }, sub { \$json->decode($_[0]) });
    },
    sereal => sub {
        require Sereal::Encoder;
        require Sereal::Decoder;
        my ($encoder, $decoder) = (Sereal::Encoder->new, Sereal::Decoder->new);
        return (sub { $encoder->encode($_[0]) }, sub { $decoder->decode($_[0]) });
    },
);

# Those whose values can name classes, of which perl then runs code.
my %RUNS_CODE = (storable => 1, sereal => 1);

# Returns what the options ask for: hash entries serialize, deserialize, compress and uncompress, as far as they are needed;
# runs_code, the name of a serialiser that does; and has_own_forms, unless a function of the program makes the bytes.
sub of_options {
    my ($options) = @_;
    my %codec;
    my $serializer = $options->{serializer};
    $serializer = $options->{raw_values} ? '' : 'storable' if !defined $serializer;
    if ($serializer ne '') {
        @codec{qw(serialize deserialize)} = _pair('serializer', $serializer, \%SERIALIZERS);
        $codec{runs_code} = $serializer if !ref $serializer && $RUNS_CODE{$serializer};
    }
    my $compressor = $options->{compressor};
    $compressor = $options->{compress} ? 'zlib' : '' if !defined $compressor;
    @codec{qw(compress uncompress)} = _pair('compressor', $compressor, \%COMPRESSORS) if $compressor;
    $codec{has_own_forms} = !ref $serializer && !ref $compressor && ($serializer ne 'json' || $compressor ne '');
    return \%codec;
}

sub _pair {
    my ($option, $name, $known) = @_;
    return @$name if ref $name eq 'ARRAY' && @$name == 2;
    my $load = $known->{$name}
        or Carp::croak("unrecognized value >$name< for `$option`: it is "
            . join(', ', map { "'$_'" } sort keys %$known)
            . ' or a pair of functions');
    my @pair = eval { $load->() };
    Carp::croak("`$option` $name cannot be loaded, install its package: $@") if $@;
    return @pair;
}

1;
