//! `slru`: RelStorage's three segments.

use std::collections::HashMap;

use haypile_policy::{Newcomer, Policy, Queue, Slot};
use proptest::prelude::*;

use crate::driver::Event::{Evicted, Hit, Stored, Updated};
use crate::driver::{Setup, model, objects, weighted};
use crate::invariants::same_decisions;
use crate::plain::{self, Weights, dump, percent};
use crate::requests::cases;

/// With `exceeds` the segments alone decide, otherwise the cache as a whole.
#[derive(Debug, Default)]
struct Plain<const EXCEEDS: bool> {
    shares: (u64, u64),
    capacity: u64,
    eden: Vec<Slot>,
    probation: Vec<Slot>,
    protected: Vec<Slot>,
    weights: Weights,
    uses: HashMap<Slot, u64>,
    operations: u64,
    halved_at: u64,
    was_full: bool,
    overflow: Vec<Slot>,
}

impl<const EXCEEDS: bool> Plain<EXCEEDS> {
    fn new(capacity: u64, eden: u64, protected: u64) -> Self {
        Self { shares: (eden, protected), capacity, ..Self::default() }
    }

    fn eden_capacity(&self) -> u64 {
        percent(self.capacity, self.shares.0)
    }

    fn protected_capacity(&self) -> u64 {
        percent(self.capacity, self.shares.1)
    }

    fn probation_capacity(&self) -> u64 {
        self.capacity.saturating_sub(self.eden_capacity() + self.protected_capacity())
    }

    fn use_once(&mut self, slot: Slot) {
        *self.uses.entry(slot).or_default() += 1;
        self.operations += 1;
    }

    /// Runs after every store of a value.
    fn halve_when_due(&mut self) {
        let entries = self.eden.len() + self.probation.len() + self.protected.len();
        if self.was_full && self.operations - self.halved_at >= 10 * entries as u64 {
            self.halved_at = self.operations;
            for slot in [&self.eden, &self.probation, &self.protected].into_iter().flatten() {
                *self.uses.get_mut(slot).unwrap() /= 2;
            }
        }
    }

    /// Returns the older of two entries that were used equally often.
    fn compete(&mut self) -> Slot {
        let (newer, older) = (self.eden.remove(0), self.probation.remove(0));
        let (winner, loser) =
            if self.uses[&newer] < self.uses[&older] { (older, newer) } else { (newer, older) };
        if winner == newer {
            self.probation.push(newer);
        } else {
            self.probation.insert(0, older);
        }
        loser
    }

    fn spill_eden(&mut self) {
        let filling = self.probation.is_empty();
        while self.weights.sum(&self.eden) > self.eden_capacity() && self.eden.len() > 1 {
            let weight = self.weights.of(self.eden[0]);
            let protected = self.weights.sum(&self.protected);
            let probation = self.weights.sum(&self.probation);
            if filling && protected + weight <= self.protected_capacity() {
                let oldest = self.eden.remove(0);
                self.protected.push(oldest);
            } else if filling || !EXCEEDS || probation + weight <= self.probation_capacity() {
                let oldest = self.eden.remove(0);
                self.probation.push(oldest);
                if filling {
                    break; // As in the source: protected is full, and this was enough for once.
                }
            } else if self.probation.is_empty() {
                let oldest = self.eden.remove(0);
                self.probation.push(oldest);
                break;
            } else {
                self.was_full = true;
                let loser = self.compete();
                self.overflow.push(loser);
            }
        }
    }
}

impl<const EXCEEDS: bool> Policy for Plain<EXCEEDS> {
    const HAS_OVERFLOW: bool = EXCEEDS;
    const EXCEEDS_BOUND: bool = EXCEEDS;

    fn reserve_slots(&mut self, _slots: usize) {}

    fn on_hit(&mut self, slot: Slot) {
        self.use_once(slot);
        if plain::take(&mut self.eden, slot) {
            self.eden.push(slot);
            return;
        }
        plain::take(&mut self.probation, slot);
        plain::to_head(&mut self.protected, slot);
        while self.weights.sum(&self.protected) > self.protected_capacity()
            && self.protected.len() > 1
        {
            let oldest = self.protected.remove(0);
            self.probation.push(oldest);
        }
    }

