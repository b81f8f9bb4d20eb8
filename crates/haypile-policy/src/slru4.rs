//! Segmented LRU with four equal segments, as libCacheSim has them.

use super::queues::Queues;
use super::ranking::best_first;
use super::weight::Weights;
use super::{Newcomer, Param, Policy, PolicyKind, PolicySpec, Queue, Ranked, Slot};

/// The description of the policy `slru4`: its name, paper and parameters.
pub const KIND: PolicyKind = PolicyKind {
    name: "slru4",
    summary: "four equal LRU segments; a hit moves an entry one segment up (libCacheSim's SLRU)",
    paper: "Karedla, Love and Wherry, Caching Strategies to Improve Disk System Performance, \
            IEEE Computer 27(3), 1994; with four segments as in libCacheSim",
    params: &[Param {
        name: "fall",
        default: 0.0,
        min: 0.0,
        max: 1.0,
        whole: true,
        help: "1: an entry that falls out of the lowest segment leaves the cache even if there is \
               room, as in libCacheSim; 0: it stays while there is room",
    }],
};

const SEGMENTS: usize = 4;
/// The queue of entries that are heavier than a segment.
const LARGE: usize = SEGMENTS;
const QUEUES: usize = SEGMENTS + 1;
const NAMES: [&str; QUEUES] = ["segment 0", "segment 1", "segment 2", "segment 3", "large"];

/// The segmented LRU eviction policy with four segments, each of a quarter of the capacity.
///
/// A newcomer enters the lowest segment that has room; what overflows a segment falls one down. The
/// lowest segment is the first to give entries up when the cache is full. With `fall=1` an entry leaves
/// the cache as well when it overflows the lowest segment, as libCacheSim defines it; where all
/// entries weigh the same and the capacity is a multiple of four, that makes no difference.
///
/// libCacheSim refuses an entry that is heavier than a segment. Here it is stored while there is room,
/// in a queue of its own (LRU) that makes room for all others: about them it changes no decision.
#[derive(Debug)]
pub struct Slru4<W> {
    queues: Queues<W, QUEUES>,
    segment_capacity: u64,
    falls: bool,
    /// Entries that fell out of the lowest segment on a hit.
    fallen: Vec<Slot>,
}

impl<W: Weights> Slru4<W> {
    /// Creates the segmented LRU policy `slru4` for an empty cache of size `capacity`.
    pub fn new(capacity: u64, spec: &PolicySpec) -> Self {
        Self {
            queues: Queues::new(),
            segment_capacity: capacity / SEGMENTS as u64,
            falls: spec.value("fall") != 0.0,
            fallen: Vec::new(),
        }
    }

    fn is_large(&self, weight: u64) -> bool {
        weight > self.segment_capacity
    }

    /// Returns the queue that a newcomer enters.
    fn entrance(&self, weight: u64) -> usize {
        if self.is_large(weight) {
            return LARGE;
        }
        let has_room =
            |segment: &usize| self.queues.sum(*segment) + weight <= self.segment_capacity;
        (0..SEGMENTS).find(has_room).unwrap_or(0)
    }

    /// Lets what overflows `segment` fall. Those below are settled only where something falls
    /// into them.
    fn settle(&mut self, segment: usize) {
        if segment == 0 && !self.falls {
            return;
        }
        while self.queues.sum(segment) > self.segment_capacity {
            let slot = self.queues.tail(segment).expect("an overflowing segment");
            if self.is_large(self.queues.weight(slot)) {
                // The capacity has shrunk.
                self.queues.move_to(LARGE, slot);
            } else if segment == 0 {
                self.queues.remove(slot);
                self.fallen.push(slot);
            } else {
                self.queues.move_to(segment - 1, slot);
                self.settle(segment - 1);
            }
        }
    }
}

impl<W: Weights> Policy for Slru4<W> {
    const HAS_OVERFLOW: bool = true;
    const RELOCATES: bool = true;

    fn reserve_slots(&mut self, slots: usize) {
        self.queues.reserve(slots);
    }

    #[inline]
    fn on_hit(&mut self, slot: Slot) {
        let queue = self.queues.of(slot);
        if queue == LARGE {
            // It can have become lighter, or the capacity larger.
            self.queues.move_to(self.entrance(self.queues.weight(slot)), slot);
            return;
        }
        let segment = (queue + 1).min(SEGMENTS - 1);
        self.queues.move_to(segment, slot);
        self.settle(segment);
    }

    fn on_update(&mut self, slot: Slot, weight: u64) {
        self.queues.reweigh(slot, weight);
        if self.is_large(weight) {
            self.queues.move_to(LARGE, slot);
        } else {
            self.on_hit(slot);
        }
    }

    fn judge(&self, newcomer: Newcomer, missing: u64) -> bool {
        !self.is_large(newcomer.weight) || missing <= self.queues.sum(LARGE)
    }

    fn evict(&mut self, _newcomer: Option<Newcomer>) -> Slot {
        let queues = [LARGE].into_iter().chain(0..SEGMENTS);
        let slot = { queues }.find_map(|queue| self.queues.tail(queue)).expect("an entry to evict");
        self.queues.remove(slot);
        slot
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        self.queues.insert(self.entrance(newcomer.weight), slot, newcomer.weight);
    }

    fn on_remove(&mut self, slot: Slot) {
        self.queues.remove(slot);
    }

    fn overflow(&mut self) -> Option<Slot> {
        self.fallen.pop()
    }

    fn set_capacity(&mut self, capacity: u64) {
        self.segment_capacity = capacity / SEGMENTS as u64;
        for segment in (0..SEGMENTS).rev() {
            self.settle(segment);
        }
    }

    fn relocate(&mut self, from: Slot, to: Slot) {
        debug_assert!(self.fallen.is_empty(), "the driver has taken the overflow");
        self.queues.relocate(from, to);
    }

    fn drop_slots(&mut self, slots: usize) {
        self.queues.drop_slots(slots);
    }

    fn ranking(&self) -> Vec<Ranked> {
        let large = self.queues.iter(LARGE).map(|slot| Ranked { slot, uses: 0 });
        let segment =
            |(uses, segment)| self.queues.iter(segment).map(move |slot| Ranked { slot, uses });
        best_first(large.chain((0..).zip(0..SEGMENTS).flat_map(segment)))
    }

    fn queues(&self) -> Vec<Queue> {
        let dump = |(queue, name)| Queue { name, entries: self.queues.dump(queue) };
        NAMES.into_iter().enumerate().map(dump).collect()
    }

    fn metadata_bytes(&self) -> usize {
        self.queues.memory_bytes()
    }
}
