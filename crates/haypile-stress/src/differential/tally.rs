//! Counts of a run, for its report.

use serde::Serialize;

/// Operations of a run, by their outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Tally {
    /// Steps performed on the cache and on the model.
    pub(crate) operations: u64,
    /// Reads that found a value.
    pub(crate) hits: u64,
    /// Reads that found none.
    pub(crate) misses: u64,
    /// Values that were stored.
    pub(crate) stored: u64,
    /// Calls that were refused because another process was in the way.
    pub(crate) busy: u64,
    /// Calls that were refused because there was no room.
    pub(crate) full: u64,
    /// Comparisons of values that were kept in place with what they were.
    pub(crate) pins_compared: u64,
    /// Runs of this number of steps, each on a cache of its own.
    pub(crate) runs: u64,
}

impl Tally {
    /// Adds the counts of another run.
    pub(crate) fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.hits += other.hits;
        self.misses += other.misses;
        self.stored += other.stored;
        self.busy += other.busy;
        self.full += other.full;
        self.pins_compared += other.pins_compared;
        self.runs += other.runs;
    }
}
