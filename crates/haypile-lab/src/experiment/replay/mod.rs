//! `replay`: the hit ratios of real caches, each driven by the requests of traces.
//!
//! It is what the simulator predicts, measured: values are really stored, and every cache counts
//! as it counts.

mod case;
mod job;
mod source;
mod table;

pub use case::{cases, write};
pub use job::Replay;
pub use source::{Generated, REQUESTS, SEED, SIZES};
pub use table::{Ratios, Row, ratios};

/// What the experiment is called.
pub const NAME: &str = "replay";

/// The parameter with the capacity in per cent of the bytes of the trace's keys.
pub const CAPACITY_PERCENT: &str = "capacity_percent";

/// The parameter with the bytes of all requests: what the bytes of hits are a share of.
pub const REQUESTED_BYTES: &str = "requested_bytes";

/// The size of values where a trace has none: a disk block, which the traces without sizes that
/// are known here are about.
pub const ASSUMED_BYTES: u32 = 4_096;

/// The capacities that are tried, in per cent.
pub const PERCENTS: [f64; 3] = [1.0, 10.0, 25.0];
