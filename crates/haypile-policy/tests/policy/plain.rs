//! Code that the plain models share: queues are vectors, tail first, and sums are recomputed.

use std::collections::HashMap;

use haypile_policy::{Queue, Slot};

/// Weights of slots.
#[derive(Debug, Default)]
pub(crate) struct Weights(HashMap<Slot, u64>);

impl Weights {
    pub(crate) fn set(&mut self, slot: Slot, weight: u64) {
        self.0.insert(slot, weight);
    }

    pub(crate) fn of(&self, slot: Slot) -> u64 {
        self.0[&slot]
    }

    pub(crate) fn sum(&self, slots: &[Slot]) -> u64 {
        slots.iter().map(|slot| self.of(*slot)).sum()
    }
}

/// Removes a slot from a queue; returns whether it was there.
pub(crate) fn take(queue: &mut Vec<Slot>, slot: Slot) -> bool {
    let position = queue.iter().position(|entry| *entry == slot);
    position.map(|position| queue.remove(position)).is_some()
}

/// Moves a slot from its queue to the head of the last one named.
pub(crate) fn to_head(queue: &mut Vec<Slot>, slot: Slot) {
    take(queue, slot);
    queue.push(slot);
}

/// Removes the tail of a queue.
pub(crate) fn pop(queue: &mut Vec<Slot>) -> Option<Slot> {
    (!queue.is_empty()).then(|| queue.remove(0))
}

/// Returns whole per cents of a capacity, rounded down.
pub(crate) fn percent(capacity: u64, percent: u64) -> u64 {
    capacity * percent / 100
}

pub(crate) fn dump(name: &'static str, slots: &[Slot]) -> Queue {
    Queue { name, entries: slots.iter().map(|slot| u64::from(*slot)).collect() }
}

/// Returns the slot of a key whose fingerprint is its slot.
pub(crate) fn slot_of(fingerprint: u64) -> Slot {
    u32::try_from(fingerprint).expect("fingerprints are slots here")
}
