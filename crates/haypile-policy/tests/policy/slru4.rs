//! `slru4`: libCacheSim's four segments.

use haypile_policy::{Newcomer, Policy, Queue, Slot};
use proptest::prelude::*;

use crate::driver::Event::{Evicted, Hit, Refused, Stored, Updated};
use crate::driver::{Setup, model, objects, weighted};
use crate::invariants::same_decisions;
use crate::plain::{self, Weights, dump};
use crate::requests::cases;

#[derive(Debug, Default)]
struct Plain {
    capacity: u64,
    falls: bool,
    segments: [Vec<Slot>; 4],
    large: Vec<Slot>,
    weights: Weights,
    fallen: Vec<Slot>,
}

impl Plain {
    fn overflows(&self, segment: usize, incoming: u64) -> bool {
        self.weights.sum(&self.segments[segment]) + incoming > self.capacity / 4
    }

    fn is_large(&self, weight: u64) -> bool {
        weight > self.capacity / 4
    }

    fn enter(&mut self, slot: Slot) {
        let weight = self.weights.of(slot);
        if self.is_large(weight) {
            self.large.push(slot);
            return;
        }
        let lowest = (0..4).find(|segment| !self.overflows(*segment, weight));
        self.segments[lowest.unwrap_or(0)].push(slot);
    }

    fn cool(&mut self, segment: usize) {
        if segment == 0 && !self.falls {
            return;
        }
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
        if plain::take(&mut self.large, slot) {
            self.enter(slot);
            return;
        }
        let from = self.segments.iter_mut().position(|queue| plain::take(queue, slot)).unwrap();
        let to = if from == 3 { 3 } else { from + 1 };
        self.segments[to].push(slot);
        self.cool(to);
    }

    fn on_update(&mut self, slot: Slot, weight: u64) {
        self.weights.set(slot, weight);
        if self.is_large(weight) {
            self.on_remove(slot);
            self.large.push(slot);
        } else {
            self.on_hit(slot);
        }
    }

    fn admit(&mut self, newcomer: Newcomer, missing: u64) -> bool {
        !self.is_large(newcomer.weight) || missing <= self.weights.sum(&self.large)
    }

    fn evict(&mut self, _newcomer: Option<Newcomer>) -> Slot {
        let large = plain::pop(&mut self.large);
        large.or_else(|| self.segments.iter_mut().find_map(plain::pop)).unwrap()
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        self.weights.set(slot, newcomer.weight);
        self.enter(slot);
    }

    fn on_remove(&mut self, slot: Slot) {
        let mut queues = self.segments.iter_mut().chain([&mut self.large]);
        assert!(queues.any(|queue| plain::take(queue, slot)));
    }

    fn overflow(&mut self) -> Option<Slot> {
        self.fallen.pop()
    }

    fn queues(&self) -> Vec<Queue> {
        let names = ["segment 0", "segment 1", "segment 2", "segment 3", "large"];
        let queues = self.segments.iter().chain([&self.large]);
        names.into_iter().zip(queues).map(|(name, queue)| dump(name, queue)).collect()
    }
}

#[test]
fn a_hit_leads_one_segment_up() {
    let mut cache = objects("slru4", 8);
    // A newcomer enters the lowest segment with room.
    cache.read(1..=8);
    assert_eq!(
        cache.queues(),
        "segment 0 1 2 | segment 1 3 4 | segment 2 5 6 | segment 3 7 8 | large"
    );
    assert_eq!(cache.read([9]), [Evicted(1), Stored(9)]);
    assert_eq!(
        cache.queues(),
        "segment 0 2 9 | segment 1 3 4 | segment 2 5 6 | segment 3 7 8 | large"
    );
    // The oldest of a segment that overflows falls one down.
    assert_eq!(cache.read([2]), [Hit(2)]);
    assert_eq!(
        cache.queues(),
        "segment 0 9 3 | segment 1 4 2 | segment 2 5 6 | segment 3 7 8 | large"
    );
    // At the top a hit makes younger. A new value is a hit.
    cache.read([7]);
    assert_eq!(cache.write(5, 1), [Updated(5)]);
    assert_eq!(
        cache.queues(),
        "segment 0 9 3 | segment 1 4 2 | segment 2 6 8 | segment 3 7 5 | large"
    );
    cache.remove([4, 7, 9]);
    assert_eq!(cache.queues(), "segment 0 3 | segment 1 2 | segment 2 6 8 | segment 3 5 | large");
    // A segment has 1: 6 falls, and so does 2, to where there is room.
    cache.remove([3]);
    assert_eq!(cache.resize(4), []);
    assert_eq!(cache.queues(), "segment 0 2 | segment 1 6 | segment 2 8 | segment 3 5 | large");
    // With no place left, a newcomer takes the lowest; where that is empty the next gives.
    cache.remove([2]);
    cache.read([1]);
    assert_eq!(cache.read([3]), [Evicted(1), Stored(3)]);
    cache.remove([3]);
    assert_eq!(cache.write(6, 1), [Updated(6)]);
    assert_eq!(cache.queues(), "segment 0 | segment 1 8 | segment 2 6 | segment 3 5 | large");
}

