//! `clock`.

use std::collections::HashMap;

use haypile_policy::{Newcomer, Policy, Queue, Slot};
use proptest::prelude::*;

use crate::driver::Event::{Evicted, Stored};
use crate::driver::{Setup, model, objects};
use crate::invariants::same_decisions;
use crate::plain::{self, dump};
use crate::requests::cases;

#[derive(Debug)]
struct Plain {
    max: u32,
    queue: Vec<Slot>,
    uses: HashMap<Slot, u32>,
}

impl Policy for Plain {
    fn reserve_slots(&mut self, _slots: usize) {}

    fn on_hit(&mut self, slot: Slot) {
        let uses = self.uses.entry(slot).or_default();
        *uses = (*uses + 1).min(self.max);
    }

    fn evict(&mut self, _newcomer: Option<Newcomer>) -> Slot {
        loop {
            let slot = self.queue.remove(0);
            if self.uses[&slot] == 0 {
                return slot;
            }
            *self.uses.get_mut(&slot).unwrap() -= 1;
            self.queue.push(slot);
        }
    }

    fn on_insert(&mut self, slot: Slot, _newcomer: Newcomer) {
        self.uses.insert(slot, 0);
        self.queue.push(slot);
    }

    fn on_remove(&mut self, slot: Slot) {
        plain::take(&mut self.queue, slot);
    }

    fn queues(&self) -> Vec<Queue> {
        vec![dump("clock", &self.queue)]
    }
}

#[test]
fn one_bit_by_hand() {
    let mut cache = objects("clock", 3);
    cache.read([1, 2, 3, 1, 1, 1]);
    assert_eq!(cache.queues(), "clock 1 2 3");
    // However often it was used, one bit gives 1 one more round.
    assert_eq!(cache.read([4]), [Evicted(2), Stored(4)]);
    assert_eq!(cache.queues(), "clock 3 1 4");
    assert_eq!(cache.read([5, 6]), [Evicted(3), Stored(5), Evicted(1), Stored(6)]);
    assert_eq!(cache.queues(), "clock 4 5 6");
    // All are used: the hand goes round once and takes the first.
    cache.read([4, 5, 6]);
    assert_eq!(cache.read([7]), [Evicted(4), Stored(7)]);
    assert_eq!(cache.queues(), "clock 5 6 7");
    // A new value is a use; the use does not outlive the entry.
    cache.write(5, 1);
    cache.remove([5]);
    assert_eq!(cache.read([5]), [Stored(5)]);
    assert_eq!(cache.queues(), "clock 6 7 5");
    assert_eq!(cache.read([8, 9, 10]).len(), 6);
    assert_eq!(cache.queues(), "clock 8 9 10");
    cache.read([8]);
    assert_eq!(cache.resize(1), [Evicted(9), Evicted(10)]);
    assert_eq!(cache.queues(), "clock 8");
}

#[test]
fn two_bits_by_hand() {
    let mut cache = objects("clock:bits=2", 2);
    // 1 is used five times, of which the counter holds three; 2 once.
    cache.read([1, 2, 1, 1, 1, 1, 1, 2]);
    // 1: 3 -> 2, round; 2: 1 -> 0, round; 1: 2 -> 1, round; 2 leaves.
    assert_eq!(cache.read([3]), [Evicted(2), Stored(3)]);
    assert_eq!(cache.queues(), "clock 1 3");
    // 1: 1 -> 0, round; 3 leaves.
    assert_eq!(cache.read([4]), [Evicted(3), Stored(4)]);
    assert_eq!(cache.queues(), "clock 1 4");
    assert_eq!(cache.read([5]), [Evicted(1), Stored(5)]);
    assert_eq!(cache.queues(), "clock 4 5");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn as_a_plain_model_does(case in cases()) {
        for (spec, max) in [("clock", 1), ("clock:bits=2", 3), ("clock:bits=7", 127)] {
            let setup = Setup {
                spec, capacity: case.capacity, weighted: case.weighted, keys: case.keys
            };
            let plain = Plain { max, queue: Vec::new(), uses: HashMap::new() };
            same_decisions(&setup, setup.by_slot(), model(plain, &setup), &case.ops);
        }
    }
}
