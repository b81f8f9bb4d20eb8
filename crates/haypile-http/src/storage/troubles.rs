//! Counts of store calls that did not help.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of store calls that failed, took too long or were skipped since the HTTP cache was set
/// up. Each counted as a miss, or left a response unstored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreTroubles {
    /// The number of store calls that took longer than
    /// [`store_limit`](crate::Builder::store_limit).
    pub slow: u64,
    /// The number of store calls that were skipped, because too many others were in progress.
    pub busy: u64,
    /// The number of store calls that failed.
    pub failed: u64,
}

#[derive(Debug, Default)]
pub(super) struct Troubles {
    slow: AtomicU64,
    busy: AtomicU64,
    failed: AtomicU64,
}

impl Troubles {
    pub(super) fn slow(&self) {
        self.slow.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn busy(&self) {
        self.busy.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> StoreTroubles {
        let [slow, busy, failed] =
            [&self.slow, &self.busy, &self.failed].map(|count| count.load(Ordering::Relaxed));
        StoreTroubles { slow, busy, failed }
    }
}
