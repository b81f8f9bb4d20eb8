//! The fingerprints of the entries in slots, by which ghosts recognize a key.

use super::super::Slot;
use super::super::column::SlotColumn;
use super::never_relocated;

/// The fingerprints (hashes of keys) of the cache entries, found by the entries' slots (numbers).
pub trait Fingerprints: Default + Send + Sync + 'static {
    /// Makes room for the slots below number `slots`.
    fn reserve(&mut self, slots: usize);
    /// Records the fingerprint of the entry in `slot`.
    fn set(&mut self, slot: Slot, fingerprint: u64);
    /// Returns the fingerprint of the entry in `slot`.
    fn get(&self, slot: Slot) -> u64;
    /// Prefetches the fingerprint of the entry in `slot`.
    fn prefetch(&self, slot: Slot);
    /// Records that the entry in slot `from` has moved to slot `to`.
    fn relocate(&mut self, from: Slot, to: Slot);
    /// Drops the slots from number `slots` on.
    fn drop_slots(&mut self, slots: usize);
    /// Returns the bytes of memory that the fingerprints take.
    fn memory_bytes(&self) -> usize;
}

/// The fingerprints (key hashes) of entries whose slots belong to one key permanently ([`Fingerprints`]): the slot's
/// number is the fingerprint.
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

/// The fingerprints (key hashes) of entries whose slots are reused for other keys ([`Fingerprints`]): an array with one
/// for each slot.
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
