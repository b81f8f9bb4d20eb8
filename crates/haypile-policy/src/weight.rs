//! Weights of slots, which are bytes or nothing where all weigh 1, and shares of their sum.

use super::Slot;
use super::column::SlotColumn;

/// The weights (bytes, or 1 each) of the cache entries, found by the entries' slots (numbers). A cache that counts
/// objects needs no memory for them.
pub trait Weights: Default + Send + Sync + 'static {
    /// Makes room for the slots below number `slots`.
    fn reserve(&mut self, slots: usize);
    /// Returns the weight of the entry in `slot`.
    fn get(&self, slot: Slot) -> u64;
    /// Prefetches the weight of the entry in `slot`.
    fn prefetch(&self, slot: Slot);
    /// Records the weight of the entry in `slot`, and returns what was recorded before.
    fn replace(&mut self, slot: Slot, weight: u64) -> u64;
    /// Records that the entry in slot `from` has moved to slot `to`.
    fn relocate(&mut self, from: Slot, to: Slot);
    /// Drops the slots from number `slots` on.
    fn drop_slots(&mut self, slots: usize);
    /// Returns the bytes of memory that the weights take.
    fn memory_bytes(&self) -> usize;
}

/// The weights of the entries in a cache that counts objects ([`Weights`]): all are 1.
#[derive(Debug, Default)]
pub struct Unit;

impl Weights for Unit {
    fn reserve(&mut self, _slots: usize) {}

    #[inline]
    fn get(&self, _slot: Slot) -> u64 {
        1
    }

    fn prefetch(&self, _slot: Slot) {}

    #[inline]
    fn replace(&mut self, _slot: Slot, _weight: u64) -> u64 {
        1
    }

    fn relocate(&mut self, _from: Slot, _to: Slot) {}

    fn drop_slots(&mut self, _slots: usize) {}

    fn memory_bytes(&self) -> usize {
        0
    }
}

/// The weights of the entries in a cache that counts bytes ([`Weights`]): an array with one number for each slot.
#[derive(Debug, Default)]
pub struct PerSlot(SlotColumn<u64>);

impl Weights for PerSlot {
    fn reserve(&mut self, slots: usize) {
        self.0.reserve(slots);
    }

    #[inline]
    fn get(&self, slot: Slot) -> u64 {
        self.0[slot]
    }

    #[inline]
    fn prefetch(&self, slot: Slot) {
        self.0.prefetch(slot);
    }

    #[inline]
    fn replace(&mut self, slot: Slot, weight: u64) -> u64 {
        std::mem::replace(&mut self.0[slot], weight)
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

/// Returns `percent` per cent of `whole`, rounded down: the part of a cache's capacity for which a policy's parameter
/// stands.
pub fn share(whole: u64, percent: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a capacity need not be exact to the byte"
    )]
    let share = {
        // Multiplying by the fraction, not dividing by 100 last, gives the whole numbers that
        // others' definitions arrive at (10 % of 20,000 is 2,000 either way, 90 % of 5,000 not).
        (whole as f64 * (percent / 100.0)) as u64
    };
    // Above 2^53 rounding can give more than the whole.
    if percent <= 100.0 { share.min(whole) } else { share }
}
