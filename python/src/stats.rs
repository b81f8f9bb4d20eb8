//! Statistics.

use pyo3::prelude::*;

/// Counts since the cache was opened in this process, and what it holds now.
///
/// What ended in an error is counted nowhere.
#[pyclass(frozen, get_all, module = "haypile")]
pub struct Stats {
    /// Reads that found a value.
    hits: u64,
    /// Reads that found none, or an expired one.
    misses: u64,
    /// Writes that were accepted, also by incr and decr.
    sets: u64,
    /// Writes by add and replace whose condition did not hold.
    unmet: u64,
    /// Deletions of an entry that was there; clear counts none.
    deletes: u64,
    /// Deletions that found no entry.
    delete_misses: u64,
    /// New TTLs for an entry that was there.
    touches: u64,
    /// Calls of touch that found no entry.
    touch_misses: u64,
    /// Calls of incr and decr that found a counter.
    counts: u64,
    /// Calls of incr and decr that found no entry.
    count_misses: u64,
    /// Entries that left because room was needed.
    evictions: u64,
    /// Entries that left because their TTL had passed.
    expired: u64,
    /// New entries that were accepted and not retained.
    declined: u64,
    /// Values that were found and could not be read back; each was a miss.
    corrupt: u64,
    /// Entries held now. Some of them may have expired.
    entries: u64,
    /// Bytes held now: keys, values and metadata.
    bytes: u64,
    /// The bound on bytes; None where there is none or it is not known.
    capacity_bytes: Option<u64>,
    /// Hits per read; None before the first read.
    hit_ratio: Option<f64>,
}

#[pymethods]
impl Stats {
    fn __repr__(&self) -> String {
        let Self { hits, misses, sets, evictions, entries, bytes, .. } = self;
        format!(
            "<haypile.Stats hits={hits} misses={misses} sets={sets} evictions={evictions} \
             entries={entries} bytes={bytes}>"
        )
    }
}

impl From<engine::Stats> for Stats {
    fn from(stats: engine::Stats) -> Self {
        Self {
            hits: stats.hits,
            misses: stats.misses,
            sets: stats.sets,
            unmet: stats.unmet,
            deletes: stats.deletes,
            delete_misses: stats.delete_misses,
            touches: stats.touches,
            touch_misses: stats.touch_misses,
            counts: stats.counts,
            count_misses: stats.count_misses,
            evictions: stats.evictions,
            expired: stats.expired,
            declined: stats.declined,
            corrupt: stats.corrupt,
            entries: stats.entries,
            bytes: stats.bytes,
            capacity_bytes: stats.capacity_bytes,
            hit_ratio: stats.hit_ratio(),
        }
    }
}
