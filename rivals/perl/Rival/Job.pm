package Rival::Job;

# A job as docs/job.md describes it: keys, values and operations, read from a directory.

use strict;
use warnings;

use Exporter 'import';

our @EXPORT_OK = qw(GET SET MANY DELETE FRESH GETSET FLUSH WAIT CLEAR LOAD EXPIRE COMPUTE);

use constant {
    SCHEMA     => 3,
    GET        => 0,
    SET        => 1,
    MANY       => 2,
    DELETE     => 3,
    FRESH      => 4,
    GETSET     => 5,
    FLUSH      => 6,
    WAIT       => 7,
    CLEAR      => 8,
    LOAD       => 9,
    EXPIRE     => 10,
    COMPUTE    => 11,
    OPERAND    => (1 << 28) - 1,
    VALUE_STEP => 61,
    # The longest that computing a value may take.
    MAX_COMPUTE_MS => 60_000,
};

# Those that are done to the cache as a whole, and count as none.
my %IS_WHOLE = map { $_ => 1 } FRESH, FLUSH, WAIT, CLEAR;

# Reads everything but the operations. `keys` and `values` are lists by the numbers of the keys.
sub new {
    my ($class, $directory) = @_;
    my $self = bless { directory => $directory }, $class;
    my @lines = grep { length } split /\n/, $self->_bytes('job.txt');
    $self->{settings} = { map { split / /, $_, 2 } @lines };
    my $schema = $self->number('schema');
    die "the job has schema $schema, known is ${\SCHEMA}\n" if $schema > SCHEMA;
    my @ends  = $self->_words('keys.idx');
    my @sizes = $self->_words('sizes.bin');
    my $count = $self->number('keys');
    die "$directory: $count keys have ${\scalar @ends} places and ${\scalar @sizes} sizes\n"
        if @ends != $count + 1 || @sizes != $count;
    my $keys = $self->_bytes('keys.bin');
    my ($pool, $span) = ($self->_bytes('pool.bin'), $self->number('pool_span'));
    for my $key (0 .. $count - 1) {
        my ($start, $size) = ($key * VALUE_STEP % $span, $sizes[$key]);
        die "$directory: key $key has no bytes, or no value\n"
            if $ends[$key] > $ends[ $key + 1 ]
            || $ends[ $key + 1 ] > length $keys
            || $start + $size > length $pool;
        push @{ $self->{keys} }, substr $keys, $ends[$key], $ends[ $key + 1 ] - $ends[$key];
        my $value = substr $pool, $start, $size;
        my $head  = $size < 8 ? $size : 8;
        substr $value, 0, $head, substr pack('Q<', $key), 0, $head;
        push @{ $self->{values} }, $value;
    }
    return $self;
}

# A setting that is a number; `otherwise` is what it is where it is left out.
sub number {
    my ($self, $name, $otherwise) = @_;
    my $number = $self->{settings}{$name} // $otherwise;
    die "job.txt has no number '$name'\n" if !defined $number || $number !~ /\A[0-9]+\z/;
    return $number;
}

# How long it takes to compute a value, in milliseconds.
sub compute_ms {
    my ($self) = @_;
    my $compute_ms = $self->number('compute_ms', 0);
    die "compute_ms is $compute_ms; it is at most ${\MAX_COMPUTE_MS}\n"
        if $compute_ms > MAX_COMPUTE_MS;
    return $compute_ms;
}

# The operations of a file as a list of runs of one kind: [operation, operands]. The operands of
# MANY are lists of keys, one for each call.
sub operations {
    my ($self, $name) = @_;
    my @code = $self->_words($name);
    my $keys = @{ $self->{keys} };
    my @runs;
    my $at = 0;
    while ($at < @code) {
        my ($operation, $operand) = ($code[$at] >> 28, $code[$at] & OPERAND);
        ++$at;
        die "$name: unknown operation $operation\n" if $operation > COMPUTE;
        my $is_whole = $IS_WHOLE{$operation};
        my @read = $is_whole ? () : $operand;
        if ($operation == MANY) {
            die "$name: it ends before its operations do\n" if $at + $operand > @code;
            @read    = @code[ $at .. $at + $operand - 1 ];
            $operand = [@read];
            $at += @read;
        }
        die "$name: a key that is none of the $keys\n" if grep { $_ >= $keys } @read;
        push @runs, [ $operation, [] ] if !@runs || $runs[-1][0] != $operation || $is_whole;
        push @{ $runs[-1][1] }, $operand;
    }
    return \@runs;
}

sub _words {
    my ($self, $name) = @_;
    return unpack 'V*', $self->_bytes($name);
}

sub _bytes {
    my ($self, $name) = @_;
    my $path = "$self->{directory}/$name";
    open my $file, '<:raw', $path or die "$path: $!\n";
    local $/ = undef;
    return scalar(<$file>) // '';
}

1;
