//! `lirs`.

use std::collections::HashMap;

use haypile_policy::{Newcomer, Policy, Queue, Slot};
use proptest::prelude::*;

use crate::driver::Event::{Evicted, Hit, Refused, Stored, Updated};
use crate::driver::{Setup, model, objects, weighted};
use crate::invariants::same_decisions;
use crate::plain::{self, Weights, dump, percent, slot_of};
use crate::requests::cases;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Status {
    Lir,
    Hir,
    Ghost,
    Large,
}

/// S and Q as vectors; a key without a status is unknown.
#[derive(Debug, Default)]
struct Plain {
    capacity: u64,
    hir_capacity: u64,
    stack: u64,
    demote: bool,
    s: Vec<Slot>,
    q: Vec<Slot>,
    ghosts: Vec<Slot>,
    large: Vec<Slot>,
    status: HashMap<Slot, Status>,
    weights: Weights,
    leaving: Vec<Slot>,
}

impl Plain {
    fn new(capacity: u64, hir: u64, stack: u64, demote: bool) -> Self {
        let hir_capacity = percent(capacity, hir).max(1);
        Self { capacity, hir_capacity, stack, demote, ..Self::default() }
    }

    fn lir_capacity(&self) -> u64 {
        self.capacity.saturating_sub(self.hir_capacity)
    }

    fn is(&self, slot: Slot, status: Status) -> bool {
        self.status.get(&slot) == Some(&status)
    }

    fn lir_weight(&self) -> u64 {
        let lir = self.s.iter().copied().filter(|slot| self.is(*slot, Status::Lir));
        self.weights.sum(&lir.collect::<Vec<_>>())
    }

    fn forget(&mut self, slot: Slot) {
        plain::take(&mut self.s, slot);
        plain::take(&mut self.q, slot);
        plain::take(&mut self.ghosts, slot);
        plain::take(&mut self.large, slot);
        self.status.remove(&slot);
    }

    fn is_large(&self, weight: u64) -> bool {
        weight > self.hir_capacity || weight > self.lir_capacity()
    }

    fn enter_large(&mut self, slot: Slot) {
        self.forget(slot);
        self.status.insert(slot, Status::Large);
        self.large.push(slot);
    }

    fn place(&mut self, slot: Slot) {
        let fits = self.lir_weight() + self.weights.of(slot) <= self.lir_capacity();
        plain::to_head(&mut self.s, slot);
        if fits {
            self.status.insert(slot, Status::Lir);
            self.prune();
        } else {
            self.status.insert(slot, Status::Hir);
            self.q.push(slot);
        }
    }

    /// The bottom of S is LIR, or the top.
    fn prune(&mut self) {
        while self.s.len() > 1 && !self.is(self.s[0], Status::Lir) {
            let bottom = self.s.remove(0);
            if self.is(bottom, Status::Ghost) {
                self.forget(bottom);
            }
        }
    }

    fn evict_hir(&mut self) -> bool {
        let Some(oldest) = plain::pop(&mut self.q) else { return false };
        if self.s.contains(&oldest) {
            self.status.insert(oldest, Status::Ghost);
            self.ghosts.push(oldest);
        } else {
            self.status.remove(&oldest);
        }
        self.leaving.push(oldest);
        true
    }

    fn make_room_in_q(&mut self, incoming: u64) {
        if !self.demote {
            return;
        }
        while self.weights.sum(&self.q) + incoming > self.hir_capacity && !self.q.is_empty() {
            if self.weights.of(self.q[0]) > self.hir_capacity {
                self.enter_large(self.q[0]);
            } else {
                self.evict_hir();
            }
        }
    }

    fn demote(&mut self) -> bool {
        self.prune();
        if self.s.is_empty() || !self.is(self.s[0], Status::Lir) {
            return false;
        }
        let bottom = self.s.remove(0);
        self.status.remove(&bottom);
        let weight = self.weights.of(bottom);
        if weight <= self.hir_capacity {
            self.make_room_in_q(weight);
            self.status.insert(bottom, Status::Hir);
            self.q.push(bottom);
        } else {
            self.enter_large(bottom);
        }
        self.prune();
        true
    }

    fn make_room_among_lir(&mut self, incoming: u64) {
        while self.lir_weight() + incoming > self.lir_capacity() && self.demote() {}
    }

    fn bound_stack(&mut self) {
        while self.weights.sum(&self.s) > self.stack * self.capacity && !self.ghosts.is_empty() {
            self.forget(self.ghosts[0]);
        }
    }
}

impl Policy for Plain {
    const HAS_OVERFLOW: bool = true;

    fn reserve_slots(&mut self, _slots: usize) {}

