//! `fifo` and `lru`: one queue.

use haypile_policy::{Newcomer, Policy, Queue, Slot};
use proptest::prelude::*;

use crate::driver::Event::{Evicted, Hit, Stored, Updated};
use crate::driver::{Setup, model, objects, weighted};
use crate::invariants::same_decisions;
use crate::plain::{self, dump};
use crate::requests::cases;

#[derive(Debug)]
struct Plain {
    name: &'static str,
    moves: bool,
    queue: Vec<Slot>,
}

impl Policy for Plain {
    fn reserve_slots(&mut self, _slots: usize) {}

    fn on_hit(&mut self, slot: Slot) {
        if self.moves {
            plain::to_head(&mut self.queue, slot);
        }
    }

    fn evict(&mut self, _newcomer: Option<Newcomer>) -> Slot {
        self.queue.remove(0)
    }

    fn on_insert(&mut self, slot: Slot, _newcomer: Newcomer) {
        self.queue.push(slot);
    }

    fn on_remove(&mut self, slot: Slot) {
        plain::take(&mut self.queue, slot);
    }

    fn queues(&self) -> Vec<Queue> {
        vec![dump(self.name, &self.queue)]
    }
}

#[test]
fn fifo_by_hand() {
    let mut cache = objects("fifo", 3);
    assert_eq!(cache.read([1, 2, 3]), [Stored(1), Stored(2), Stored(3)]);
    assert_eq!(cache.queues(), "fifo 1 2 3");
    // Neither a hit nor a new value makes an entry younger.
    assert_eq!(cache.read([1]), [Hit(1)]);
    assert_eq!(cache.write(1, 1), [Updated(1)]);
    assert_eq!(cache.queues(), "fifo 1 2 3");
    assert_eq!(cache.read([4]), [Evicted(1), Stored(4)]);
    assert_eq!(cache.queues(), "fifo 2 3 4");
    cache.remove([3]);
    assert_eq!(cache.queues(), "fifo 2 4");
    // A key that returns is the youngest.
    assert_eq!(cache.read([1, 5]), [Stored(1), Evicted(2), Stored(5)]);
    assert_eq!(cache.queues(), "fifo 4 1 5");
    assert_eq!(cache.resize(1), [Evicted(4), Evicted(1)]);
    assert_eq!(cache.queues(), "fifo 5");
}

#[test]
fn lru_by_hand() {
    let mut cache = weighted("lru", 10);
    cache.fill([(1, 3), (2, 3), (3, 3)]);
    assert_eq!(cache.queues(), "lru 1 2 3");
    assert_eq!(cache.read([1]), [Hit(1)]);
    assert_eq!(cache.queues(), "lru 2 3 1");
    // 9 of 10 are used: 1 more fits, 2 more do not.
    assert_eq!(cache.fill([(4, 1)]), [Stored(4)]);
    assert_eq!(cache.fill([(5, 2)]), [Evicted(2), Stored(5)]);
    assert_eq!(cache.queues(), "lru 3 1 4 5");
    // A heavier value: the entry becomes the youngest first, and room is made then.
    assert_eq!(cache.write(3, 5), [Updated(3), Evicted(1)]);
    assert_eq!(cache.queues(), "lru 4 5 3");
    // A lighter one makes room for others: 1 + 2 + 1 are used.
    assert_eq!(cache.write(3, 1), [Updated(3)]);
    assert_eq!(cache.fill([(6, 6)]), [Stored(6)]);
    assert_eq!(cache.queues(), "lru 4 5 3 6");
    // The entry that grows can be the only one left.
    assert_eq!(cache.write(4, 10), [Updated(4), Evicted(5), Evicted(3), Evicted(6)]);
    assert_eq!(cache.queues(), "lru 4");
    // Heavier than the cache: the old value must no longer be served.
    assert_eq!(
        cache.write(4, 11),
        [crate::driver::Event::Removed(4), crate::driver::Event::Refused(4)]
    );
    assert_eq!(cache.queues(), "lru");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn as_plain_models_do(case in cases()) {
        for (spec, moves) in [("fifo", false), ("lru", true)] {
            let setup = Setup {
                spec, capacity: case.capacity, weighted: case.weighted, keys: case.keys
            };
            let plain = Plain { name: spec, moves, queue: Vec::new() };
            same_decisions(&setup, setup.by_slot(), model(plain, &setup), &case.ops);
        }
    }
}
