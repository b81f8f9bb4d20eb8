//! Work that a write leaves until it is done, so that nobody waits for it under a lock.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether there is such work, as the threads of a process tell each other.
#[derive(Debug, Default)]
pub(in crate::file) struct Upkeep(AtomicBool);

impl Upkeep {
    /// Notes that a segment was opened: others should be made ready, and the sweep goes on.
    pub(in crate::file) fn set_due(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether there is work.
    #[inline]
    pub(in crate::file) fn is_due(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes the work on.
    pub(in crate::file) fn take(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
