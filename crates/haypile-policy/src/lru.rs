//! LRU, least recently used: the policy that evicts the entry whose last use is oldest.

use super::link::Links;
use super::ranking::best_first;
use super::{Newcomer, Policy, PolicyKind, Queue, Ranked, Slot};

/// The description of the policy `lru`: its name, paper and parameters.
pub const KIND: PolicyKind = PolicyKind {
    name: "lru",
    summary: "least recently used",
    paper: "folklore; the same to everyone",
    params: &[],
};

/// The eviction policy LRU: a read or a new value makes an entry the most recently used.
#[derive(Debug)]
pub struct Lru {
    links: Links<1>,
}

impl Lru {
    /// Creates the LRU policy for an empty cache.
    pub fn new() -> Self {
        Self { links: Links::new() }
    }
}

impl Default for Lru {
    fn default() -> Self {
        Self::new()
    }
}

impl Policy for Lru {
    const RELOCATES: bool = true;

    fn reserve_slots(&mut self, slots: usize) {
        self.links.reserve(slots);
    }

    #[inline]
    fn on_hit(&mut self, slot: Slot) {
        self.links.move_to_head(0, slot);
    }

    fn evict(&mut self, _newcomer: Option<Newcomer>) -> Slot {
        self.links.pop_tail(0).expect("an entry to evict")
    }

    fn on_insert(&mut self, slot: Slot, _newcomer: Newcomer) {
        self.links.push_head(0, slot);
    }

    fn on_remove(&mut self, slot: Slot) {
        self.links.unlink(slot);
    }

    #[inline]
    fn prefetch_slot(&self, slot: Slot) {
        self.links.prefetch_to_write(slot);
    }

    fn relocate(&mut self, from: Slot, to: Slot) {
        self.links.relocate(from, to);
    }

    fn drop_slots(&mut self, slots: usize) {
        self.links.drop_slots(slots);
    }

    fn ranking(&self) -> Vec<Ranked> {
        best_first(self.links.iter(0).map(|slot| Ranked { slot, uses: 0 }))
    }

    fn next_victim(&self) -> Option<Slot> {
        self.links.tail(0)
    }

    fn queues(&self) -> Vec<Queue> {
        vec![Queue { name: "lru", entries: self.links.dump(0) }]
    }

    fn metadata_bytes(&self) -> usize {
        self.links.memory_bytes()
    }
}
