//! Counts of a store.

mod counters;
mod event;
mod failures;
mod prometheus;

pub use counters::EventCounters;
pub use event::{Event, Stats};
pub(crate) use failures::Failures;

use crate::url::CacheUrl;

impl Stats {
    /// Returns the hit ratio, the number of hits per read of the store; `None` before the first
    /// read.
    pub fn hit_ratio(&self) -> Option<f64> {
        let reads = self.hits.saturating_add(self.misses);
        (reads > 0).then(|| self.hits as f64 / reads as f64)
    }
}

/// The times of loading a snapshot, in nanoseconds of wall time.
///
/// They are told apart as RelStorage's notes on its persistent cache tell them: reading the file, loading
/// what it has (there: unpickling), inserting it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loading {
    /// The time that reading the snapshot file took, in nanoseconds.
    pub read_ns: u64,
    /// The time of verifying the checksums of the snapshot's blocks and of selecting the entries to
    /// load, in nanoseconds.
    pub check_ns: u64,
    /// The time of copying the snapshot's entries and inserting them into the store, in
    /// nanoseconds.
    pub insert_ns: u64,
    /// The number of entries of the snapshot that were offered to the store. An entry that was
    /// written in the meantime stays as it is, and a store that has shrunk may take fewer.
    pub entries: u64,
}

/// The statistics of one level of a cache (such as the memory level above a server), with the
/// level's URL.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelStats {
    /// The [URL](crate::Store::url) of this level of the cache alone.
    pub url: CacheUrl,
    /// The statistics of this level of the cache.
    pub stats: Stats,
}

impl LevelStats {
    /// Returns the statistics `stats` together with the URL of the cache's level that they are
    /// about.
    pub fn new(url: CacheUrl, stats: Stats) -> Self {
        Self { url, stats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hit_ratio_needs_a_read() {
        assert_eq!(Stats::default().hit_ratio(), None);
        let stats = Stats { hits: 3, misses: 1, ..Stats::default() };
        assert_eq!(stats.hit_ratio(), Some(0.75));
    }
}
