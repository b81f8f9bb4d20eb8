//! `replay`: the hit ratios of real caches, each driven by the requests of traces.
//!
//! It is what the simulator predicts, measured: values are really stored, and every cache counts
//! as it counts.

mod job;
mod source;

pub use job::Replay;
pub use source::{Generated, REQUESTS, SEED, SIZES};
