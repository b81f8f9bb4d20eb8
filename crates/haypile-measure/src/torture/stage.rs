//! The operations of writers and readers in the cases `keep`, `evict` and `invalidate`.

use super::value::Lengths;

/// The mix of random operations (reads, writes, deletions) of the torture's processes in one of its
/// cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) lengths: Lengths,
    /// The number of keys that all writers together use.
    pub(super) keys: u64,
    /// The number of deletions in 100 operations of a writer.
    pub(super) delete: u64,
    /// The number of reads in 100 operations of a writer; a read that misses writes its key.
    pub(super) fetch: u64,
    /// The number of keys that a writer's new process reads first, to compare them with the record
    /// of its predecessors' writes.
    pub(super) audit: u64,
    pub(super) evicts: bool,
}

/// The most that common values have.
const COMMON_BYTES: u64 = 8 << 10;

/// The number of keys that are removed again and again.
const INVALIDATED_KEYS: u64 = 48;

/// The number of its keys that a writer reads where they are too many.
const AUDIT: u64 = 500;

impl Stage {
    /// Creates the mix of operations of a torture in which nothing has to be evicted: live data is
    /// a fourth of the cache. Some values are longer than a segment of a cache file.
    pub(super) fn keep(capacity_bytes: u64, writers: u64) -> Self {
        let common_bytes = COMMON_BYTES.min(capacity_bytes / 2048);
        let longest_bytes = capacity_bytes / 64;
        let lengths = Lengths { common_bytes, longest_bytes };
        let own = (capacity_bytes / 4 / lengths.mean_bytes() / writers).max(1);
        Self { lengths, keys: own * writers, delete: 10, fetch: 10, audit: own, evicts: false }
    }

    /// Creates the mix of operations of a torture with few keys, so that computing a key's value
    /// often coincides with its removal. Some values are so long that kills interrupt their
    /// writing.
    pub(super) fn invalidate(capacity_bytes: u64, writers: u64) -> Self {
        Self {
            keys: INVALIDATED_KEYS,
            delete: 0,
            fetch: 0,
            audit: 0,
            ..Self::keep(capacity_bytes, writers)
        }
    }

    /// Creates the mix of operations of a torture with four times more data than the cache holds,
    /// and values that are longer than a segment of a cache file.
    pub(super) fn evict(capacity_bytes: u64, writers: u64) -> Self {
        let common_bytes = COMMON_BYTES.min(capacity_bytes / 1024);
        let longest_bytes = capacity_bytes / 64;
        let lengths = Lengths { common_bytes, longest_bytes };
        let own = (capacity_bytes * 4 / lengths.mean_bytes() / writers).max(1);
        let audit = own.min(AUDIT);
        Self { lengths, keys: own * writers, delete: 3, fetch: 87, audit, evicts: true }
    }
}
