package Rival::FastMmap;

# Cache::FastMmap: what the operations of a job are on it.

use strict;
use warnings;

use parent 'Rival::InFile';

use Fcntl qw(LOCK_EX);
use IO::Handle;

# In the working directory, so that the processes of a job share it.
use constant SHARE_FILE => 'fastmmap';

# The lock of the process that makes the file, where no process is known to be the first.
use constant LOCK_FILE => 'fastmmap.lock';

use constant {
    # Its own default.
    PAGE_BYTES => 64 << 10,
    # The largest that it takes.
    MAX_PAGE_BYTES => 1 << 20,
    # "Larger than your largest key + value size + a few kbytes for the overhead".
    PAGE_OVERHEAD_BYTES => 4 << 10,
};

# The experiment `ratio` says how many pages of the default size there are at its capacity.
use constant {
    RATIO_CAPACITY_BYTES => 16_000_000,
    RATIO_PAGES          => 181,
};

sub new {
    my ($class, $room) = @_;
    my $self = bless {
        get       => Cache::FastMmap->can('get'),
        set       => Cache::FastMmap->can('set'),
        delete    => Cache::FastMmap->can('remove'),
        arguments => arguments($room),
    }, $class;
    $self->open($room->{is_new});
    return $self;
}

# What the cache is made with.
sub arguments {
    my ($room) = @_;
    my $page_bytes = page_bytes($room);
    return {
        share_file     => $room->{file} // SHARE_FILE,
        serializer     => '',
        page_size      => $page_bytes,
        num_pages      => pages($room->{capacity_bytes}, $page_bytes),
        unlink_on_exit => 0,
    };
}

# Opens a file that any process may be the first to open. "Use a separate lock file if you must to
# ensure only one child creates the file." It gets its name when it is whole, for that process may be
# killed.
sub new_shared {
    my ($class, $room) = @_;
    CORE::open my $lock, '>>', LOCK_FILE or die LOCK_FILE . ": $!\n";
    flock $lock, LOCK_EX or die LOCK_FILE . ": $!\n";
    if (!-e SHARE_FILE) {
        my $new = SHARE_FILE . '.new';
        my $self = $class->new({ %$room, file => $new, is_new => 1 });
        rename $new, SHARE_FILE or die SHARE_FILE . ": $!\n";
        $self->close(1);
    }
    CORE::close $lock;
    return $class->new({ %$room, is_new => 0 });
}

# Reads a key, or stores the value of `compute`; returns whether it was stored. The page stays locked
# during the computation.
sub compute {
    my ($self, $key, $compute) = @_;
    # Nothing is stored where it gives nothing: the value is there.
    my @found = $self->{cache}->get_and_set($key, sub { defined $_[1] ? () : $compute->() });
    return @found;
}

# Its name.
sub file { return SHARE_FILE }

# Opens the file; with new and empty pages where `is_new`.
sub open {
    my ($self, $is_new) = @_;
    $self->{cache} = Cache::FastMmap->new(%{ $self->{arguments} }, init_file => $is_new);
    return;
}

# The mapped pages are those of the file: syncing it writes them.
sub flush {
    CORE::open my $file, '+<', SHARE_FILE or die SHARE_FILE . ": $!\n";
    $file->sync or die SHARE_FILE . ": $!\n";
    return;
}

# The one reason that it has.
sub why_not_set {
    my ($self, $key, $value) = @_;
    return sprintf 'set of %d bytes of key and value returned false; a page has %d bytes',
        length($key) + length($value), $self->{arguments}{page_size};
}

# How many entries there are.
sub counts {
    my ($self) = @_;
    my @keys = $self->{cache}->get_keys(0);
    return (entries => scalar @keys, pages => $self->{arguments}{num_pages});
}

# Its default, or the power of two that the largest entry needs.
sub page_bytes {
    my ($room) = @_;
    if (defined(my $kib = $room->{options}{page})) {
        die "page=$kib: it takes pages of 4, 8, 16 ... 1024 KiB\n"
            if $kib !~ /\A[0-9]{1,4}\z/ || !grep { $kib == 4 << $_ } 0 .. 8;
        return $kib << 10;
    }
    my $page_bytes = PAGE_BYTES;
    my $needed = $room->{largest_bytes} + PAGE_OVERHEAD_BYTES;
    $page_bytes *= 2 while $page_bytes < $needed && $page_bytes < MAX_PAGE_BYTES;
    return $page_bytes;
}

# How many pages there are: what the experiment says, or as many as are within the capacity.
sub pages {
    my ($capacity_bytes, $page_bytes) = @_;
    return RATIO_PAGES if $capacity_bytes == RATIO_CAPACITY_BYTES && $page_bytes == PAGE_BYTES;
    return prime_up_to(int($capacity_bytes / $page_bytes));
}

# "Should be a prime number for best hashing". At least 1.
sub prime_up_to {
    my ($number) = @_;
    NUMBER: for (; $number > 2; --$number) {
        for (my $divisor = 2; $divisor * $divisor <= $number; ++$divisor) {
            next NUMBER if $number % $divisor == 0;
        }
        last;
    }
    return $number > 0 ? $number : 1;
}

1;