    fn on_hit(&mut self, slot: Slot) {
        if self.is(slot, Status::Large) {
            plain::to_head(&mut self.large, slot);
            let weight = self.weights.of(slot);
            if !self.is_large(weight) {
                self.forget(slot);
                if self.lir_weight() + weight > self.lir_capacity() {
                    self.make_room_in_q(weight);
                }
                self.place(slot);
            }
        } else if self.is(slot, Status::Lir) {
            plain::to_head(&mut self.s, slot);
            self.prune();
        } else if self.s.contains(&slot) {
            plain::take(&mut self.q, slot);
            plain::to_head(&mut self.s, slot);
            self.status.insert(slot, Status::Lir);
            self.make_room_among_lir(0);
            self.prune();
        } else {
            plain::to_head(&mut self.q, slot);
            if self.demote && self.q[0] != slot {
                self.make_room_among_lir(self.weights.of(slot));
            }
            if self.is(slot, Status::Hir) {
                self.s.push(slot);
            }
        }
        self.bound_stack();
    }

    fn on_update(&mut self, slot: Slot, weight: u64) {
        self.weights.set(slot, weight);
        let limit = if self.s.contains(&slot) { self.lir_capacity() } else { self.hir_capacity };
        if self.is(slot, Status::Large) || weight <= limit {
            self.on_hit(slot);
        } else {
            self.enter_large(slot);
            self.prune();
            self.bound_stack();
        }
    }

    fn admit(&mut self, newcomer: Newcomer, missing: u64) -> bool {
        let slot = slot_of(newcomer.fingerprint);
        let fits_lir = newcomer.weight <= self.lir_capacity();
        if self.is(slot, Status::Ghost) && !fits_lir {
            self.forget(slot);
        }
        if self.is(slot, Status::Ghost) {
            self.weights.set(slot, newcomer.weight);
            plain::to_head(&mut self.s, slot);
            plain::to_head(&mut self.ghosts, slot);
            self.make_room_among_lir(newcomer.weight);
            return true;
        }
        if self.is_large(newcomer.weight) {
            return missing <= self.weights.sum(&self.large);
        }
        if self.lir_weight() + newcomer.weight > self.lir_capacity() {
            self.make_room_in_q(newcomer.weight);
        }
        true
    }

    fn evict(&mut self, newcomer: Option<Newcomer>) -> Slot {
        while self.leaving.is_empty() {
            if let Some(slot) = plain::pop(&mut self.large) {
                self.forget(slot);
                self.leaving.push(slot);
            } else {
                assert!(self.evict_hir() || self.demote());
            }
        }
        if newcomer.is_none() {
            self.bound_stack();
        }
        self.leaving.remove(0)
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        let returns = self.is(slot, Status::Ghost);
        plain::take(&mut self.ghosts, slot);
        self.weights.set(slot, newcomer.weight);
        if returns {
            plain::to_head(&mut self.s, slot);
            self.status.insert(slot, Status::Lir);
            self.prune();
        } else if self.is_large(newcomer.weight) {
            self.enter_large(slot);
        } else {
            self.place(slot);
        }
        self.bound_stack();
    }

    fn on_remove(&mut self, slot: Slot) {
        self.forget(slot);
        self.prune();
    }

    fn overflow(&mut self) -> Option<Slot> {
        self.leaving.pop()
    }

    fn queues(&self) -> Vec<Queue> {
        vec![
            dump("s", &self.s),
            dump("q", &self.q),
            dump("ghosts", &self.ghosts),
            dump("large", &self.large),
        ]
    }
}

