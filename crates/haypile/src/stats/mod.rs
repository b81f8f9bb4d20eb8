//! What a store counts.

mod prometheus;

pub use prometheus::prometheus;

/// Counts since a store was opened, and what it holds now.
///
/// A store that cannot know a number leaves it at zero and says so in its own documentation. Other
/// crates start from the default and fill in what they know. An operation that ends in an error is
/// counted nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Reads that found a value. `contains` is no read.
    pub hits: u64,
    /// Reads that found none, or an expired one, or one that is [`corrupt`](Self::corrupt).
    pub misses: u64,
    /// Writes that were accepted, whether or not the entry was retained: `set`, and `add`,
    /// `replace` and `cas` where their condition held, and what [`counts`](Self::counts) counts.
    pub sets: u64,
    /// Writes by `add`, `replace` and `cas` whose condition did not hold.
    pub unmet: u64,
    /// Deletions of an entry that was there. `clear` counts none.
    pub deletes: u64,
    /// Deletions that found no entry, or by `delete_version` one of another version.
    pub delete_misses: u64,
    /// New TTLs, by `touch`, for an entry that was there.
    pub touches: u64,
    /// Calls of `touch` that found no entry.
    pub touch_misses: u64,
    /// Calls of `incr` and `decr` that found a counter. Each is also one of [`sets`](Self::sets).
    pub counts: u64,
    /// Calls of `incr` and `decr` that found no entry.
    pub count_misses: u64,
    /// Entries that left because room was needed.
    pub evictions: u64,
    /// Entries that left because their TTL had passed.
    pub expired: u64,
    /// New entries that were accepted and not retained, because the policy preferred to keep what
    /// it had.
    pub declined: u64,
    /// Values that were found and could not be read back, because their bytes were damaged. Each
    /// was a miss to who asked.
    pub corrupt: u64,
    /// Operations on entries that a remote store answered by itself, as an empty cache would,
    /// because its server did not. Each is also counted as what it returned.
    pub unreachable: u64,
    /// Entries held now. It may include some that have expired and have not been met since.
    pub entries: u64,
    /// Bytes held now: keys, values and metadata of the entries that `entries` counts.
    pub bytes: u64,
    /// The bound on [`bytes`](Self::bytes) now; `None` where there is none or the store cannot
    /// tell.
    pub capacity_bytes: Option<u64>,
}

impl Stats {
    /// Hits per read; `None` before the first read.
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn hit_ratio(&self) -> Option<f64> {
        let reads = self.hits + self.misses;
        (reads > 0).then(|| self.hits as f64 / reads as f64)
    }
}

/// What one level of a store counts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelStats {
    /// What the level [describes](crate::Store::describe) itself as.
    pub store: String,
    /// Its counts.
    pub stats: Stats,
}

impl LevelStats {
    /// The counts of a level, and how it describes itself.
    pub fn new(store: String, stats: Stats) -> Self {
        Self { store, stats }
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