    fn on_update(&mut self, slot: Slot, weight: u64) {
        let changes = self.weights.of(slot) != weight;
        self.weights.set(slot, weight);
        self.on_hit(slot);
        if changes && self.eden.contains(&slot) {
            self.spill_eden();
        }
        self.halve_when_due();
    }

    fn evict(&mut self, newcomer: Option<Newcomer>) -> Slot {
        self.was_full = true;
        let incoming = newcomer.map_or(0, |newcomer| newcomer.weight);
        let overflows = self.weights.sum(&self.eden) + incoming > self.eden_capacity();
        if overflows && !self.eden.is_empty() {
            return if self.probation.is_empty() { self.eden.remove(0) } else { self.compete() };
        }
        let segments = [&mut self.probation, &mut self.protected, &mut self.eden];
        segments.into_iter().find_map(plain::pop).unwrap()
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        self.weights.set(slot, newcomer.weight);
        self.uses.insert(slot, 0);
        self.use_once(slot);
        self.eden.push(slot);
        self.spill_eden();
        self.halve_when_due();
    }

    fn on_remove(&mut self, slot: Slot) {
        for segment in [&mut self.eden, &mut self.probation, &mut self.protected] {
            plain::take(segment, slot);
        }
    }

    fn overflow(&mut self) -> Option<Slot> {
        self.overflow.pop()
    }

    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
    }

    fn queues(&self) -> Vec<Queue> {
        vec![
            dump("eden", &self.eden),
            dump("probation", &self.probation),
            dump("protected", &self.protected),
        ]
    }
}