#[test]
fn by_hand() {
    // LIR entries have 3 of 5, resident HIR entries 2.
    let mut cache = objects("lirs:hir=40", 5);
    cache.read([1, 2, 3, 4, 5]);
    assert_eq!(cache.queues(), "s 1 2 3 4 5 | q 4 5 | ghosts | large");
    // The oldest of Q leaves, and stays in S as a ghost.
    assert_eq!(cache.read([6]), [Evicted(4), Stored(6)]);
    assert_eq!(cache.queues(), "s 1 2 3 4 5 6 | q 5 6 | ghosts 4 | large");
    // A hit on a HIR entry in S makes it LIR; the LIR entry at the bottom pays.
    assert_eq!(cache.read([5]), [Hit(5)]);
    assert_eq!(cache.queues(), "s 2 3 4 6 5 | q 6 1 | ghosts 4 | large");
    // A hit on a HIR entry that is not in S brings it there, and to the end of Q.
    cache.read([1]);
    assert_eq!(cache.queues(), "s 2 3 4 6 5 1 | q 6 1 | ghosts 4 | large");
    // A hit on the bottom of S prunes what is not LIR: the second time a ghost and 6.
    cache.read([2]);
    assert_eq!(cache.queues(), "s 3 4 6 5 1 2 | q 6 1 | ghosts 4 | large");
    cache.read([3]);
    assert_eq!(cache.queues(), "s 5 1 2 3 | q 6 1 | ghosts | large");
    // 6 is not in S and leaves no ghost; 1 is and does.
    assert_eq!(cache.read([7]), [Evicted(6), Stored(7)]);
    assert_eq!(cache.queues(), "s 5 1 2 3 7 | q 1 7 | ghosts | large");
    assert_eq!(cache.read([8]), [Evicted(1), Stored(8)]);
    assert_eq!(cache.queues(), "s 5 1 2 3 7 8 | q 7 8 | ghosts 1 | large");
    // A ghost returns as LIR; 5 at the bottom is demoted and pushes 7 out of Q.
    assert_eq!(cache.read([1]), [Evicted(7), Stored(1)]);
    assert_eq!(cache.queues(), "s 2 3 7 8 1 | q 8 5 | ghosts 7 | large");
    // A removed entry leaves no ghost, wherever it was.
    cache.remove([2, 8, 5]);
    assert_eq!(cache.queues(), "s 3 7 1 | q | ghosts 7 | large");
    // LIR entries have room again.
    assert_eq!(cache.read([9]), [Stored(9)]);
    assert_eq!(cache.queues(), "s 3 7 1 9 | q | ghosts 7 | large");
    // Of 2, LIR entries and Q have 1 each: 3 is demoted, then 1, which pushes 3 out.
    assert_eq!(cache.resize(2), [Evicted(3)]);
    assert_eq!(cache.queues(), "s 9 | q 1 | ghosts | large");
}

