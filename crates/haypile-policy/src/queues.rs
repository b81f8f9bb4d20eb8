//! Several queues over one set of slots, each with the sum of its weights: what every segmented
//! policy is made of.

use super::Slot;
use super::column::SlotColumn;
use super::link::Links;
use super::weight::Weights;

/// A set of `LISTS` queues of slots (numbers of entries), with the weights of the entries. A slot is in one of them at
/// most; new entries go to the head.
#[derive(Debug)]
pub(super) struct Queues<W, const LISTS: usize> {
    links: Links<LISTS>,
    list: SlotColumn<u8>,
    weights: W,
    sums: [u64; LISTS],
}

impl<W: Weights, const LISTS: usize> Queues<W, LISTS> {
    /// Creates queues without entries.
    pub(super) fn new() -> Self {
        Self {
            links: Links::new(),
            list: SlotColumn::default(),
            weights: W::default(),
            sums: [0; LISTS],
        }
    }

    /// Allocates memory for the slots below number `slots` in the queues.
    pub(super) fn reserve(&mut self, slots: usize) {
        self.links.reserve(slots);
        self.weights.reserve(slots);
        self.list.reserve(slots);
    }

    /// Prefetches the memory of the queues that changes when `slot` moves to another queue or leaves all queues.
    #[inline]
    pub(super) fn prefetch_to_write(&self, slot: Slot) {
        self.links.prefetch_to_write(slot);
        self.list.prefetch_to_write(slot);
        self.weights.prefetch(slot);
    }

    /// Returns the number of the queue that contains a slot.
    #[inline]
    pub(super) fn of(&self, slot: Slot) -> usize {
        usize::from(self.list[slot])
    }

    /// Returns the weight of the entry in a slot: how much of the cache's capacity it takes, in bytes or as one object.
    #[inline]
    pub(super) fn weight(&self, slot: Slot) -> u64 {
        self.weights.get(slot)
    }

    /// Returns the sum of the weights of a queue's entries.
    #[inline]
    pub(super) fn sum(&self, list: usize) -> u64 {
        self.sums[list]
    }

    /// Whether a queue is empty.
    pub(super) fn is_empty(&self, list: usize) -> bool {
        self.tail(list).is_none()
    }

    /// Places a new entry at the head of a queue.
    #[inline]
    pub(super) fn insert(&mut self, list: usize, slot: Slot, weight: u64) {
        self.weights.replace(slot, weight);
        self.list[slot] = number(list);
        self.sums[list] += weight;
        self.links.push_head(list, slot);
    }

    /// Moves an entry to the head of queue `list`, from the same or another queue.
    #[inline]
    pub(super) fn move_to(&mut self, list: usize, slot: Slot) {
        let from = self.of(slot);
        if from != list {
            let weight = self.weights.get(slot);
            self.sums[from] -= weight;
            self.sums[list] += weight;
            self.list[slot] = number(list);
        }
        self.links.move_to_head(list, slot);
    }

    /// Removes an entry from its queue.
    #[inline]
    pub(super) fn remove(&mut self, slot: Slot) {
        self.sums[self.of(slot)] -= self.weights.get(slot);
        self.links.unlink(slot);
    }

    /// Changes the weight of the entry in a slot, and returns the previous weight.
    pub(super) fn reweigh(&mut self, slot: Slot, weight: u64) -> u64 {
        let old = self.weights.replace(slot, weight);
        let sum = &mut self.sums[usize::from(self.list[slot])];
        *sum = *sum - old + weight;
        old
    }

    /// Records in the queues that the entry in slot `from` has moved to slot `to`, which was free.
    pub(super) fn relocate(&mut self, from: Slot, to: Slot) {
        self.links.relocate(from, to);
        self.list.relocate(from, to);
        self.weights.relocate(from, to);
    }

    /// Drops the slots from number `slots` on from the queues; all of them are free.
    pub(super) fn drop_slots(&mut self, slots: usize) {
        self.links.drop_slots(slots);
        self.list.drop_slots(slots);
        self.weights.drop_slots(slots);
    }

    /// Returns the slot at the tail of a queue, which is the next to be evicted; `None` if the queue is empty.
    #[inline]
    pub(super) fn tail(&self, list: usize) -> Option<Slot> {
        self.links.tail(list)
    }

    /// Returns the next slot towards the head in the queue of `slot`; `None` at the head.
    pub(super) fn toward_head(&self, slot: Slot) -> Option<Slot> {
        self.links.toward_head(slot)
    }

    /// Returns the slots of a queue from the tail to the head.
    pub(super) fn iter(&self, list: usize) -> impl Iterator<Item = Slot> {
        self.links.iter(list)
    }

    /// Returns the slots of a queue from the tail to the head, in the form of [`Queue`](super::Queue), for tests.
    pub(super) fn dump(&self, list: usize) -> Vec<u64> {
        self.links.dump(list)
    }

    /// Returns the number of bytes of memory that the queues take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.links.memory_bytes() + self.list.memory_bytes() + self.weights.memory_bytes()
    }
}

#[inline]
fn number(list: usize) -> u8 {
    u8::try_from(list).expect("a handful of queues")
}
