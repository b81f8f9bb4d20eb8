//! `sieve`.

use std::collections::HashSet;

use haypile_policy::{Newcomer, Policy, Queue, Slot};
use proptest::prelude::*;

use crate::driver::Event::{Evicted, Stored};
use crate::driver::{Setup, model, objects};
use crate::invariants::same_decisions;
use crate::plain::dump;
use crate::requests::cases;

/// The hand is an index: the number of entries between it and the tail.
#[derive(Debug, Default)]
struct Plain {
    queue: Vec<Slot>,
    visited: HashSet<Slot>,
    hand: Option<usize>,
}

impl Policy for Plain {
    fn reserve_slots(&mut self, _slots: usize) {}

    fn on_hit(&mut self, slot: Slot) {
        self.visited.insert(slot);
    }

    fn evict(&mut self, _newcomer: Option<Newcomer>) -> Slot {
        let mut hand = self.hand.unwrap_or(0);
        while self.visited.remove(&self.queue[hand]) {
            hand = (hand + 1) % self.queue.len();
        }
        let victim = self.queue.remove(hand);
        // The next entry has moved there, unless the victim was the head.
        self.hand = (hand < self.queue.len()).then_some(hand);
        victim
    }

    fn on_insert(&mut self, slot: Slot, _newcomer: Newcomer) {
        self.visited.remove(&slot);
        self.queue.push(slot);
    }

    fn on_remove(&mut self, slot: Slot) {
        let position = self.queue.iter().position(|entry| *entry == slot).unwrap();
        self.queue.remove(position);
        let hand = self.hand.map(|hand| hand - usize::from(position < hand));
        self.hand = hand.filter(|hand| *hand < self.queue.len());
    }

    fn queues(&self) -> Vec<Queue> {
        let hand = self.hand.map(|hand| self.queue[hand]);
        vec![dump("sieve", &self.queue), dump("hand", hand.as_slice())]
    }
}

#[test]
fn the_hand_moves_and_entries_stay() {
    let mut cache = objects("sieve", 4);
    cache.read([1, 2, 3, 4, 1, 3]);
    // Without a hand the search begins at the tail.
    assert_eq!(cache.queues(), "sieve 1 2 3 4 | hand");
    // 1 was visited and stays where it is; 2 leaves; the hand is at 3.
    assert_eq!(cache.read([5]), [Evicted(2), Stored(5)]);
    assert_eq!(cache.queues(), "sieve 1 3 4 5 | hand 3");
    // 3 was visited; 4 leaves. 1, whose bit was cleared, is safe behind the hand.
    assert_eq!(cache.read([6]), [Evicted(4), Stored(6)]);
    assert_eq!(cache.queues(), "sieve 1 3 5 6 | hand 5");
    // A visited head sends the hand back to the tail.
    cache.read([5, 6]);
    assert_eq!(cache.read([7]), [Evicted(1), Stored(7)]);
    assert_eq!(cache.queues(), "sieve 3 5 6 7 | hand 3");
    // A victim at the head leaves no hand; the next newcomer does not take its place.
    cache.read([3, 5, 6]);
    assert_eq!(cache.read([8]), [Evicted(7), Stored(8)]);
    assert_eq!(cache.queues(), "sieve 3 5 6 8 | hand");
}

#[test]
fn removing_the_hand_moves_it_on() {
    let mut cache = objects("sieve", 4);
    cache.read([1, 2, 3, 4, 1, 5]);
    assert_eq!(cache.queues(), "sieve 1 3 4 5 | hand 3");
    cache.remove([3]);
    assert_eq!(cache.queues(), "sieve 1 4 5 | hand 4");
    // Other entries can be removed without moving it.
    cache.remove([1]);
    assert_eq!(cache.queues(), "sieve 4 5 | hand 4");
    cache.remove([4]);
    assert_eq!(cache.queues(), "sieve 5 | hand 5");
    cache.remove([5]);
    assert_eq!(cache.queues(), "sieve | hand");
    // A new value counts as a visit; a returning key is not visited.
    cache.read([5, 6, 7, 8]);
    cache.write(5, 1);
    assert_eq!(cache.resize(2), [Evicted(6), Evicted(7)]);
    assert_eq!(cache.queues(), "sieve 5 8 | hand 8");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn as_a_plain_model_does(case in cases()) {
        let setup = Setup {
            spec: "sieve", capacity: case.capacity, weighted: case.weighted, keys: case.keys
        };
        same_decisions(&setup, setup.by_slot(), model(Plain::default(), &setup), &case.ops);
    }
}
