//! A small counter per slot that a hit raises without an exclusive lock.

use crate::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::Slot;

/// Hit counters by slot.
///
/// Two hits that race may count as one; a policy that only asks "was it used, and about how
/// often" does not mind. Everything but [`raise`](Self::raise) happens under an exclusive lock.
#[derive(Debug, Default)]
pub(super) struct Marks(Vec<AtomicU8>);

impl Marks {
    /// Makes room for slots below `slots`.
    pub(super) fn reserve(&mut self, slots: usize) {
        if slots > self.0.len() {
            self.0.resize_with(slots, AtomicU8::default);
        }
    }

    /// Counts a hit, up to `max`.
    #[inline]
    pub(super) fn raise(&self, slot: Slot, max: u8) {
        let mark = &self.0[slot as usize];
        let count = mark.load(Relaxed);
        // Reading first leaves the cache line of an entry that is always hit unwritten.
        if count < max {
            mark.store(count + 1, Relaxed);
        }
    }

    /// The counter of `slot`.
    #[inline]
    pub(super) fn get(&self, slot: Slot) -> u8 {
        self.0[slot as usize].load(Relaxed)
    }

    /// Sets the counter of `slot`.
    #[inline]
    pub(super) fn set(&mut self, slot: Slot, count: u8) {
        *self.0[slot as usize].get_mut() = count;
    }

    /// Bytes of memory used.
    pub(super) fn memory_bytes(&self) -> usize {
        self.0.capacity()
    }
}
