//! Which key is in which slot, as far as ghosts have to know.

use super::super::Slot;

/// The fingerprint of the entry in each slot.
pub trait Fingerprints: Default + Send + Sync + 'static {
    /// Makes room for slots below `slots`.
    fn reserve(&mut self, slots: usize);
    /// Records the fingerprint of the entry in `slot`.
    fn set(&mut self, slot: Slot, fingerprint: u64);
    /// The fingerprint of the entry in `slot`.
    fn get(&self, slot: Slot) -> u64;
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

    fn memory_bytes(&self) -> usize {
        0
    }
}

/// [`Fingerprints`] where slots are reused.
#[derive(Debug, Default)]
pub struct FingerprintPerSlot(Vec<u64>);

impl Fingerprints for FingerprintPerSlot {
    fn reserve(&mut self, slots: usize) {
        if slots > self.0.len() {
            self.0.resize(slots, 0);
        }
    }

    #[inline]
    fn set(&mut self, slot: Slot, fingerprint: u64) {
        self.0[slot as usize] = fingerprint;
    }

    #[inline]
    fn get(&self, slot: Slot) -> u64 {
        self.0[slot as usize]
    }

    fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
    }
}
