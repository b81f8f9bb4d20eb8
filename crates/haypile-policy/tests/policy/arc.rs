//! `arc`.

use haypile_policy::{Newcomer, Policy, Queue, Slot};
use proptest::prelude::*;

use crate::driver::Event::{Evicted, Hit, Stored, Updated};
use crate::driver::{Setup, model, objects, weighted};
use crate::invariants::same_decisions;
use crate::plain::{self, Weights, dump, slot_of};
use crate::requests::cases;

/// The paper's listing, with sums of weights instead of counts. A ghost keeps its slot and its
/// weight.
#[derive(Debug, Default)]
struct Plain {
    c: u64,
    p: f64,
    weighted: bool,
    t1: Vec<Slot>,
    t2: Vec<Slot>,
    b1: Vec<Slot>,
    b2: Vec<Slot>,
    weights: Weights,
    case: Case,
}

/// The paper's cases II, III and IV.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Case {
    InB1,
    InB2,
    #[default]
    New,
}

impl Plain {
    fn l1(&self) -> u64 {
        self.weights.sum(&self.t1) + self.weights.sum(&self.b1)
    }

    fn all(&self) -> u64 {
        self.l1() + self.weights.sum(&self.t2) + self.weights.sum(&self.b2)
    }

    fn replace(&mut self) -> Slot {
        let t1 = self.weights.sum(&self.t1) as f64;
        let from_t1 =
            !self.t1.is_empty() && (t1 > self.p || (self.case == Case::InB2 && t1 >= self.p));
        let (queue, ghosts) = if from_t1 || self.t2.is_empty() {
            (&mut self.t1, &mut self.b1)
        } else {
            (&mut self.t2, &mut self.b2)
        };
        let slot = queue.remove(0);
        ghosts.push(slot);
        self.keep_bounds();
        slot
    }

    /// The paper's bounds, which a change of weights would break otherwise.
    fn keep_bounds(&mut self) {
        while self.weighted && self.l1() > self.c && plain::pop(&mut self.b1).is_some() {}
        while self.weighted && self.all() > 2 * self.c && plain::pop(&mut self.b2).is_some() {}
    }
}

impl Policy for Plain {
    fn reserve_slots(&mut self, _slots: usize) {}

    fn on_hit(&mut self, slot: Slot) {
        plain::take(&mut self.t1, slot);
        plain::to_head(&mut self.t2, slot);
    }

    fn on_update(&mut self, slot: Slot, weight: u64) {
        self.weights.set(slot, weight);
        self.on_hit(slot);
        self.keep_bounds();
    }

    fn admit(&mut self, newcomer: Newcomer, _missing: u64) -> bool {
        let slot = slot_of(newcomer.fingerprint);
        let b1 = self.weights.sum(&self.b1) as f64;
        let b2 = self.weights.sum(&self.b2) as f64;
        let unit = if self.weighted { newcomer.weight as f64 } else { 1.0 };
        self.case = if plain::take(&mut self.b1, slot) {
            self.p = (self.p + unit * (b2 / b1).max(1.0)).min(self.c as f64);
            Case::InB1
        } else if plain::take(&mut self.b2, slot) {
            self.p = (self.p - unit * (b1 / b2).max(1.0)).max(0.0);
            Case::InB2
        } else {
            Case::New
        };
        true
    }

    fn evict(&mut self, newcomer: Option<Newcomer>) -> Slot {
        if self.case == Case::New {
            let incoming = newcomer.map_or(0, |newcomer| newcomer.weight);
            if self.l1() + incoming > self.c {
                if self.b1.is_empty() && !self.t1.is_empty() {
                    return self.t1.remove(0);
                }
                plain::pop(&mut self.b1);
            } else {
                if !self.weighted && self.all() >= 2 * self.c {
                    plain::pop(&mut self.b2);
                }
                while self.weighted
                    && self.all() >= 2 * self.c
                    && plain::pop(&mut self.b2).is_some()
                {}
            }
        }
        self.replace()
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        self.weights.set(slot, newcomer.weight);
        if self.case == Case::New { &mut self.t1 } else { &mut self.t2 }.push(slot);
        self.case = Case::New;
        self.keep_bounds();
    }

    fn on_remove(&mut self, slot: Slot) {
        assert!(plain::take(&mut self.t1, slot) || plain::take(&mut self.t2, slot));
    }

