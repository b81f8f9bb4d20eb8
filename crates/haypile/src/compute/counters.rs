//! Counts of the failures that computations tolerate.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::stats::{Failures, Stats};

/// Counts of failures that did not fail a computation, summed over all caches of one store in this
/// process. [`Cache::compute_stats`](crate::Cache::compute_stats) returns them, and
/// [`Cache::stats`](crate::Cache::stats) includes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComputeStats {
    /// The number of reads that failed before a computation, and counted as misses.
    pub failed_reads: u64,
    /// The number of values that the store refused while their callers continued without an error:
    /// computed values, and those given to [`Cache::offer`](crate::Cache::offer).
    pub refused_values: u64,
    /// The number of computations that failed to replace a value that could still be served.
    pub failed_refreshes: u64,
}

/// The atomic counters that [`ComputeStats`] is read from.
#[derive(Debug, Default)]
pub(crate) struct ComputeCounters {
    failed_reads: Failures,
    refused_values: Failures,
    failed_refreshes: AtomicU64,
}

impl ComputeCounters {
    pub(crate) fn add_failed_read(&self, error: &Error) {
        let what = "a read before a computation failed, and was a miss";
        self.failed_reads.count_and_log(what, error);
    }

    pub(crate) fn add_refused_value(&self, error: &Error) {
        let what = "a computed value is not stored, and is computed again at each call";
        self.refused_values.count_and_log(what, error);
    }

    pub(crate) fn add_failed_refresh(&self) {
        self.failed_refreshes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> ComputeStats {
        ComputeStats {
            failed_reads: self.failed_reads.counted(),
            refused_values: self.refused_values.counted(),
            failed_refreshes: self.failed_refreshes.load(Ordering::Relaxed),
        }
    }

    /// Adds these counts of failures around computations to the statistics of the store.
    pub(crate) fn add_to(&self, stats: &mut Stats) {
        let counted = self.stats();
        stats.failed_reads += counted.failed_reads;
        stats.refused_values += counted.refused_values;
        stats.failed_refreshes += counted.failed_refreshes;
    }

    /// Returns warnings about computations whose values could not be read or stored, one text each.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        [
            self.failed_reads.warning("reads before computations failed, and were misses"),
            self.refused_values
                .warning("computed values were not stored, and are computed again at each call"),
        ]
        .into_iter()
        .flatten()
    }
}
