package Rival::Value;

# Keys and values of a torture (docs/torture.md), and the numbers that they are drawn from. A reader
# of a value knows whether it is whole.

use strict;
use warnings;
# A perl without 64 bits fails before this.
no warnings 'portable';

# Whole numbers of 64 bits that wrap; a shift to the right keeps the sign, which is cut off.
use integer;

use constant {
    STEP       => 0x9E3779B97F4A7C15,
    ONE        => 0xBF58476D1CE4E5B9,
    OTHER      => 0x94D049BB133111EB,
    HEAD_BYTES => 24,
    # What is left of 64 bits after a shift.
    TOP_33 => (1 << 33) - 1,
    TOP_34 => (1 << 34) - 1,
    TOP_37 => (1 << 37) - 1,
    TOP_48 => (1 << 48) - 1,
    TOP_53 => (1 << 53) - 1,
};

# The values of a torture, by the bounds of their lengths.
sub new {
    my ($class, $common, $longest) = @_;
    return bless { common => $common, longest => $longest }, $class;
}

# Numbers that follow from a seed: SplitMix64. The seed is text, for it has 64 bits.
sub draw {
    my ($class, $seed) = @_;
    my $state = 0;
    $state = $state * 10 + $_ for split //, $seed;
    return sub { return mix($state += STEP) };
}

# A number below `end`, which is drawn.
sub below {
    my ($draw, $end) = @_;
    return remainder($draw->(), $end);
}

# The same, small ones more often.
sub skewed {
    my ($draw, $end) = @_;
    my $bits = $draw->() >> 11 & TOP_53;
    no integer;
    my $share = $bits / 2**53;
    return int($end * $share * $share * $share);
}

# A key as the cache has it.
sub key {
    my ($key) = @_;
    return "torture:$key";
}

# The length of a value in bytes.
sub size {
    my ($self, $key, $sequence) = @_;
    my $bits = mix(identity($key, $sequence));
    # 48 bits: below zero is none.
    my $more = $bits >> 16 & TOP_48;
    return HEAD_BYTES + $more % ($self->{longest} + 1) if ($bits & 255) == 0;
    return HEAD_BYTES + ($more % ($self->{common} + 1) >> ($bits >> 8 & 7));
}

# The longest value, in bytes.
sub largest_bytes {
    my ($self) = @_;
    my ($common, $longest) = @{$self}{qw(common longest)};
    return HEAD_BYTES + ($common > $longest ? $common : $longest);
}

# The value of a key with this sequence number.
sub make {
    my ($self, $key, $sequence) = @_;
    my $size = $self->size($key, $sequence);
    my $state = identity($key, $sequence);
    my @words = ($key, $sequence, $size);
    for (1 .. ($size - HEAD_BYTES + 7) / 8) {
        # `mix`, without a call.
        my $bits = $state += STEP;
        $bits = ($bits ^ ($bits >> 30 & TOP_34)) * ONE;
        $bits = ($bits ^ ($bits >> 27 & TOP_37)) * OTHER;
        push @words, $bits ^ ($bits >> 31 & TOP_33);
    }
    return substr pack('q<*', @words), 0, $size;
}

# What is found in a value that was read under a key: its sequence number, and what is wrong with it,
# nothing if it is whole.
sub judge {
    my ($self, $key, $value) = @_;
    my $has = length $value;
    return (0, "it has $has bytes, less than any value") if $has < HEAD_BYTES;
    my ($its_key, $sequence, $size) = unpack 'q<3', $value;
    my ($key_text, $text, $size_text) = map { sprintf '%u', $_ } $its_key, $sequence, $size;
    return (0, "it is the value of key $key_text") if $its_key != $key;
    my $due = $self->size($key, $sequence);
    return (0, "$text has $due bytes, its head says $size_text, and it has $has")
        if $due != $size || $due != $has;
    my $whole = $self->make($key, $sequence);
    return ($text) if $value eq $whole;
    my ($same) = ($value ^ $whole) =~ /\A(\0*)/;
    return (0, "$text is not its own from byte ${\length $same} on");
}

# What filler follows from.
sub identity {
    my ($key, $sequence) = @_;
    return mix($key) + mix(~$sequence);
}

# Makes bits out of bits.
sub mix {
    my ($bits) = @_;
    $bits = ($bits ^ ($bits >> 30 & TOP_34)) * ONE;
    $bits = ($bits ^ ($bits >> 27 & TOP_37)) * OTHER;
    return $bits ^ ($bits >> 31 & TOP_33);
}

# Of all 64 bits, none of which is a sign here.
sub remainder {
    my ($bits, $end) = @_;
    no integer;
    return unpack('Q', pack 'q', $bits) % $end;
}

1;
