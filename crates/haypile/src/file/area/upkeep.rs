//! Work that a write leaves until it is done, so that no process waits for it under a lock.

use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that there is work left by writes, which the threads of a process share.
#[derive(Debug, Default)]
pub(in crate::file) struct Upkeep(AtomicBool);

impl Upkeep {
    /// Records that a segment was opened: others should be made ready, and the sweep goes on.
    pub(in crate::file) fn set_due(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether there is work.
    #[inline]
    pub(in crate::file) fn is_due(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Clears the flag, because the caller does the work.
    pub(in crate::file) fn take(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
