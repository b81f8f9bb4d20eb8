//! A runner's work: a directory of keys, values and operations.
//!
//! `docs/job.md` describes every byte, for runners of other languages. An experiment puts a
//! [`Population`] and lists of [`Ops`] together and has them [written](write()); a runner
//! [reads](Job::read) them back, and after that nothing about them can be wrong.

mod error;
pub(crate) mod evidence;
mod ops;
mod population;
mod read;
mod settings;
mod write;

pub use error::JobError;
pub use ops::{MAX_OPERAND, Op, Ops};
pub use population::{Population, VALUE_STEP};
pub use read::{Job, JobEntry};
pub use settings::{Interlude, JobOrigin, MAX_PROCESSES, SCHEMA, Settings, Timing};
pub(crate) use write::add_warm_up;
pub use write::write;

/// The names of the files of a job.
mod file {
    pub(super) const SETTINGS: &str = "job.txt";
    pub(super) const KEYS: &str = "keys.bin";
    pub(super) const INDEX: &str = "keys.idx";
    pub(super) const SIZES: &str = "sizes.bin";
    pub(super) const POOL: &str = "pool.bin";
    pub(super) const PREPARE: &str = "prepare.ops";

    /// Returns the name of the file with the timed operations of one thread of a job; threads are
    /// counted through all processes.
    pub(super) fn timed(thread: usize) -> String {
        format!("timed.{thread}.ops")
    }
}
