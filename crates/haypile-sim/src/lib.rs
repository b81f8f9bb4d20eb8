//! Cache traces, and the simulator that runs Haypile's own eviction policies on them.
//!
//! A trace is read once, by one of the readers of [`trace::format`], into a columnar [`Trace`] of
//! dense key numbers; every simulation then works on numbers alone.

pub mod advise;
pub mod curve;
pub mod reuse;
pub mod simulate;
pub mod trace;
mod whole_file;

pub use trace::Trace;