    fn queues(&self) -> Vec<Queue> {
        let Self { t1, t2, b1, b2, .. } = self;
        vec![dump("t1", t1), dump("t2", t2), dump("b1", b1), dump("b2", b2)]
    }
}

#[test]
fn case_by_case() {
    let mut cache = objects("arc", 4);
    cache.read([1, 2, 3, 4]);
    assert_eq!(cache.queues(), "t1 1 2 3 4 | t2 | b1 | b2");
    // Case I: a hit leads to T2.
    assert_eq!(cache.read([1]), [Hit(1)]);
    assert_eq!(cache.queues(), "t1 2 3 4 | t2 1 | b1 | b2");
    // Case IV B: L1 has less than c. p is 0, so that T1 gives.
    assert_eq!(cache.read([5]), [Evicted(2), Stored(5)]);
    assert_eq!(cache.queues(), "t1 3 4 5 | t2 1 | b1 2 | b2");
    // Case IV A: L1 has c, and the oldest of B1 is forgotten.
    assert_eq!(cache.read([6]), [Evicted(3), Stored(6)]);
    assert_eq!(cache.queues(), "t1 4 5 6 | t2 1 | b1 3 | b2");
    // Case II: a hit in B1; p = 1.
    assert_eq!(cache.read([3]), [Evicted(4), Stored(3)]);
    assert_eq!(cache.queues(), "t1 5 6 | t2 1 3 | b1 4 | b2");
    // p = 2, and T1 has no more: T2 gives.
    assert_eq!(cache.read([4]), [Evicted(1), Stored(4)]);
    assert_eq!(cache.queues(), "t1 5 6 | t2 3 4 | b1 | b2 1");
    // Case III: a hit in B2; p = 1.
    assert_eq!(cache.read([1]), [Evicted(5), Stored(1)]);
    assert_eq!(cache.queues(), "t1 6 | t2 3 4 1 | b1 5 | b2");
    // p = 2.
    assert_eq!(cache.read([5]), [Evicted(3), Stored(5)]);
    assert_eq!(cache.queues(), "t1 6 | t2 4 1 5 | b1 | b2 3");
    // p = 1: T1 is as large as it should be, and gives only since the hit was in B2.
    assert_eq!(cache.read([3]), [Evicted(6), Stored(3)]);
    assert_eq!(cache.queues(), "t1 | t2 4 1 5 3 | b1 6 | b2");
    // L1 has 1 of 4: T2 gives, T1 being empty.
    assert_eq!(cache.read([7]), [Evicted(4), Stored(7)]);
    assert_eq!(cache.queues(), "t1 7 | t2 1 5 3 | b1 6 | b2 4");
    // A removed entry leaves no ghost.
    cache.remove([7, 5]);
    assert_eq!(cache.queues(), "t1 | t2 1 3 | b1 6 | b2 4");
    // All four queues may hold 2 now, 1 of them is resident.
    assert_eq!(cache.resize(1), [Evicted(1)]);
    assert_eq!(cache.queues(), "t1 | t2 3 | b1 6 | b2");
}

#[test]
fn steps_are_as_large_as_the_other_ghosts_are_many() {
    let mut cache = objects("arc", 4);
    // T2 is full and falls into B2: p is 0, but T1 holds one at most.
    cache.read([1, 2, 3, 4, 1, 2, 3, 4]);
    assert_eq!(cache.read([5]), [Evicted(1), Stored(5)]);
    assert_eq!(cache.read([6]), [Evicted(5), Stored(6)]);
    assert_eq!(cache.queues(), "t1 6 | t2 2 3 4 | b1 5 | b2 1");
    // p = 1, which is what T1 has: T2 gives.
    assert_eq!(cache.read([5]), [Evicted(2), Stored(5)]);
    assert_eq!(cache.queues(), "t1 6 | t2 3 4 5 | b1 | b2 1 2");
    // T1 had 1, which is not above p = 1.
    assert_eq!(cache.read([7]), [Evicted(3), Stored(7)]);
    assert_eq!(cache.queues(), "t1 6 7 | t2 4 5 | b1 | b2 1 2 3");
    assert_eq!(cache.read([8]), [Evicted(6), Stored(8)]);
    assert_eq!(cache.queues(), "t1 7 8 | t2 4 5 | b1 6 | b2 1 2 3");
    // p = 1 + 3/1, as large as c: T1 may have all.
    assert_eq!(cache.read([6]), [Evicted(4), Stored(6)]);
    assert_eq!(cache.queues(), "t1 7 8 | t2 5 6 | b1 | b2 1 2 3 4");
    // All four queues hold 2c: the oldest of B2 is forgotten.
    assert_eq!(cache.read([9]), [Evicted(5), Stored(9)]);
    assert_eq!(cache.queues(), "t1 7 8 9 | t2 6 | b1 | b2 2 3 4 5");
}