#[test]
fn weights_fall_through() {
    for spec in ["slru4", "slru4:fall=1"] {
        let mut cache = weighted(spec, 40);
        cache.fill([(1, 4), (2, 4), (3, 6), (4, 6)]);
        assert_eq!(cache.queues(), "segment 0 1 2 | segment 1 3 | segment 2 4 | segment 3 | large");
        cache.read([1]);
        assert_eq!(cache.queues(), "segment 0 2 | segment 1 3 1 | segment 2 4 | segment 3 | large");
        cache.read([2]);
        assert_eq!(cache.queues(), "segment 0 3 | segment 1 1 2 | segment 2 4 | segment 3 | large");
        cache.fill([(5, 4), (3, 6)]);
        assert_eq!(
            cache.queues(),
            "segment 0 5 1 | segment 1 2 3 | segment 2 4 | segment 3 | large"
        );
        // 2 weighs 8 and goes up; 4 falls, then 3, and 5 out of the lowest segment.
        let events = cache.write(2, 8);
        if spec == "slru4" {
            // The cache is far from full.
            assert_eq!(events, [Updated(2)]);
            assert_eq!(
                cache.queues(),
                "segment 0 5 1 3 | segment 1 4 | segment 2 2 | segment 3 | large"
            );
            // A segment has 5, which 2 and 4 are too heavy for, and 28 of 20 are used.
            assert_eq!(cache.resize(20), [Evicted(2)]);
            assert_eq!(
                cache.queues(),
                "segment 0 5 1 3 | segment 1 | segment 2 | segment 3 | large 4"
            );
        } else {
            assert_eq!(events, [Updated(2), Evicted(5)]);
            assert_eq!(
                cache.queues(),
                "segment 0 1 3 | segment 1 4 | segment 2 2 | segment 3 | large"
            );
            // 2, 4 and 3 are too heavy for a segment, and 1 falls out of its own before 3 leaves it.
            assert_eq!(cache.resize(20), [Evicted(1)]);
            assert_eq!(
                cache.queues(),
                "segment 0 | segment 1 | segment 2 | segment 3 | large 2 4 3"
            );
        }
    }
}

#[test]
fn an_entry_too_heavy_for_a_segment_stays_while_there_is_room() {
    let mut cache = weighted("slru4", 40);
    cache.fill([(1, 4), (2, 11), (3, 12), (4, 4)]);
    assert_eq!(cache.queues(), "segment 0 1 4 | segment 1 | segment 2 | segment 3 | large 2 3");
    // It makes room for those that are as heavy, the one that was not asked for longest first.
    cache.read([2]);
    assert_eq!(cache.fill([(5, 12)]), [Evicted(3), Stored(5)]);
    assert_eq!(cache.queues(), "segment 0 1 4 | segment 1 | segment 2 | segment 3 | large 2 5");
    // And for all others; but these do not leave for it.
    assert_eq!(cache.fill([(6, 10)]), [Evicted(2), Stored(6)]);
    assert_eq!(cache.fill([(7, 35)]), [Refused(7)]);
    assert_eq!(cache.queues(), "segment 0 1 4 | segment 1 6 | segment 2 | segment 3 | large 5");
    // An entry that grows is heavier than a segment from then on, and may leave for itself.
    assert_eq!(cache.write(6, 22), [Updated(6), Evicted(5)]);
    assert_eq!(cache.queues(), "segment 0 1 4 | segment 1 | segment 2 | segment 3 | large 6");
    assert_eq!(cache.write(6, 33), [Updated(6), Evicted(6)]);
    // One that gets lighter enters the lowest segment with room, as a newcomer does.
    cache.fill([(5, 12)]);
    assert_eq!(cache.write(5, 10), [Updated(5)]);
    assert_eq!(cache.queues(), "segment 0 1 4 | segment 1 5 | segment 2 | segment 3 | large");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn as_a_plain_model_does(case in cases()) {
        for (spec, falls) in [("slru4", false), ("slru4:fall=1", true)] {
            let setup = Setup {
                spec, capacity: case.capacity, weighted: case.weighted, keys: case.keys
            };
            let plain = Plain { capacity: case.capacity, falls, ..Plain::default() };
            same_decisions(&setup, setup.by_slot(), model(plain, &setup), &case.ops);
        }
    }
}
