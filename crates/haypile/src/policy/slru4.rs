//! Segmented LRU with four equal segments, as libCacheSim defines it.

use super::queues::Queues;
use super::ranking::best_first;
use super::weight::Weights;
use super::{Newcomer, Policy, PolicyKind, PolicySpec, Queue, Ranked, Slot, Victim};

/// The name and options of `slru4`.
pub const KIND: PolicyKind = PolicyKind {
    name: "slru4",
    summary: "four equal LRU segments; a hit moves an entry one segment up (libCacheSim's SLRU)",
    paper: "Karedla, Love and Wherry, Caching Strategies to Improve Disk System Performance, \
            IEEE Computer 27(3), 1994; with four segments as in libCacheSim",
    params: &[],
};

const SEGMENTS: usize = 4;
const NAMES: [&str; SEGMENTS] = ["segment 0", "segment 1", "segment 2", "segment 3"];

/// Four segments of a quarter of the capacity each.
///
/// A newcomer enters the lowest segment that has room; what overflows a segment falls one down,
/// and out of the lowest one it leaves the cache, even where the others have room. An entry
/// heavier than a segment is refused. All of that is libCacheSim's definition.
#[derive(Debug)]
pub struct Slru4<W> {
    segments: Queues<W, SEGMENTS>,
    segment_capacity: u64,
    /// Entries that fell out of the lowest segment on a hit.
    fallen: Vec<Slot>,
}

impl<W: Weights> Slru4<W> {
    /// Empty segments for a cache of `capacity`.
    pub fn new(capacity: u64, _spec: &PolicySpec) -> Self {
        Self {
            segments: Queues::new(),
            segment_capacity: capacity / SEGMENTS as u64,
            fallen: Vec::new(),
        }
    }

    /// Lets what overflows `segment` fall. Those below are settled only where something falls
    /// into them.
    fn settle(&mut self, segment: usize) {
        while self.segments.sum(segment) > self.segment_capacity {
            let slot = self.segments.tail(segment).expect("an overflowing segment");
            if segment == 0 {
                self.segments.remove(slot);
                self.fallen.push(slot);
            } else {
                self.segments.move_to(segment - 1, slot);
                self.settle(segment - 1);
            }
        }
    }
}

impl<W: Weights> Policy for Slru4<W> {
    const HAS_OVERFLOW: bool = true;
    const RELOCATES: bool = true;

    fn reserve_slots(&mut self, slots: usize) {
        self.segments.reserve(slots);
    }

    #[inline]
    fn on_hit(&mut self, slot: Slot) {
        let segment = (self.segments.of(slot) + 1).min(SEGMENTS - 1);
        self.segments.move_to(segment, slot);
        self.settle(segment);
    }

    fn on_update(&mut self, slot: Slot, weight: u64) {
        self.segments.reweigh(slot, weight);
        self.on_hit(slot);
    }

    fn admit(&mut self, newcomer: Newcomer) -> bool {
        newcomer.weight <= self.segment_capacity
    }

    fn evict(&mut self, _newcomer: Option<Newcomer>) -> Victim {
        let lowest = (0..SEGMENTS).find_map(|segment| self.segments.tail(segment));
        let slot = lowest.expect("an entry to evict");
        self.segments.remove(slot);
        Victim::Slot(slot)
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        let has_room = |segment: &usize| {
            self.segments.sum(*segment) + newcomer.weight <= self.segment_capacity
        };
        let segment = (0..SEGMENTS).find(has_room).unwrap_or(0);
        self.segments.insert(segment, slot, newcomer.weight);
    }

    fn on_remove(&mut self, slot: Slot) {
        self.segments.remove(slot);
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
        self.segments.relocate(from, to);
    }

    fn drop_slots(&mut self, slots: usize) {
        self.segments.drop_slots(slots);
    }

    fn ranking(&self) -> Vec<Ranked> {
        let segment =
            |(uses, segment)| self.segments.iter(segment).map(move |slot| Ranked { slot, uses });
        best_first((0..).zip(0..SEGMENTS).flat_map(segment))
    }

    fn queues(&self) -> Vec<Queue> {
        let dump = |(segment, name)| Queue { name, entries: self.segments.dump(segment) };
        NAMES.into_iter().enumerate().map(dump).collect()
    }

    fn metadata_bytes(&self) -> usize {
        self.segments.memory_bytes()
    }
}
