//! Counts of what computations tolerate.

use std::sync::atomic::{AtomicU64, Ordering};

/// Failures that did not fail a computation, of all caches of a store in this process since the
/// first of them was made. [`Cache::compute_stats`](crate::Cache::compute_stats) returns them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComputeStats {
    /// Reads before computations that failed, and counted as misses.
    pub failed_reads: u64,
    /// Computed values that the store refused; the callers got them all the same.
    pub refused_values: u64,
    /// Refreshes that failed while there was a value to serve.
    pub failed_refreshes: u64,
}

/// The counters behind [`ComputeStats`].
#[derive(Debug, Default)]
pub(crate) struct ComputeCounters {
    failed_reads: AtomicU64,
    refused_values: AtomicU64,
    failed_refreshes: AtomicU64,
}

impl ComputeCounters {
    pub(crate) fn add_failed_read(&self) {
        self.failed_reads.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_refused_value(&self) {
        self.refused_values.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_failed_refresh(&self) {
        self.failed_refreshes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> ComputeStats {
        ComputeStats {
            failed_reads: self.failed_reads.load(Ordering::Relaxed),
            refused_values: self.refused_values.load(Ordering::Relaxed),
            failed_refreshes: self.failed_refreshes.load(Ordering::Relaxed),
        }
    }
}
