//! A small counter per slot that a hit raises without an exclusive lock.

#[cfg(shuttle)]
use shuttle::sync::atomic::{AtomicU8, Ordering::Relaxed};
#[cfg(not(shuttle))]
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::Slot;
use super::column::SlotColumn;

/// Saturating counters of the hits of cache entries, one for each slot (entry number).
///
/// Two hits that race may count as one; a policy that only asks "was it used, and about how
/// often" does not mind. Everything but [`raise`](Self::raise) happens under an exclusive lock.
#[derive(Debug, Default)]
pub(super) struct Marks(SlotColumn<AtomicU8>);

impl Marks {
    /// Allocates hit counters for the slots below number `slots`.
    pub(super) fn reserve(&mut self, slots: usize) {
        self.0.reserve(slots);
    }

    /// Adds one hit to the counter of the entry in a slot, up to `max`.
    #[inline]
    pub(super) fn raise(&self, slot: Slot, max: u8) {
        let mark = &self.0[slot];
        let count = mark.load(Relaxed);
        // Reading first leaves the cache line of an entry that is always hit unwritten.
        if count < max {
            mark.store(count + 1, Relaxed);
        }
    }

    /// Prefetches the hit counter of a slot into the processor's cache.
    #[inline]
    pub(super) fn prefetch(&self, slot: Slot) {
        self.0.prefetch(slot);
    }

    /// Returns the number of counted hits of the entry in a slot.
    #[inline]
    pub(super) fn get(&self, slot: Slot) -> u8 {
        self.0[slot].load(Relaxed)
    }

    /// Sets the number of counted hits of the entry in a slot.
    #[inline]
    pub(super) fn set(&mut self, slot: Slot, count: u8) {
        *self.0[slot].get_mut() = count;
    }

    /// Moves the hit counter of slot `from` to slot `to`.
    pub(super) fn relocate(&mut self, from: Slot, to: Slot) {
        self.0.relocate(from, to);
    }

    /// Drops the hit counters of the slots from number `slots` on.
    pub(super) fn drop_slots(&mut self, slots: usize) {
        self.0.drop_slots(slots);
    }

    /// Returns the number of bytes of memory that the hit counters take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}
