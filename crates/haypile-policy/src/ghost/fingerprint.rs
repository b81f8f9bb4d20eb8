//! Which key is in which slot, as far as ghosts have to know.

use super::super::Slot;
use super::super::column::SlotColumn;
use super::never_relocated;

/// The fingerprint of the entry in each slot.
pub trait Fingerprints: Default + Send + Sync + 'static {
    /// Makes room for slots below `slots`.
    fn reserve(&mut self, slots: usize);
    /// Records the fingerprint of the entry in `slot`.
    fn set(&mut self, slot: Slot, fingerprint: u64);
    /// The fingerprint of the entry in `slot`.
    fn get(&self, slot: Slot) -> u64;
    /// Prefetches the fingerprint of the entry in `slot`.
    fn prefetch(&self, slot: Slot);
    /// The entry in slot `from` is in slot `to` from now on.
    fn relocate(&mut self, from: Slot, to: Slot);
    /// There are no slots from `slots` on any more.
    fn drop_slots(&mut self, slots: usize);
    /// Bytes of memory used.
    fn memory_bytes(&self) -> usize;
}

/// [`Fingerprints`] where slots belong to keys.
#[derive(Debug, Default)]
pub struct SlotIsFingerprint;

impl Fingerprints for SlotIsFingerprint {
    fn reserve(&mut self, _slots: usize) {}

    fn set(&mut self, _slot: Slot, _fingerprint: u64) {}

    #[inline]
    fn get(&self, slot: Slot) -> u64 {
        u64::from(slot)
    }

    fn prefetch(&self, _slot: Slot) {}

    fn relocate(&mut self, _from: Slot, _to: Slot) {
        never_relocated();
    }

    fn drop_slots(&mut self, _slots: usize) {
        never_relocated();
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

/// [`Fingerprints`] where slots are reused.
#[derive(Debug, Default)]
pub struct FingerprintPerSlot(SlotColumn<u64>);

impl Fingerprints for FingerprintPerSlot {
    fn reserve(&mut self, slots: usize) {
        self.0.reserve(slots);
    }

    #[inline]
    fn set(&mut self, slot: Slot, fingerprint: u64) {
        self.0[slot] = fingerprint;
    }

    #[inline]
    fn get(&self, slot: Slot) -> u64 {
        self.0[slot]
    }

    #[inline]
    fn prefetch(&self, slot: Slot) {
        self.0.prefetch(slot);
    }

    fn relocate(&mut self, from: Slot, to: Slot) {
        self.0.relocate(from, to);
    }

    fn drop_slots(&mut self, slots: usize) {
        self.0.drop_slots(slots);
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}