#[test]
fn fills_protected_first_and_then_competes() {
    // Eden has 1, probation 1, protected 8.
    let mut cache = objects("slru", 10);
    cache.read(1..=9);
    assert_eq!(cache.queues(), "eden 9 | probation | protected 1 2 3 4 5 6 7 8");
    assert_eq!(cache.read([10]), [Stored(10)]);
    assert_eq!(cache.queues(), "eden 10 | probation 9 | protected 1 2 3 4 5 6 7 8");
    // 10 against 9, both used once: the older leaves.
    assert_eq!(cache.read([11]), [Evicted(9), Stored(11)]);
    assert_eq!(cache.queues(), "eden 11 | probation 10 | protected 1 2 3 4 5 6 7 8");
    // A hit on probation leads to protected, whose oldest falls back.
    assert_eq!(cache.read([10]), [Hit(10)]);
    assert_eq!(cache.queues(), "eden 11 | probation 1 | protected 2 3 4 5 6 7 8 10");
    assert_eq!(cache.read([12]), [Evicted(1), Stored(12)]);
    // Hits in protected make younger; 10, used twice, comes to be the oldest and falls.
    cache.read([2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(cache.queues(), "eden 12 | probation 11 | protected 10 2 3 4 5 6 7 8");
    cache.read([11]);
    assert_eq!(cache.queues(), "eden 12 | probation 10 | protected 2 3 4 5 6 7 8 11");
    // 12, used once, loses against 10, used twice.
    assert_eq!(cache.read([13]), [Evicted(12), Stored(13)]);
    assert_eq!(cache.queues(), "eden 13 | probation 10 | protected 2 3 4 5 6 7 8 11");
    // A hit in eden counts: 13 has been used twice as well, and is the newer.
    assert_eq!(cache.read([13, 14]), [Hit(13), Evicted(10), Stored(14)]);
    assert_eq!(cache.queues(), "eden 14 | probation 13 | protected 2 3 4 5 6 7 8 11");
    cache.remove([14, 13, 2]);
    assert_eq!(cache.queues(), "eden | probation | protected 3 4 5 6 7 8 11");
    // Probation is empty: protected is filled again.
    cache.read([15, 16, 17]);
    assert_eq!(cache.queues(), "eden 17 | probation 16 | protected 3 4 5 6 7 8 11 15");
}

#[test]
fn frequencies_are_halved_every_ten_operations_per_entry() {
    for (hits, loser, probation) in [(0, 11, 3), (76, 3, 11)] {
        let mut cache = objects("slru", 10);
        cache.read((1..=11).chain([10, 1, 3, 3, 4, 5, 6, 7, 8, 10, 1, 2, 11]));
        // 24 operations. 11 was used twice, 3 three times.
        assert_eq!(cache.queues(), "eden 11 | probation 3 | protected 4 5 6 7 8 10 1 2");
        cache.read(std::iter::repeat_n(5, hits));
        // From 100 on halving is due, and a stored value is when it is done: 11 and 3 have 1.
        cache.write(5, 1);
        assert_eq!(cache.read([12]), [Evicted(loser), Stored(12)]);
        let rest = format!("eden 12 | probation {probation} | protected 4 6 7 8 10 1 2 5");
        assert_eq!(cache.queues(), rest);
    }
}

#[test]
fn weights_and_capacities() {
    // Eden has 10, probation 10, protected 80.
    let mut cache = weighted("slru", 100);
    cache.fill([(1, 4), (2, 4)]);
    // 1 becomes the youngest and overflows eden.
    assert_eq!(cache.write(1, 9), [Updated(1)]);
    assert_eq!(cache.queues(), "eden 1 | probation | protected 2");
    // An entry that was just used stays in protected, whatever its weight.
    assert_eq!(cache.write(2, 90), [Updated(2)]);
    assert_eq!(cache.queues(), "eden 1 | probation | protected 2");
    // 99 of 100 are used, and probation has nobody to compete with.
    assert_eq!(cache.fill([(3, 5)]), [Evicted(1), Stored(3)]);
    assert_eq!(cache.fill([(4, 5), (5, 1)]), [Stored(4), Evicted(3), Stored(5)]);
    assert_eq!(cache.queues(), "eden 4 5 | probation | protected 2");
    // Eden has 5 of 50 and holds 6; after 4 has left it has room, and protected's oldest leaves.
    assert_eq!(cache.resize(50), [Evicted(4), Evicted(2)]);
    assert_eq!(cache.queues(), "eden 5 | probation | protected");
    // A lighter value in protected; probation's oldest leaves where eden has room.
    cache.resize(100);
    cache.fill([(6, 10), (7, 40), (8, 40), (9, 2)]);
    assert_eq!(cache.queues(), "eden 9 | probation 8 | protected 5 6 7");
    assert_eq!(cache.write(7, 48), [Updated(7), Evicted(8)]);
    assert_eq!(cache.queues(), "eden 9 | probation | protected 5 6 7");
}

#[test]
fn overflow_lets_probation_exceed_its_share() {
    let mut cache = weighted("slru:overflow=1", 100);
    cache.fill((1..=8).map(|key| (key, 10)));
    cache.fill((9..=20).map(|key| (key, 1)));
    let eden = "eden 11 12 13 14 15 16 17 18 19 20";
    assert_eq!(cache.queues(), format!("{eden} | probation 9 10 | protected 1 2 3 4 5 6 7 8"));
    // 9 weighs 1 and pushes 1 out of protected, which weighs 10: probation holds 11 of its 10.
    assert_eq!(cache.read([9]), [Hit(9)]);
    assert_eq!(cache.queues(), format!("{eden} | probation 10 1 | protected 2 3 4 5 6 7 8 9"));
    // Eden overflows into it: the newer wins, and one leaves though 92 of 100 were used.
    assert_eq!(cache.fill([(21, 1)]), [Stored(21), Evicted(10)]);
    let eden = "eden 12 13 14 15 16 17 18 19 20 21";
    assert_eq!(cache.queues(), format!("{eden} | probation 1 11 | protected 2 3 4 5 6 7 8 9"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn as_a_plain_model_does(case in cases()) {
        for (spec, eden, protected) in [
            ("slru", 10, 80),
            ("slru:eden=30,protected=40", 30, 40),
            ("slru:eden=0,protected=0", 0, 0),
            ("slru:eden=60,protected=90", 60, 90),
        ] {
            let setup = Setup {
                spec, capacity: case.capacity, weighted: case.weighted, keys: case.keys
            };
            let plain = Plain::<false>::new(case.capacity, eden, protected);
            same_decisions(&setup, setup.by_slot(), model(plain, &setup), &case.ops);
        }
    }

    #[test]
    fn as_a_plain_model_that_exceeds_does(case in cases()) {
        for (spec, eden, protected) in [
            ("slru:overflow=1", 10, 80),
            ("slru:eden=30,protected=40,overflow=1", 30, 40),
        ] {
            let setup = Setup {
                spec, capacity: case.capacity, weighted: case.weighted, keys: case.keys
            };
            let plain = Plain::<true>::new(case.capacity, eden, protected);
            same_decisions(&setup, setup.by_slot(), model(plain, &setup), &case.ops);
        }
    }
}
