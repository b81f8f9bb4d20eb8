//! `s3fifo`.

use std::collections::HashMap;

use haypile_policy::{Newcomer, Policy, Queue, Slot};
use proptest::prelude::*;

use crate::driver::Event::{Evicted, Stored, Updated};
use crate::driver::{Setup, model, objects, weighted};
use crate::invariants::same_decisions;
use crate::plain::{self, Weights, dump, percent};
use crate::requests::cases;

#[derive(Debug, Default)]
struct Plain {
    small_percent: u64,
    ghost_percent: u64,
    threshold: u32,
    capacity: u64,
    small: Vec<Slot>,
    main: Vec<Slot>,
    hits: HashMap<Slot, u32>,
    weights: Weights,
    ghosts: Vec<(u64, u64)>,
    was_ghost: bool,
}

impl Plain {
    fn new(capacity: u64, small_percent: u64, ghost_percent: u64, threshold: u32) -> Self {
        Self { small_percent, ghost_percent, threshold, capacity, ..Self::default() }
    }

    fn trim_ghosts(&mut self, incoming: u64) {
        let bound = percent(self.capacity, self.ghost_percent);
        while self.ghosts.iter().map(|(_, weight)| weight).sum::<u64>() + incoming > bound {
            self.ghosts.remove(0);
        }
    }
}

impl Policy for Plain {
    fn reserve_slots(&mut self, _slots: usize) {}

    fn on_hit(&mut self, slot: Slot) {
        let hits = self.hits.get_mut(&slot).unwrap();
        *hits = (*hits + 1).min(3);
    }

    fn on_update(&mut self, slot: Slot, weight: u64) {
        self.weights.set(slot, weight);
        self.on_hit(slot);
    }

    fn admit(&mut self, newcomer: Newcomer, _missing: u64) -> bool {
        let before = self.ghosts.len();
        self.ghosts.retain(|(fingerprint, _)| *fingerprint != newcomer.fingerprint);
        self.was_ghost = self.ghosts.len() < before;
        true
    }

    fn evict(&mut self, _newcomer: Option<Newcomer>) -> Slot {
        let main_capacity = self.capacity - percent(self.capacity, self.small_percent);
        if self.weights.sum(&self.main) <= main_capacity {
            while let Some(slot) = plain::pop(&mut self.small) {
                if self.hits[&slot] < self.threshold {
                    let weight = self.weights.of(slot);
                    if weight <= percent(self.capacity, self.ghost_percent) {
                        self.trim_ghosts(weight);
                        self.ghosts.push((u64::from(slot), weight));
                    }
                    return slot;
                }
                self.hits.insert(slot, 0);
                self.main.push(slot);
            }
        }
        loop {
            let slot = self.main.remove(0);
            if self.hits[&slot] == 0 {
                return slot;
            }
            *self.hits.get_mut(&slot).unwrap() -= 1;
            self.main.push(slot);
        }
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        self.hits.insert(slot, 0);
        self.weights.set(slot, newcomer.weight);
        if self.was_ghost { &mut self.main } else { &mut self.small }.push(slot);
    }

    fn on_remove(&mut self, slot: Slot) {
        assert!(plain::take(&mut self.small, slot) || plain::take(&mut self.main, slot));
    }

    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.trim_ghosts(0);
    }

    fn queues(&self) -> Vec<Queue> {
        let ghosts = self.ghosts.iter().map(|(fingerprint, _)| *fingerprint).collect();
        vec![
            dump("small", &self.small),
            dump("main", &self.main),
            Queue { name: "ghost", entries: ghosts },
        ]
    }
}

#[test]
fn the_small_queue_filters() {
    // The small queue has 1 of 10, the main queue 9; ghosts weigh 9 at most.
    let mut cache = objects("s3fifo", 10);
    cache.read(1..=10);
    assert_eq!(cache.queues(), "small 1 2 3 4 5 6 7 8 9 10 | main | ghost");
    // One hit earns a place in the main queue, which the filter grants when it gets there.
    cache.read([1, 3]);
    assert_eq!(cache.read([11]), [Evicted(2), Stored(11)]);
    assert_eq!(cache.queues(), "small 3 4 5 6 7 8 9 10 11 | main 1 | ghost 2");
    // A ghost that returns goes to the main queue and is no longer a ghost.
    assert_eq!(cache.read([2]), [Evicted(4), Stored(2)]);
    assert_eq!(cache.queues(), "small 5 6 7 8 9 10 11 | main 1 3 2 | ghost 4");
    // A removed entry leaves no ghost.
    cache.remove([5, 3]);
    assert_eq!(cache.queues(), "small 6 7 8 9 10 11 | main 1 2 | ghost 4");
}

