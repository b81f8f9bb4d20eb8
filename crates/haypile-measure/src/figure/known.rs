//! The known figures.

use haypile_number::Quantity;

use super::{Estimator, Figure};
use crate::result::{MEMORY_FOUND, Sample};

/// The name of the case parameter that holds the total size of the values of all requests, in bytes; byte hit ratios
/// are relative to it.
pub const REQUESTED_BYTES: &str = "requested_bytes";

/// Nanoseconds in a second.
pub const SECOND_NS: f64 = 1e9;

macro_rules! figures {
    ($($(#[$doc:meta])* $id:ident = $name:literal, $title:literal, $what:literal, $quantity:ident,
        $estimator:expr;)*) => {
        $(
            $(#[$doc])*
            pub static $id: Figure = Figure {
                name: $name,
                title: $title,
                what: $what,
                quantity: Quantity::$quantity,
                estimator: $estimator,
            };
        )*

        /// All known figures, such as processor time per operation, in the order in which results list them.
        pub static FIGURES: &[&Figure] = &[$(&$id),*];
    };
}

use Estimator::{Centre, CentreUnless, Median, PerCentre, Ratio};

figures! {
    /// Processor time of the subject's own processes per operation.
    CPU = "cpu", "CPU", "processor time per operation", Time, Centre(cpu);
    /// Wall time per operation; with several threads, the time between two operations of all together.
    WALL = "wall", "Wall", "wall time per operation", Time, Centre(wall);
    /// Processor time of the subject's server per operation, in addition to that of the client.
    SERVER = "server", "Server CPU", "processor time of the server per operation", Time, Centre(server);
    /// Processor time of client and server together.
    TOGETHER = "together", "CPU with server", "processor time of client and server together", Time,
        Centre(|sample| Some(cpu(sample)? + server(sample).unwrap_or(0.0)));
    /// Resident memory that the subject takes.
    MEMORY = "memory", "Memory", "resident memory", Bytes,
        CentreUnless(MEMORY_FOUND, |sample| above_zero(sample.memory_bytes));
    /// Operations per second of the client's processor.
    CPU_RATE = "cpu-rate", "Per CPU second", "operations per second of processor time", Rate,
        PerCentre(SECOND_NS, cpu);
    /// Operations per second of client's and server's processor time.
    TOGETHER_RATE = "together-rate", "Per CPU second with server",
        "operations per second of client's and server's processor time", Rate,
        PerCentre(SECOND_NS, |sample| Some(cpu(sample)? + server(sample).unwrap_or(0.0)));
    /// Operations per second of wall time.
    WALL_RATE = "wall-rate", "Per second", "operations per second", Rate, PerCentre(SECOND_NS, wall);
    /// Processor time per operation as the source of the workload counts operations.
    SOURCE_CPU = "source-cpu", "CPU", "processor time per operation of the source", Time,
        Centre(|sample| per_source(sample, sample.cpu_ns));
    /// Wall time per operation as the source of the workload counts operations.
    SOURCE_WALL = "source-wall", "Wall", "wall time per operation of the source", Time,
        Centre(|sample| per_source(sample, sample.wall_ns));
    /// Processor time of the whole timed part.
    PART_CPU = "part-cpu", "CPU", "processor time of the whole part", Time,
        Centre(|sample| above_zero(Some(sample.cpu_ns)));
    /// Wall time of the whole timed part.
    PART_WALL = "part-wall", "Wall", "wall time of the whole part", Time,
        Centre(|sample| above_zero(Some(sample.wall_ns)));
    /// Wall time until a saved store is open.
    OPEN = "open", "Open", "wall time until it is open", Time, Centre(|sample| counted(sample, "open_wall_ns"));
    /// Wall time until the first hit of a saved store.
    FIRST_HIT = "first-hit", "First hit", "wall time until the first hit", Time,
        Centre(|sample| counted(sample, "first_hit_wall_ns"));
    /// Time to read the file of a store that loads all of it.
    LOAD_READ = "load-read", "Reading the file", "time to read the file", Time,
        Centre(|sample| counted(sample, "load_read_ns"));
    /// Time to check the file of a store that loads all of it.
    LOAD_CHECK = "load-check", "Checking it", "time to check what was read", Time,
        Centre(|sample| counted(sample, "load_check_ns"));
    /// Time to insert the entries of a store that loads all of its file.
    LOAD_INSERT = "load-insert", "Inserting", "time to insert what was read", Time,
        Centre(|sample| counted(sample, "load_insert_ns"));
    /// The length of a subject's files.
    FILE = "file", "File", "size of the files", Bytes, Centre(|sample| counted(sample, "file_bytes"));
    /// The space of a subject's files on disk: files may have holes.
    DISK = "disk", "On disk", "blocks on disk", Bytes, Centre(|sample| counted(sample, "disk_bytes"));
    /// The number of keys that the check after the timed part found with their values.
    KEYS_FOUND = "keys-found", "Keys found", "keys found afterwards", Number,
        Median(|sample| counted(sample, "verified_after"));
    /// Wall time of a second pass of the whole part, with the cache open.
    AGAIN = "again", "Again", "wall time once more", Time, Centre(|sample| counted(sample, "again_ns"));
    /// Calls of `stat` by all processes.
    STAT_CALLS = "stat-calls", "Stat calls", "calls of stat", Number,
        Median(|sample| counted(sample, "stat_calls"));
    /// Number of reads that missed; for icons, the answers that there is none.
    MISSES = "misses", "Misses", "misses", Number, Median(|sample| Some(sample.misses as f64));
    /// Hit ratio: sum of hits over sum of reads.
    HIT_RATIO = "hit-ratio", "Hit ratio", "hit ratio", HitRatio, Ratio(hits_of_reads);
    /// Byte hit ratio: sum of the bytes of hits over the sum of all requested bytes.
    BYTE_HIT_RATIO = "byte-hit-ratio", "Byte hit ratio", "byte hit ratio", HitRatio, Ratio(bytes_of_requested);
    /// Computations, each of which is a read that missed, over keys.
    COMPUTATIONS = "computations", "Per key", "computations per key", Count,
        Ratio(|sample| Some((sample.misses as f64, keys(sample)?)));
    /// Wall time per key.
    KEY_WALL = "key-wall", "Wall per key", "wall time per key", Time,
        Centre(|sample| Some(sample.wall_ns as f64 / keys(sample)?));
}

fn cpu(sample: &Sample) -> Option<f64> {
    sample.cpu_ns_per_operation()
}

fn wall(sample: &Sample) -> Option<f64> {
    sample.wall_ns_per_operation()
}

fn server(sample: &Sample) -> Option<f64> {
    let operations = above_zero(Some(sample.operations))?;
    Some(above_zero(sample.server_cpu_ns)? / operations)
}

fn above_zero(number: Option<u64>) -> Option<f64> {
    number.filter(|number| *number > 0).map(|number| number as f64)
}

fn counted(sample: &Sample, name: &str) -> Option<f64> {
    sample.counts.get(name).map(|count| *count as f64)
}

fn per_source(sample: &Sample, time_ns: u64) -> Option<f64> {
    let named = sample.parameters.get("source_operations").and_then(serde_json::Value::as_u64);
    Some(time_ns as f64 / above_zero(Some(named.unwrap_or(sample.operations)))?)
}

fn keys(sample: &Sample) -> Option<f64> {
    above_zero(sample.parameters.get("keys")?.as_u64())
}

#[expect(clippy::unnecessary_wraps, reason = "it is one of several estimators' functions")]
fn hits_of_reads(sample: &Sample) -> Option<(f64, f64)> {
    let hits = sample.hits as f64;
    Some((hits, hits + sample.misses as f64))
}

fn bytes_of_requested(sample: &Sample) -> Option<(f64, f64)> {
    let requested = sample.parameters.get(REQUESTED_BYTES)?.as_f64()?;
    Some((counted(sample, "hit_bytes")?, requested))
}
