//! Queues of ghosts.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;

use super::super::Slot;
use super::super::link::Links;
use super::super::weight::Weights;
use super::{FingerprintMap, slot_of};

/// A queue of ghosts, oldest first out.
pub trait GhostList: Default + Send + Sync + 'static {
    /// Makes room for slots below `slots`.
    fn reserve(&mut self, slots: usize);
    /// Remembers a key as the youngest. A key that is remembered already stays where it is.
    fn push(&mut self, fingerprint: u64, weight: u64);
    /// Forgets a key; gives its weight, or `None` where it was not remembered.
    fn remove(&mut self, fingerprint: u64) -> Option<u64>;
    /// Forgets the oldest.
    fn pop(&mut self) -> Option<u64>;
    /// The sum of the weights.
    fn weight(&self) -> u64;
    /// Fingerprints from the oldest to the youngest.
    fn dump(&self) -> Vec<u64>;
    /// Bytes of memory used.
    fn memory_bytes(&self) -> usize;
}

/// [`GhostList`] over slots that belong to keys.
#[derive(Debug)]
pub struct SlotGhosts<W> {
    links: Links<1>,
    present: Vec<bool>,
    weights: W,
    weight: u64,
}

impl<W: Weights> Default for SlotGhosts<W> {
    fn default() -> Self {
        Self { links: Links::new(), present: Vec::new(), weights: W::default(), weight: 0 }
    }
}

impl<W: Weights> SlotGhosts<W> {
    fn forget(&mut self, slot: Slot) -> u64 {
        self.present[slot as usize] = false;
        let weight = self.weights.get(slot);
        self.weight -= weight;
        weight
    }
}

impl<W: Weights> GhostList for SlotGhosts<W> {
    fn reserve(&mut self, slots: usize) {
        self.links.reserve(slots);
        self.weights.reserve(slots);
        if slots > self.present.len() {
            self.present.resize(slots, false);
        }
    }

    #[inline]
    fn push(&mut self, fingerprint: u64, weight: u64) {
        let slot = slot_of(fingerprint);
        if !self.present[slot as usize] {
            self.present[slot as usize] = true;
            self.weights.replace(slot, weight);
            self.weight += weight;
            self.links.push_head(0, slot);
        }
    }

    #[inline]
    fn remove(&mut self, fingerprint: u64) -> Option<u64> {
        let slot = slot_of(fingerprint);
        if !self.present[slot as usize] {
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
        self.links.memory_bytes() + self.weights.memory_bytes() + self.present.capacity()
    }
}

/// [`GhostList`] over fingerprints. Two keys with the same fingerprint share a ghost.
#[derive(Debug, Default)]
pub struct FingerprintGhosts {
    /// The weight of each ghost and the turn at which it was pushed.
    table: FingerprintMap<(u64, u64)>,
    /// Fingerprints in the order of their turns. An entry whose turn the table does not confirm
    /// was removed since.
    order: VecDeque<(u64, u64)>,
    turn: u64,
    weight: u64,
}

impl FingerprintGhosts {
    /// Drops what was removed out of the middle once it is most of the order.
    fn compact(&mut self) {
        if self.order.len() > 16 + 2 * self.table.len() {
            let table = &self.table;
            self.order.retain(|(fingerprint, turn)| {
                table.get(fingerprint).is_some_and(|(_, current)| current == turn)
            });
        }
    }
}

impl GhostList for FingerprintGhosts {
    fn reserve(&mut self, _slots: usize) {}

    fn push(&mut self, fingerprint: u64, weight: u64) {
        if let Entry::Vacant(entry) = self.table.entry(fingerprint) {
            self.turn += 1;
            entry.insert((weight, self.turn));
            self.order.push_back((fingerprint, self.turn));
            self.weight += weight;
        }
    }

    fn remove(&mut self, fingerprint: u64) -> Option<u64> {
        let (weight, _) = self.table.remove(&fingerprint)?;
        self.weight -= weight;
        self.compact();
        Some(weight)
    }

    fn pop(&mut self) -> Option<u64> {
        while let Some((fingerprint, turn)) = self.order.pop_front() {
            if self.table.get(&fingerprint).is_some_and(|(_, current)| *current == turn) {
                return self.remove(fingerprint);
            }
        }
        None
    }

    fn weight(&self) -> u64 {
        self.weight
    }

    fn dump(&self) -> Vec<u64> {
        let current = |(fingerprint, turn): &&(u64, u64)| {
            self.table.get(fingerprint).is_some_and(|(_, current)| current == turn)
        };
        self.order.iter().filter(current).map(|(fingerprint, _)| *fingerprint).collect()
    }

    fn memory_bytes(&self) -> usize {
        self.order.capacity() * size_of::<(u64, u64)>()
            + self.table.capacity() * size_of::<(u64, (u64, u64))>()
    }
}
