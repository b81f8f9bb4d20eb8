//! Counts of a run, for its report.

use serde::Serialize;

/// Counts of the operations of a differential test's runs, by their outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Tally {
    /// The number of operations on the cache that the runs performed.
    pub(crate) operations: u64,
    /// The number of reads that found a value.
    pub(crate) hits: u64,
    /// The number of reads that found no value.
    pub(crate) misses: u64,
    /// The number of values that were stored.
    pub(crate) stored: u64,
    /// The number of operations that the cache refused because another process was in the way.
    pub(crate) busy: u64,
    /// The number of operations that the cache refused because it had no room.
    pub(crate) full: u64,
    /// The number of comparisons of values kept pinned in the cache with their earlier bytes.
    pub(crate) pins_compared: u64,
    /// The number of runs, each on its own cache.
    pub(crate) runs: u64,
}

impl Tally {
    /// Adds the counts of the operations of other runs to these.
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
