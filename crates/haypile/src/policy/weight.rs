//! What a policy remembers of the weight of each slot: bytes, or nothing where all weigh 1.

use super::Slot;

/// Weights by slot. A cache that counts objects pays nothing for them.
pub trait Weights: Default + Send + Sync + 'static {
    /// Makes room for slots below `slots`.
    fn reserve(&mut self, slots: usize);
    /// The weight of the entry in `slot`.
    fn get(&self, slot: Slot) -> u64;
    /// Records the weight of the entry in `slot`, and returns what was recorded before.
    fn replace(&mut self, slot: Slot, weight: u64) -> u64;
    /// Bytes of memory used.
    fn memory_bytes(&self) -> usize;
}

/// Every entry weighs 1.
#[derive(Debug, Default)]
pub struct Unit;

impl Weights for Unit {
    fn reserve(&mut self, _slots: usize) {}

    #[inline]
    fn get(&self, _slot: Slot) -> u64 {
        1
    }

    #[inline]
    fn replace(&mut self, _slot: Slot, _weight: u64) -> u64 {
        1
    }

    fn memory_bytes(&self) -> usize {
        0
    }
}

/// Every entry has a weight of its own.
#[derive(Debug, Default)]
pub struct PerSlot(Vec<u64>);

impl Weights for PerSlot {
    fn reserve(&mut self, slots: usize) {
        if slots > self.0.len() {
            self.0.resize(slots, 0);
        }
    }

    #[inline]
    fn get(&self, slot: Slot) -> u64 {
        self.0[slot as usize]
    }

    #[inline]
    fn replace(&mut self, slot: Slot, weight: u64) -> u64 {
        std::mem::replace(&mut self.0[slot as usize], weight)
    }

    fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
    }
}