#[test]
fn t1_alone_fills_the_cache() {
    // Case IV A with an empty B1: the oldest of T1 leaves without a ghost.
    let mut cache = objects("arc", 3);
    assert_eq!(cache.read([1, 2, 3, 4])[3..], [Evicted(1), Stored(4)]);
    assert_eq!(cache.queues(), "t1 2 3 4 | t2 | b1 | b2");
}

#[test]
fn weights_move_the_balance() {
    for (spec, victim, queues) in [
        // p = 3: T1, which weighs 4, gives.
        ("arc", 3, "t1 | t2 1 2 | b1 3 | b2"),
        // p = 1: so it does here.
        ("arc:weighted=0", 3, "t1 | t2 1 2 | b1 3 | b2"),
    ] {
        let mut cache = weighted(spec, 10);
        cache.fill([(1, 4), (2, 4), (1, 4)]);
        assert_eq!(cache.fill([(3, 4)]), [Evicted(2), Stored(3)]);
        assert_eq!(cache.queues(), "t1 3 | t2 1 | b1 2 | b2");
        assert_eq!(cache.fill([(2, 3)]), [Evicted(victim), Stored(2)]);
        assert_eq!(cache.queues(), queues);
    }
    for (spec, victim, queues) in [
        // p = 4 and so is T1: T2 gives.
        ("arc", 1, "t1 3 | t2 2 | b1 | b2 1"),
        // p = 1.
        ("arc:weighted=0", 3, "t1 | t2 1 2 | b1 3 | b2"),
    ] {
        let mut cache = weighted(spec, 10);
        cache.fill([(1, 4), (2, 4), (1, 4), (3, 4)]);
        assert_eq!(cache.fill([(2, 4)]), [Evicted(victim), Stored(2)]);
        assert_eq!(cache.queues(), queues);
    }
    // A new value leads to T2; what it pushes out becomes a ghost.
    let mut cache = weighted("arc", 10);
    cache.fill([(1, 4), (2, 4)]);
    assert_eq!(cache.write(1, 7), [Updated(1), Evicted(2)]);
    assert_eq!(cache.queues(), "t1 | t2 1 | b1 2 | b2");
    assert_eq!(cache.write(1, 2), [Updated(1)]);
    assert_eq!(cache.fill([(3, 8)]), [Stored(3)]);
    // L1 holds 8 + 4 > 10 now.
    assert_eq!(cache.queues(), "t1 3 | t2 1 | b1 | b2");
}

#[test]
fn light_ghosts_make_room_for_heavy_ones() {
    let mut cache = weighted("arc", 10);
    cache.fill([(100, 6), (100, 6)]);
    cache.fill((1..=10).map(|key| (key, 1)));
    assert_eq!(cache.queues(), "t1 7 8 9 10 | t2 100 | b1 1 2 3 4 5 6 | b2");
    cache.fill([(20, 4)]);
    assert_eq!(cache.queues(), "t1 20 | t2 100 | b1 5 6 7 8 9 10 | b2");
    // T1 and B1 may hold 10: 4 are for 21 and 4 for the ghost of 20.
    assert_eq!(cache.fill([(21, 4)]), [Evicted(20), Stored(21)]);
    assert_eq!(cache.queues(), "t1 21 | t2 100 | b1 9 10 20 | b2");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn as_a_plain_model_does(case in cases()) {
        for (spec, is_weighted) in [("arc", true), ("arc:weighted=0", false)] {
            let setup = Setup {
                spec, capacity: case.capacity, weighted: case.weighted, keys: case.keys
            };
            let plain = Plain { c: case.capacity, weighted: is_weighted, ..Plain::default() };
            same_decisions(&setup, setup.by_slot(), model(plain, &setup), &case.ops);
        }
    }
}
