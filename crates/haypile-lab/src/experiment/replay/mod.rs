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
pub(crate) use table::byte_hit_ratio;
pub use table::{Ratios, Row, ratios};

/// What the experiment is called.
pub const NAME: &str = "replay";

/// The parameter with the capacity in per cent of the bytes of the trace's keys.
pub const CAPACITY_PERCENT: &str = "capacity_percent";

/// The parameter with the bytes of all requests: what the bytes of hits are a share of.
pub const REQUESTED_BYTES: &str = "requested_bytes";

/// The subjects where none are named.
pub const SUBJECTS: &str = "memory:policy=s3fifo,memory:policy=lru,memory:policy=slru,\
                            memory:policy=sieve,memory:policy=wtinylfu";
