//! Failures that did not fail an operation of the caller.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// The number of operations that have failed in one way (such as reads of the lower level), and the
/// last error; [warnings](crate::Store::warnings) report them.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    count: AtomicU64,
    last: Mutex<String>,
}

impl Failures {
    /// Counts an error that made `times` operations of this kind fail.
    pub(crate) fn count(&self, times: u64, error: &impl Display) {
        *self.last.lock() = error.to_string();
        self.count.fetch_add(times, Ordering::Relaxed);
    }

    /// Counts a failed operation, and logs a warning if it is the first failure of this kind.
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

    /// Returns a warning that names the kind of failure (`what`), if an operation has failed in
    /// this way.
    pub(crate) fn warning(&self, what: &str) -> Option<String> {
        let count = self.counted();
        (count > 0).then(|| format!("{count} {what}; the last time: {}", self.last.lock()))
    }
}