#[test]
fn a_full_main_queue_gives_up_its_own_after_a_round_per_hit() {
    // The small queue has 1 of 4 and the main queue 3.
    let mut cache = objects("s3fifo:small=25", 4);
    // All four are hit, so the filter lets them through and finds the small queue empty.
    // Hits in the small queue do not count in the main queue: 1 leaves.
    cache.read([1, 2, 3, 4, 1, 2, 3, 4]);
    assert_eq!(cache.read([5]), [Evicted(1), Stored(5)]);
    assert_eq!(cache.queues(), "small 5 | main 2 3 4 | ghost");
    // The main queue is at its size, not above it: the small queue evicts.
    assert_eq!(cache.read([6]), [Evicted(5), Stored(6)]);
    assert_eq!(cache.queues(), "small 6 | main 2 3 4 | ghost 5");
    // 5 comes to the main queue, which is now above its size.
    assert_eq!(cache.read([5]), [Evicted(6), Stored(5)]);
    assert_eq!(cache.queues(), "small | main 2 3 4 5 | ghost 6");
    // 2 was hit five times, of which three count; 3 once; 4 not at all.
    cache.read([2, 2, 2, 2, 2, 3]);
    assert_eq!(cache.read([7]), [Evicted(4), Stored(7)]);
    assert_eq!(cache.queues(), "small 7 | main 5 2 3 | ghost 6");
    // Counters left: 5: 0, 2: 2, 3: 0. An entry evicted from the main queue leaves no ghost.
    assert_eq!(cache.read([6]), [Evicted(7), Stored(6)]);
    assert_eq!(cache.queues(), "small | main 5 2 3 6 | ghost 7");
    assert_eq!(cache.read([8, 7]), [Evicted(5), Stored(8), Evicted(8), Stored(7)]);
    assert_eq!(cache.queues(), "small | main 2 3 6 7 | ghost 8");
    assert_eq!(cache.read([9]), [Evicted(3), Stored(9)]);
    assert_eq!(cache.queues(), "small 9 | main 6 7 2 | ghost 8");
}

#[test]
fn weights_and_capacities() {
    // The small queue has 10 of 20, the main queue 10; ghosts weigh 5 at most.
    let mut cache = weighted("s3fifo:small=50,ghost=25,threshold=2", 20);
    cache.fill([(1, 3), (2, 6), (3, 3), (4, 8)]);
    assert_eq!(cache.queues(), "small 1 2 3 4 | main | ghost");
    // One hit is not enough here. 2 is too heavy to be remembered.
    cache.read([1]);
    assert_eq!(cache.fill([(5, 9)]), [Evicted(1), Evicted(2), Stored(5)]);
    assert_eq!(cache.queues(), "small 3 4 5 | main | ghost 1");
    // A new value is a hit. 3 weighs 4 now: 21 of 20 are used, and 3 itself is the oldest.
    assert_eq!(cache.write(3, 4), [Updated(3), Evicted(3)]);
    // The ghosts 1 and 3 would weigh 7.
    assert_eq!(cache.queues(), "small 4 5 | main | ghost 3");
    // A ghost returns to the main queue with whatever weight.
    assert_eq!(cache.fill([(3, 1)]), [Stored(3)]);
    assert_eq!(cache.queues(), "small 4 5 | main 3 | ghost");
    // Two hits are enough; 4 grows beyond the main queue's size and comes there all the same.
    cache.read([4]);
    assert_eq!(cache.write(4, 11), [Updated(4), Evicted(5)]);
    assert_eq!(cache.queues(), "small | main 3 4 | ghost");
    assert_eq!(cache.write(4, 2), [Updated(4)]);
    assert_eq!(cache.fill([(6, 5), (7, 5)]), [Stored(6), Stored(7)]);
    assert_eq!(cache.queues(), "small 6 7 | main 3 4 | ghost");
    // Of 8 the main queue has 4, and has 3.
    assert_eq!(cache.resize(8), [Evicted(6)]);
    // 6 weighs 5, more than the 2 that ghosts may weigh now.
    assert_eq!(cache.queues(), "small 7 | main 3 4 | ghost");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn as_a_plain_model_does(case in cases()) {
        for (spec, small, ghost, threshold) in [
            ("s3fifo", 10, 90, 1),
            ("s3fifo:small=40,threshold=2", 40, 90, 2),
            ("s3fifo:small=25,ghost=300,threshold=3", 25, 300, 3),
            ("s3fifo:ghost=0", 10, 0, 1),
        ] {
            let setup = Setup {
                spec, capacity: case.capacity, weighted: case.weighted, keys: case.keys
            };
            let plain = Plain::new(case.capacity, small, ghost, threshold);
            same_decisions(&setup, setup.by_slot(), model(plain, &setup), &case.ops);
        }
    }
}
