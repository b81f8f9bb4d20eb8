//! Queues of ghosts: keys that a policy remembers after it has evicted their entries.

use super::super::Slot;
use super::super::column::SlotColumn;
use super::super::link::Links;
use super::super::weight::Weights;
use super::slot_of;

/// A queue of ghosts (remembered keys of evicted entries), from which the oldest is removed first.
pub trait GhostList: Default + Send + Sync + 'static {
    /// Makes room for the slots below number `slots`.
    fn reserve(&mut self, slots: usize);
    /// Remembers a key as the youngest ghost. A key that is remembered already stays where it is.
    fn push(&mut self, fingerprint: u64, weight: u64);
    /// Forgets a key, and returns its weight; `None` if the key was not remembered.
    fn remove(&mut self, fingerprint: u64) -> Option<u64>;
    /// Prefetches the memory that the other operations change for this key.
    fn prefetch_to_write(&self, fingerprint: u64) {
        let _ = fingerprint;
    }
    /// Forgets the oldest ghost, and returns its weight; `None` if there is none.
    fn pop(&mut self) -> Option<u64>;
    /// Returns the sum of the weights.
    fn weight(&self) -> u64;
    /// Returns the fingerprints from the oldest ghost to the youngest.
    fn dump(&self) -> Vec<u64>;
    /// Returns the bytes of memory that the list takes.
    fn memory_bytes(&self) -> usize;
}

/// A [`GhostList`] (evicted keys) that identifies keys by slots, each of which belongs to one key permanently.
#[derive(Debug)]
pub struct SlotGhosts<W> {
    links: Links<1>,
    present: SlotColumn<bool>,
    weights: W,
    weight: u64,
}

impl<W: Weights> Default for SlotGhosts<W> {
    fn default() -> Self {
        Self {
            links: Links::new(),
            present: SlotColumn::default(),
            weights: W::default(),
            weight: 0,
        }
    }
}

impl<W: Weights> SlotGhosts<W> {
    fn forget(&mut self, slot: Slot) -> u64 {
        self.present[slot] = false;
        let weight = self.weights.get(slot);
        self.weight -= weight;
        weight
    }
}

impl<W: Weights> GhostList for SlotGhosts<W> {
    fn reserve(&mut self, slots: usize) {
        self.links.reserve(slots);
        self.weights.reserve(slots);
        self.present.reserve(slots);
    }

    #[inline]
    fn push(&mut self, fingerprint: u64, weight: u64) {
        let slot = slot_of(fingerprint);
        if !self.present[slot] {
            self.present[slot] = true;
            self.weights.replace(slot, weight);
            self.weight += weight;
            self.links.push_head(0, slot);
        }
    }

    #[inline]
    fn remove(&mut self, fingerprint: u64) -> Option<u64> {
        let slot = slot_of(fingerprint);
        if !self.present[slot] {
            return None;
        }
        self.links.unlink(slot);
        Some(self.forget(slot))
    }

    #[inline]
    fn pop(&mut self) -> Option<u64> {
        let slot = self.links.pop_tail(0)?;
        Some(self.forget(slot))
    }

    #[inline]
    fn weight(&self) -> u64 {
        self.weight
    }

    fn dump(&self) -> Vec<u64> {
        self.links.dump(0)
    }

    fn memory_bytes(&self) -> usize {
        self.links.memory_bytes() + self.weights.memory_bytes() + self.present.memory_bytes()
    }
}
