//! The operations of writers and readers in the cases `keep`, `evict` and `invalidate`.

use super::value::Lengths;

/// The settings of the operations of one phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    pub(super) lengths: Lengths,
    /// The number of keys, of all writers together.
    pub(super) keys: u64,
    /// The number of deletions in 100 operations of a writer.
    pub(super) delete: u64,
    /// The number of reads in 100 operations, which write the keys that they miss.
    pub(super) fetch: u64,
    /// The number of its keys that a new writer reads first.
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
    /// Creates a stage in which nothing has to be evicted: all live data is a fourth of the cache. Some values are
    /// longer than a segment of ours, as below.
    pub(super) fn keep(capacity_bytes: u64, writers: u64) -> Self {
        let common_bytes = COMMON_BYTES.min(capacity_bytes / 2048);
        let longest_bytes = capacity_bytes / 64;
        let lengths = Lengths { common_bytes, longest_bytes };
        let own = (capacity_bytes / 4 / lengths.mean_bytes() / writers).max(1);
        Self { lengths, keys: own * writers, delete: 10, fetch: 10, audit: own, evicts: false }
    }

    /// Creates a stage of few keys, so that a process that computes one meets others that remove it. Some values are as
    /// long as above, so that kills hit within their writes.
    pub(super) fn invalidate(capacity_bytes: u64, writers: u64) -> Self {
        Self {
            keys: INVALIDATED_KEYS,
            delete: 0,
            fetch: 0,
            audit: 0,
            ..Self::keep(capacity_bytes, writers)
        }
    }

    /// Creates a stage with four times as much data as the cache holds, and values that are longer than a segment of
    /// ours.
    pub(super) fn evict(capacity_bytes: u64, writers: u64) -> Self {
        let common_bytes = COMMON_BYTES.min(capacity_bytes / 1024);
        let longest_bytes = capacity_bytes / 64;
        let lengths = Lengths { common_bytes, longest_bytes };
        let own = (capacity_bytes * 4 / lengths.mean_bytes() / writers).max(1);
        let audit = own.min(AUDIT);
        Self { lengths, keys: own * writers, delete: 3, fetch: 87, audit, evicts: true }
    }
}
