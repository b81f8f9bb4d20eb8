//! `loop` and `sequence`: the Necko benchmarks (a browser's HTTP cache), on caches.
//!
//! The source loads resources over HTTP. Here a load is a lookup in the cache, and where that misses
//! the value is made: copied from memory, as nothing has to come over a network. So a row says
//! what the cache costs, and not what it saves; the ratio of a miss to a hit, which in the source is
//! 13 for 50 bytes and 2.2 for 512 KiB, belongs to the network.
//!
//! | case | one run | caches |
//! |---|---|---|
//! | `call` | a lookup in an empty cache | all |
//! | `call + clear` | the same after clearing the cache | all |
//! | `miss (clear)` | clearing, a lookup, and a write of the value made | all but none |
//! | `miss (no-store)` | a lookup, and the value made, which is not written | all |
//! | `hit` | a lookup of an entry that is there | all but none |
//!
//! `loop` repeats each of them on one key. `sequence` does it once for each of 101 keys: first all
//! are loaded, then all are loaded again. (The source waits in between until everything is written; these
//! caches have nothing left to write when a `set` returns.)

pub mod looped;
mod options;
mod printout;
#[cfg(feature = "report")]
mod section;
pub mod sequence;
mod source;
mod table;

pub use options::{LoopOptions, Over, SequenceOptions};
pub use source::{SourceRow, source_rows};
pub use table::{Line, lines};

use crate::job::Settings;

/// The sizes of the source, in bytes.
pub const SIZES: [u32; 4] = [50, 1_024, 51_200, 524_288];

/// The lookups in which a cache that holds nothing has no part.
const NOT_NONE: &[&str] = &["none"];

/// The capacity of a subject that states none: the disk cache of the source.
const CAPACITY_BYTES: u64 = 1 << 30;

/// Keys look like the addresses of a browser's resources.
fn key(number: u32) -> String {
    format!("http://localhost:4444/resource?q={number}")
}

fn settings(seed: u64, value_bytes: u32) -> Settings {
    let entry_bytes = u64::from(value_bytes) + key(0).len() as u64;
    Settings::new(seed, CAPACITY_BYTES, CAPACITY_BYTES / entry_bytes)
}
