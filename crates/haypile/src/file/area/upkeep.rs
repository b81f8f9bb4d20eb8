//! Work that a write leaves until it is done, so that no process waits for it under a lock.

use std::sync::atomic::{AtomicBool, Ordering};

/// A flag, shared by the threads of a process, that says that writes to the cache file have left
/// maintenance work to do.
#[derive(Debug, Default)]
pub(in crate::file) struct Upkeep(AtomicBool);

impl Upkeep {
    /// Sets the flag that maintenance work is due: preparing free segments of the cache file, and
    /// continuing to verify its index after a reboot.
    pub(in crate::file) fn set_due(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether maintenance work on the cache file is due.
    #[inline]
    pub(in crate::file) fn is_due(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Clears the flag that maintenance work on the cache file is due, because the caller does the
    /// work.
    pub(in crate::file) fn take(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
