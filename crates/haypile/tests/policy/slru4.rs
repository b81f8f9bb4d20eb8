//! `slru4`: libCacheSim's four segments.

use haypile::policy::{Newcomer, Policy, Queue, Slot, Victim};
use proptest::prelude::*;

use crate::driver::Event::{Evicted, Hit, Refused, Stored, Updated};
use crate::driver::{Setup, model, objects, weighted};
use crate::invariants::same_decisions;
use crate::plain::{self, Weights, dump};
use crate::requests::cases;

#[derive(Debug, Default)]
struct Plain {
    capacity: u64,
    segments: [Vec<Slot>; 4],
    weights: Weights,
    fallen: Vec<Slot>,
}

impl Plain {
    fn overflows(&self, segment: usize, incoming: u64) -> bool {
        self.weights.sum(&self.segments[segment]) + incoming > self.capacity / 4
    }

    fn cool(&mut self, segment: usize) {
        while self.overflows(segment, 0) {
            let slot = self.segments[segment].remove(0);
            match segment.checked_sub(1) {
                Some(below) => {
                    self.segments[below].push(slot);
                    self.cool(below);
                }
                None => self.fallen.push(slot),
            }
        }
    }
}

impl Policy for Plain {
    const HAS_OVERFLOW: bool = true;

    fn reserve_slots(&mut self, _slots: usize) {}

    fn on_hit(&mut self, slot: Slot) {
        let from = self.segments.iter_mut().position(|queue| plain::take(queue, slot)).unwrap();
        let to = if from == 3 { 3 } else { from + 1 };
        self.segments[to].push(slot);
        self.cool(to);
    }

    fn on_update(&mut self, slot: Slot, weight: u64) {
        self.weights.set(slot, weight);
        self.on_hit(slot);
    }

    fn admit(&mut self, newcomer: Newcomer) -> bool {
        newcomer.weight <= self.capacity / 4
    }

    fn evict(&mut self, _newcomer: Option<Newcomer>) -> Victim {
        Victim::Slot(self.segments.iter_mut().find_map(plain::pop).unwrap())
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        self.weights.set(slot, newcomer.weight);
        let lowest = (0..4).find(|segment| !self.overflows(*segment, newcomer.weight));
        self.segments[lowest.unwrap_or(0)].push(slot);
    }

    fn on_remove(&mut self, slot: Slot) {
        assert!(self.segments.iter_mut().any(|queue| plain::take(queue, slot)));
    }

    fn overflow(&mut self) -> Option<Slot> {
        self.fallen.pop()
    }

    fn queues(&self) -> Vec<Queue> {
        let names = ["segment 0", "segment 1", "segment 2", "segment 3"];
        names.into_iter().zip(&self.segments).map(|(name, queue)| dump(name, queue)).collect()
    }
}

#[test]
fn a_hit_leads_one_segment_up() {
    let mut cache = objects("slru4", 8);
    // A newcomer enters the lowest segment with room.
    cache.read(1..=8);
    assert_eq!(cache.queues(), "segment 0 1 2 | segment 1 3 4 | segment 2 5 6 | segment 3 7 8");
    assert_eq!(cache.read([9]), [Evicted(1), Stored(9)]);
    assert_eq!(cache.queues(), "segment 0 2 9 | segment 1 3 4 | segment 2 5 6 | segment 3 7 8");
    // The oldest of a segment that overflows falls one down.
    assert_eq!(cache.read([2]), [Hit(2)]);
    assert_eq!(cache.queues(), "segment 0 9 3 | segment 1 4 2 | segment 2 5 6 | segment 3 7 8");
    // At the top a hit makes younger. A new value is a hit.
    cache.read([7]);
    assert_eq!(cache.write(5, 1), [Updated(5)]);
    assert_eq!(cache.queues(), "segment 0 9 3 | segment 1 4 2 | segment 2 6 8 | segment 3 7 5");
    cache.remove([4, 7, 9]);
    assert_eq!(cache.queues(), "segment 0 3 | segment 1 2 | segment 2 6 8 | segment 3 5");
    // A segment has 1: 6 falls, and so does 2, to where there is room.
    cache.remove([3]);
    assert_eq!(cache.resize(4), []);
    assert_eq!(cache.queues(), "segment 0 2 | segment 1 6 | segment 2 8 | segment 3 5");
    // With no place left, a newcomer takes the lowest; where that is empty the next gives.
    cache.remove([2]);
    cache.read([1]);
    assert_eq!(cache.read([3]), [Evicted(1), Stored(3)]);
    cache.remove([3]);
    assert_eq!(cache.write(6, 1), [Updated(6)]);
    assert_eq!(cache.queues(), "segment 0 | segment 1 8 | segment 2 6 | segment 3 5");
}

#[test]
fn weights_fall_through() {
    let mut cache = weighted("slru4", 40);
    cache.fill([(1, 4), (2, 4), (3, 6), (4, 6)]);
    assert_eq!(cache.queues(), "segment 0 1 2 | segment 1 3 | segment 2 4 | segment 3");
    // Heavier than a segment.
    assert_eq!(cache.fill([(5, 11)]), [Refused(5)]);
    cache.read([1]);
    assert_eq!(cache.queues(), "segment 0 2 | segment 1 3 1 | segment 2 4 | segment 3");
    cache.read([2]);
    assert_eq!(cache.queues(), "segment 0 3 | segment 1 1 2 | segment 2 4 | segment 3");
    cache.fill([(5, 4), (3, 6)]);
    assert_eq!(cache.queues(), "segment 0 5 1 | segment 1 2 3 | segment 2 4 | segment 3");
    // 2 weighs 8 and goes up; 4 falls, then 3, and 5 out of the cache, which is far from full.
    assert_eq!(cache.write(2, 8), [Updated(2), Evicted(5)]);
    assert_eq!(cache.queues(), "segment 0 1 3 | segment 1 4 | segment 2 2 | segment 3");
    // A segment has 5: 2 pushes all the others out and cannot stay either.
    let mut events = cache.resize(20);
    events.sort();
    assert_eq!(events, [Evicted(1), Evicted(2), Evicted(3), Evicted(4)]);
    assert_eq!(cache.queues(), "segment 0 | segment 1 | segment 2 | segment 3");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn as_a_plain_model_does(case in cases()) {
        let setup = Setup {
            spec: "slru4", capacity: case.capacity, weighted: case.weighted, keys: case.keys
        };
        let plain = Plain { capacity: case.capacity, ..Plain::default() };
        same_decisions(&setup, setup.by_slot(), model(plain, &setup), &case.ops);
    }
}
