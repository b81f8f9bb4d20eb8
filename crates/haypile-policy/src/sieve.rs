//! SIEVE: a FIFO queue and a hand that moves from the tail to the head.

use super::link::Links;
use super::mark::Marks;
use super::ranking::fewest_uses_leave;
use super::{Newcomer, Policy, PolicyKind, Queue, Ranked, Slot};

/// The description of the policy `sieve`: its name, paper and parameters.
pub const KIND: PolicyKind = PolicyKind {
    name: "sieve",
    summary: "one queue, one bit per entry, one hand; cheap, but weak on loops",
    paper: "Zhang et al., SIEVE is Simpler than LRU, NSDI 2024",
    params: &[],
};

/// The eviction policy SIEVE. Unlike CLOCK, it does not move an entry that was used.
///
/// As in the paper and in libCacheSim.
#[derive(Debug)]
pub struct Sieve {
    links: Links<1>,
    visited: Marks,
    /// The slot at which the next search for a victim begins; `None` for the tail.
    hand: Option<Slot>,
}

impl Sieve {
    /// Creates the SIEVE policy for an empty cache.
    pub fn new() -> Self {
        Self { links: Links::new(), visited: Marks::default(), hand: None }
    }
}

impl Default for Sieve {
    fn default() -> Self {
        Self::new()
    }
}

impl Policy for Sieve {
    const SHARED_HITS: bool = true;
    const RELOCATES: bool = true;

    fn reserve_slots(&mut self, slots: usize) {
        self.links.reserve(slots);
        self.visited.reserve(slots);
    }

    #[inline]
    fn on_hit(&mut self, slot: Slot) {
        self.visited.raise(slot, 1);
    }

    #[inline]
    fn on_hit_shared(&self, slot: Slot) {
        self.visited.raise(slot, 1);
    }

    fn evict(&mut self, _newcomer: Option<Newcomer>) -> Slot {
        let mut hand = self.hand;
        loop {
            let slot = hand.or_else(|| self.links.tail(0)).expect("an entry to evict");
            hand = self.links.toward_head(slot);
            if self.visited.get(slot) == 0 {
                self.hand = hand;
                self.links.unlink(slot);
                return slot;
            }
            self.visited.set(slot, 0);
        }
    }

    fn on_insert(&mut self, slot: Slot, _newcomer: Newcomer) {
        self.visited.set(slot, 0);
        self.links.push_head(0, slot);
    }

    fn on_remove(&mut self, slot: Slot) {
        if self.hand == Some(slot) {
            self.hand = self.links.toward_head(slot);
        }
        self.links.unlink(slot);
    }

    #[inline]
    fn prefetch_slot(&self, slot: Slot) {
        self.visited.prefetch(slot);
    }

    #[inline]
    fn prefetch_victim(&self, slot: Slot) {
        self.links.prefetch_to_write(slot);
        self.visited.prefetch(slot);
    }

    fn relocate(&mut self, from: Slot, to: Slot) {
        self.links.relocate(from, to);
        self.visited.relocate(from, to);
        if self.hand == Some(from) {
            self.hand = Some(to);
        }
    }

    fn drop_slots(&mut self, slots: usize) {
        self.links.drop_slots(slots);
        self.visited.drop_slots(slots);
    }

    fn ranking(&self) -> Vec<Ranked> {
        let hand = self.hand.or_else(|| self.links.tail(0));
        let ahead = std::iter::successors(hand, |slot| self.links.toward_head(*slot));
        let behind = self.links.iter(0).take_while(|slot| Some(*slot) != hand);
        let entry = |slot| Ranked { slot, uses: self.visited.get(slot) };
        fewest_uses_leave(ahead.chain(behind).map(entry))
    }

    fn next_victim(&self) -> Option<Slot> {
        self.hand.or_else(|| self.links.tail(0))
    }

    fn queues(&self) -> Vec<Queue> {
        vec![
            Queue { name: "sieve", entries: self.links.dump(0) },
            Queue { name: "hand", entries: self.hand.map(u64::from).into_iter().collect() },
        ]
    }

    fn metadata_bytes(&self) -> usize {
        self.links.memory_bytes() + self.visited.memory_bytes()
    }
}
