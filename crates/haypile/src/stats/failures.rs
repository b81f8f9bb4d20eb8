//! Failures that did not fail an operation of the caller.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// The number of failures of one kind, and the last one; [warnings](crate::Store::warnings) report
/// them.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    count: AtomicU64,
    last: Mutex<String>,
}

impl Failures {
    /// Counts a failure that affects `times` operations.
    pub(crate) fn count(&self, times: u64, error: &impl Display) {
        *self.last.lock() = error.to_string();
        self.count.fetch_add(times, Ordering::Relaxed);
    }

    /// Counts a failure, and logs a warning if it is the first.
    pub(crate) fn count_and_log(&self, what: &str, error: &impl Display) {
        let is_first = self.counted() == 0;
        self.count(1, error);
        if is_first {
            log::warn!("{what}: {error}");
        }
    }

    pub(crate) fn counted(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Returns a warning that names the failed operation (`what`), if anything failed.
    pub(crate) fn warning(&self, what: &str) -> Option<String> {
        let count = self.counted();
        (count > 0).then(|| format!("{count} {what}; the last time: {}", self.last.lock()))
    }
}
