//! Shortage of memory: it fails a write, and does not end the process.
//!
//! The record of an entry is allocated so that this can fail. The metadata of its shard is not: a shard
//! tests that it can grow before it does. And an error is text, which takes memory as well, so that a store
//! keeps some back for that.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// Memory for the texts of errors, in the engine and in a binding, of several threads.
const KEPT_BYTES: usize = 32 << 10;

/// Whether the system can allocate this number of bytes of memory at the moment.
pub(crate) fn has_memory(bytes: usize) -> bool {
    Vec::<u8>::new().try_reserve_exact(bytes).is_ok()
}

/// Memory for the texts of errors that is kept in reserve, to be freed when an allocation of the
/// memory store fails.
#[derive(Debug)]
pub(super) struct Reserve {
    kept: Mutex<Vec<u8>>,
    is_spent: AtomicBool,
}

impl Reserve {
    pub(super) fn new() -> Self {
        let reserve = Self { kept: Mutex::default(), is_spent: AtomicBool::new(true) };
        reserve.restore();
        reserve
    }

    /// Frees the memory that is kept in reserve for the texts of errors, because an allocation has
    /// failed.
    pub(super) fn spend(&self) {
        *self.kept.lock() = Vec::new();
        self.is_spent.store(true, Ordering::Relaxed);
    }

    /// Whether the memory that is kept in reserve for the texts of errors is allocated, or can be
    /// allocated again. Otherwise the next write would use up what the text of its error needs.
    #[inline]
    pub(super) fn is_there(&self) -> bool {
        !self.is_spent.load(Ordering::Relaxed) || self.restore()
    }

    #[cold]
    fn restore(&self) -> bool {
        let mut kept = self.kept.lock();
        // Twice as much has to be free, so that a store does not go back and forth.
        let is_there = has_memory(2 * KEPT_BYTES) && kept.try_reserve_exact(KEPT_BYTES).is_ok();
        self.is_spent.store(!is_there, Ordering::Relaxed);
        is_there
    }
}