#[test]
fn the_oldest_ghosts_are_forgotten() {
    let mut cache = objects("lirs:hir=40,stack=1", 5);
    cache.read([1, 2, 3, 4, 5]);
    // S would hold 6 of 5.
    assert_eq!(cache.read([6]), [Evicted(4), Stored(6)]);
    assert_eq!(cache.queues(), "s 1 2 3 5 6 | q 5 6 | ghosts | large");
    // Half a capacity more, and there is room for two.
    let mut cache = objects("lirs:hir=40,stack=1.4", 5);
    cache.read([1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(cache.queues(), "s 1 2 3 4 5 6 7 | q 6 7 | ghosts 4 5 | large");
    assert_eq!(cache.read([8]), [Evicted(6), Stored(8)]);
    assert_eq!(cache.queues(), "s 1 2 3 5 6 7 8 | q 7 8 | ghosts 5 6 | large");
}

#[test]
fn a_hit_outside_s_can_cost_a_lir_entry_its_place() {
    for (spec, queues) in [
        ("lirs:hir=40", "s 2 3 4 6 5 1 | q 6 1 | ghosts 4 | large"),
        // 2 is demoted and pushes 6 out of Q, which is in S.
        ("lirs:hir=40,demote=1", "s 3 4 6 5 1 | q 1 2 | ghosts 4 6 | large"),
    ] {
        let mut cache = objects(spec, 5);
        cache.read([1, 2, 3, 4, 5, 6, 5, 1]);
        assert_eq!(cache.queues(), queues);
    }
}

#[test]
fn a_hit_can_push_out_the_entry_itself() {
    // LIR entries have 6 of 10, resident HIR entries 4.
    let mut cache = weighted("lirs:hir=40,demote=1", 10);
    cache.fill([(1, 1), (2, 4), (3, 1), (4, 2), (5, 1), (5, 1)]);
    assert_eq!(cache.queues(), "s 2 3 4 5 | q 4 1 | ghosts | large");
    // The hit on 1 demotes 2, which leaves no room for anything else in Q.
    let mut events = cache.read([1]);
    events.sort();
    assert_eq!(events, [Evicted(1), Evicted(4), Hit(1)]);
    assert_eq!(cache.queues(), "s 3 4 5 | q 2 | ghosts 4 | large");
}

#[test]
fn a_demotion_prunes_what_is_below_the_only_lir_entry() {
    // LIR entries and Q have 4 of 8 each.
    let mut cache = weighted("lirs:hir=50", 8);
    cache.fill([(1, 4), (2, 2), (3, 2)]);
    assert_eq!(cache.queues(), "s 1 2 3 | q 2 3 | ghosts | large");
    // 3 becomes LIR, and 1 is demoted; 2 is below 3 then.
    assert_eq!(cache.read([3]), [Hit(3)]);
    assert_eq!(cache.queues(), "s 3 | q 2 1 | ghosts | large");
    // libCacheSim evicts 2, because Q has 4 at most.
    let mut cache = weighted("lirs:hir=50,demote=1", 8);
    cache.fill([(1, 4), (2, 2), (3, 2)]);
    let mut events = cache.read([3]);
    events.sort();
    assert_eq!(events, [Evicted(2), Hit(3)]);
    assert_eq!(cache.queues(), "s 3 | q 1 | ghosts | large");
}

#[test]
fn the_bottom_of_s_is_lir_after_all_lir_entries_were_removed() {
    let mut cache = objects("lirs:hir=10", 10);
    cache.read(1..=10);
    cache.remove(1..=9);
    assert_eq!(cache.queues(), "s 10 | q 10 | ghosts | large");
    // 10 was asked for before any of the LIR entries and cannot be in S.
    cache.read([1]);
    assert_eq!(cache.queues(), "s 1 | q 10 | ghosts | large");
    cache.read(2..=9);
    assert_eq!(cache.read([11, 11]), [Evicted(10), Stored(11), Hit(11)]);
    assert_eq!(cache.queues(), "s 2 3 4 5 6 7 8 9 11 | q 1 | ghosts | large");
    assert_eq!(cache.read([12]), [Evicted(1), Stored(12)]);
}

#[test]
fn weights() {
    let mut cache = weighted("lirs:hir=40", 10);
    // Heavier than Q, or than all that LIR entries have: stored while there is room, and as long as
    // nothing else needs it.
    assert_eq!(cache.fill([(6, 5), (7, 7)]), [Stored(6), Evicted(6), Stored(7)]);
    assert_eq!(cache.fill([(1, 3), (2, 3)]), [Stored(1), Evicted(7), Stored(2)]);
    cache.fill([(3, 2), (4, 2)]);
    assert_eq!(cache.fill([(7, 7)]), [Refused(7)]);
    assert_eq!(cache.queues(), "s 1 2 3 4 | q 3 4 | ghosts | large");
    // A lighter value is a hit: 3 becomes LIR with 1, and 1 is demoted. Q has more than its share, because
    // LIR entries have less.
    assert_eq!(cache.write(3, 1), [Updated(3)]);
    assert_eq!(cache.queues(), "s 2 4 3 | q 4 1 | ghosts | large");
    assert_eq!(cache.fill([(10, 2)]), [Evicted(4), Stored(10)]);
    assert_eq!(cache.queues(), "s 2 4 3 10 | q 1 | ghosts 4 | large");
    // A ghost comes back heavier than Q would take. All LIR entries are demoted for it.
    assert_eq!(cache.fill([(4, 5)]), [Evicted(1), Evicted(2), Stored(4)]);
    assert_eq!(cache.queues(), "s 4 | q 3 10 | ghosts | large");
    // 10 becomes LIR; 4 is demoted, and is too heavy for Q.
    assert_eq!(cache.read([10]), [Hit(10)]);
    assert_eq!(cache.queues(), "s 4 10 | q 3 10 | ghosts | large");
    assert_eq!(cache.read([10]), [Hit(10)]);
    assert_eq!(cache.queues(), "s 10 | q 3 | ghosts | large 4");
    assert_eq!(cache.read([4]), [Hit(4)]);
    assert_eq!(cache.fill([(8, 3)]), [Evicted(4), Stored(8)]);
    assert_eq!(cache.queues(), "s 10 8 | q 3 | ghosts | large");
    // 8 grows to more than LIR entries have, and then to more than there is room for.
    assert_eq!(cache.write(8, 7), [Updated(8)]);
    assert_eq!(cache.queues(), "s 10 | q 3 | ghosts | large 8");
    assert_eq!(cache.write(8, 8), [Updated(8), Evicted(8)]);
    // A lighter value of a large entry makes it a newcomer.
    cache.fill([(9, 5)]);
    assert_eq!(cache.queues(), "s 10 | q 3 | ghosts | large 9");
    assert_eq!(cache.write(9, 4), [Updated(9)]);
    assert_eq!(cache.queues(), "s 10 9 | q 3 | ghosts | large");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn as_a_plain_model_does(case in cases()) {
        for (spec, hir, stack, demote) in [
            ("lirs", 1, 2, false),
            ("lirs:hir=20", 20, 2, false),
            ("lirs:hir=50,stack=1", 50, 1, false),
            ("lirs:hir=30,stack=3,demote=1", 30, 3, true),
        ] {
            let setup = Setup {
                spec, capacity: case.capacity, weighted: case.weighted, keys: case.keys
            };
            let plain = Plain::new(case.capacity, hir, stack, demote);
            same_decisions(&setup, setup.by_slot(), model(plain, &setup), &case.ops);
        }
    }
}
