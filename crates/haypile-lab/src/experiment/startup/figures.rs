//! The figures of a start.

use haypile_measure::figure::Figure;
use haypile_measure::result::Sample;
use haypile_number::Quantity;

/// The figure of the time from the start of a command until it was ready.
pub(super) static READY: Figure =
    Figure::median("ready", "ready", "time until it is ready", Quantity::Time, |sample| {
        Some(sample.wall_ns as f64)
    });
/// The figure of the processor time of all processes of a started command.
pub(super) static CPU: Figure = Figure::median(
    "tree-cpu",
    "CPU",
    "processor time of all its processes",
    Quantity::Time,
    |sample| Some(sample.cpu_ns as f64),
);
/// The figure of the time from the start of a command until its processes were idle.
pub(super) static SETTLED: Figure =
    Figure::median("settled", "settled", "time until it is quiet", Quantity::Time, |sample| {
        count(sample, "settled_ns")
    });
/// From the first to the last operation on its cache.
static SPAN: Figure = Figure::median(
    "span",
    "cache in use",
    "time from the first to the last operation on its cache",
    Quantity::Time,
    |sample| count(sample, "span_ns"),
);
/// The figure of the peak memory of all processes of a started command.
pub(super) static MEMORY: Figure =
    Figure::median("peak-memory", "memory", "most memory", Quantity::Bytes, |sample| {
        sample.memory_bytes.map(|bytes| bytes as f64)
    });
/// Bytes that it read, from memory or not.
static READ: Figure =
    Figure::median("read", "read", "bytes that it read", Quantity::Bytes, |sample| {
        count(sample, "read_bytes")
    });
/// Bytes that came from a disk.
static DISK_READ: Figure = Figure::median(
    "disk-read",
    "from disk",
    "bytes that it read from a disk",
    Quantity::Bytes,
    |sample| count(sample, "disk_read_bytes"),
);
/// Page faults that read from a disk.
static MAJOR_FAULTS: Figure = Figure::median(
    "major-faults",
    "major faults",
    "page faults that read from a disk",
    Quantity::Number,
    |sample| count(sample, "major_faults"),
);

/// The figures of wall time of a started command, which other work on the machine changes.
pub(super) static WALL_FIGURES: [&Figure; 3] = [&READY, &SETTLED, &SPAN];

/// All figures of started commands (times, memory, bytes read), in the order of tables.
pub(super) static START_FIGURES: [&Figure; 8] =
    [&READY, &CPU, &SETTLED, &SPAN, &MEMORY, &READ, &DISK_READ, &MAJOR_FAULTS];

fn count(sample: &Sample, name: &str) -> Option<f64> {
    sample.counts.get(name).map(|count| *count as f64)
}
