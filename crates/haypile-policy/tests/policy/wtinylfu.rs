//! `wtinylfu`.

use std::collections::HashMap;

use haypile_policy::{Newcomer, Policy, Queue, Slot};
use proptest::prelude::*;

use crate::driver::Event::{Evicted, Hit, Refused, Stored, Updated};
use crate::driver::{Setup, model, objects, weighted};
use crate::invariants::same_decisions;
use crate::plain::{self, Weights, dump, percent};
use crate::requests::ops;

/// Exact counts, up to 15 and halved when the sketch halves its own.
#[derive(Debug, Default)]
struct Counts {
    of: HashMap<u64, u64>,
    counted: u64,
    most_entries: u64,
}

impl Counts {
    fn count(&mut self, fingerprint: u64) {
        let count = self.of.entry(fingerprint).or_default();
        if *count == 15 {
            return;
        }
        *count += 1;
        self.counted += 1;
        if self.counted >= 10 * self.most_entries.max(1) {
            let odd = self.of.values().filter(|count| **count % 2 == 1).count() as u64;
            self.of.values_mut().for_each(|count| *count /= 2);
            self.counted = (self.counted - odd) / 2;
        }
    }

    fn get(&self, fingerprint: u64) -> u64 {
        self.of.get(&fingerprint).copied().unwrap_or(0)
    }
}

#[derive(Debug, Default)]
struct Plain {
    window_capacity: u64,
    protected_capacity: u64,
    window: Vec<Slot>,
    probation: Vec<Slot>,
    protected: Vec<Slot>,
    weights: Weights,
    counts: Counts,
    /// Entries that left the window for the newcomer and are not judged yet.
    candidates: Vec<Slot>,
}

impl Plain {
    fn new(capacity: u64, window: u64, protected: u64) -> Self {
        let main = percent(capacity, 100 - window);
        Self {
            window_capacity: capacity - main,
            protected_capacity: percent(main, protected),
            ..Self::default()
        }
    }

    fn frequency(&self, slot: Slot) -> u64 {
        self.counts.get(u64::from(slot))
    }

    fn drain(&mut self, incoming: u64) -> Vec<Slot> {
        let mut drained = Vec::new();
        while self.weights.sum(&self.window) + incoming > self.window_capacity
            && let Some(slot) = plain::pop(&mut self.window)
        {
            drained.push(slot);
        }
        self.probation.extend(&drained);
        drained
    }
}

impl Policy for Plain {
    fn reserve_slots(&mut self, _slots: usize) {}

    fn on_hit(&mut self, slot: Slot) {
        self.counts.count(u64::from(slot));
        if plain::take(&mut self.window, slot) {
            self.window.push(slot);
        } else if self.probation.contains(&slot) && self.weights.of(slot) > self.protected_capacity
        {
            plain::to_head(&mut self.probation, slot);
        } else {
            plain::take(&mut self.probation, slot);
            plain::to_head(&mut self.protected, slot);
            while self.weights.sum(&self.protected) > self.protected_capacity {
                let oldest = self.protected.remove(0);
                self.probation.push(oldest);
            }
        }
    }

    fn on_update(&mut self, slot: Slot, weight: u64) {
        self.weights.set(slot, weight);
        self.candidates.clear();
        self.on_hit(slot);
    }

    fn admit(&mut self, newcomer: Newcomer, missing: u64) -> bool {
        self.counts.count(newcomer.fingerprint);
        self.candidates.clear();
        if newcomer.weight <= self.window_capacity {
            return true;
        }
        let count = self.counts.get(newcomer.fingerprint);
        let mut left = missing;
        for slot in [&self.probation, &self.protected, &self.window].into_iter().flatten() {
            if left == 0 {
                break;
            }
            if self.frequency(*slot) >= count {
                return false;
            }
            left = left.saturating_sub(self.weights.of(*slot));
        }
        true
    }

    fn evict(&mut self, newcomer: Option<Newcomer>) -> Slot {
        let incoming = newcomer.map_or(0, |newcomer| newcomer.weight);
        if incoming <= self.window_capacity {
            let drained = self.drain(incoming);
            self.candidates.extend(drained);
        }
        if let (Some(candidate), Some(victim)) = (self.candidates.first(), self.probation.first()) {
            let (candidate, victim) = (*candidate, *victim);
            self.candidates.remove(0);
            let wins = candidate != victim && self.frequency(candidate) > self.frequency(victim);
            let loser = if wins { victim } else { candidate };
            plain::take(&mut self.probation, loser);
            return loser;
        }
        let queues = [&mut self.probation, &mut self.protected, &mut self.window];
        let queue = queues.into_iter().find(|queue| !queue.is_empty()).unwrap();
        queue.remove(0)
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        self.weights.set(slot, newcomer.weight);
        self.window.push(slot);
        self.drain(0);
        let entries = self.window.len() + self.probation.len() + self.protected.len();
        self.counts.most_entries = self.counts.most_entries.max(entries as u64);
    }

    fn on_remove(&mut self, slot: Slot) {
        for queue in [&mut self.window, &mut self.probation, &mut self.protected] {
            plain::take(queue, slot);
        }
    }

    fn queues(&self) -> Vec<Queue> {
        vec![
            dump("window", &self.window),
            dump("probation", &self.probation),
            dump("protected", &self.protected),
        ]
    }
}

#[test]
fn what_leaves_the_window_competes() {
    // The window has 2 of 10, protected 6 of the main space's 8.
    let mut cache = objects("wtinylfu:window=20", 10);
    cache.read(1..=10);
    assert_eq!(cache.queues(), "window 9 10 | probation 1 2 3 4 5 6 7 8 | protected");
    // 9 leaves the window; it was asked for as often as 1, which is not enough.
    assert_eq!(cache.read([11]), [Evicted(9), Stored(11)]);
    assert_eq!(cache.queues(), "window 10 11 | probation 1 2 3 4 5 6 7 8 | protected");
    // The window is an LRU; a hit on probation leads to protected.
    assert_eq!(cache.read([10, 1]), [Hit(10), Hit(1)]);
    assert_eq!(cache.queues(), "window 11 10 | probation 2 3 4 5 6 7 8 | protected 1");
    assert_eq!(cache.read([12]), [Evicted(11), Stored(12)]);
    // 10 was asked for twice, 2 once.
    assert_eq!(cache.read([13]), [Evicted(2), Stored(13)]);
    assert_eq!(cache.queues(), "window 12 13 | probation 3 4 5 6 7 8 10 | protected 1");
    // Protected takes six; its oldest falls back.
    cache.read([3, 4, 5, 6, 7, 8]);
    assert_eq!(cache.queues(), "window 12 13 | probation 10 1 | protected 3 4 5 6 7 8");
    cache.read([4]);
    assert_eq!(cache.queues(), "window 12 13 | probation 10 1 | protected 3 5 6 7 8 4");
    // Only the candidate itself is on probation.
    cache.remove([10, 1]);
    cache.read([14, 15]);
    assert_eq!(cache.queues(), "window 14 15 | probation 12 13 | protected 3 5 6 7 8 4");
    cache.remove([12, 13, 5]);
    assert_eq!(cache.queues(), "window 14 15 | probation | protected 3 6 7 8 4");
    // Of 5 the window has 1: 14 leaves it, and there is nobody to compete with.
    assert_eq!(cache.resize(5), [Evicted(14), Evicted(3)]);
    assert_eq!(cache.queues(), "window 15 | probation | protected 6 7 8 4");
}

#[test]
fn frequencies_outlive_entries_and_are_halved() {
    // The window has 1 of 4. 5 is refused a place until it was asked for more often than 1.
    let mut cache = objects("wtinylfu:window=25", 4);
    cache.read([1, 2, 3, 4]);
    assert_eq!(cache.queues(), "window 4 | probation 1 2 3 | protected");
    assert_eq!(cache.read([5, 6]), [Evicted(4), Stored(5), Evicted(5), Stored(6)]);
    // 5 again, a second time; it competes when 7 comes.
    assert_eq!(cache.read([5, 7]), [Evicted(6), Stored(5), Evicted(1), Stored(7)]);
    assert_eq!(cache.queues(), "window 7 | probation 2 3 5 | protected");
    // The counts are 8 so far. 7 is requested until 10, 2 is not; at 40 all are halved: 2 has 0.
    cache.read(std::iter::repeat_n(7, 31));
    assert_eq!(cache.queues(), "window 7 | probation 2 3 5 | protected");
    assert_eq!(cache.read([9]), [Evicted(2), Stored(9)]);
}

#[test]
fn a_newcomer_too_heavy_for_the_window_competes_at_once() {
    // The window has 10, the main space 90, of which protected has 72.
    let mut cache = weighted("wtinylfu:window=10", 100);
    cache.fill([(1, 50), (2, 40), (3, 10)]);
    assert_eq!(cache.queues(), "window 3 | probation 1 2 | protected");
    // It was asked for as often as 1, which would have to leave for it.
    assert_eq!(cache.fill([(4, 20)]), [Refused(4)]);
    assert_eq!(cache.queues(), "window 3 | probation 1 2 | protected");
    // Asked for twice, it wins, and goes through the window to probation.
    assert_eq!(cache.fill([(4, 20)]), [Evicted(1), Stored(4)]);
    assert_eq!(cache.queues(), "window | probation 2 3 4 | protected");
    cache.remove([3]);
    // For a heavier one both would have to leave: 2, which it beats, and 4, which it does not.
    assert_eq!(cache.fill([(5, 90), (5, 90)]), [Refused(5), Refused(5)]);
    assert_eq!(cache.queues(), "window | probation 2 4 | protected");
    // A new value is a hit, with the new weight.
    assert_eq!(cache.write(4, 60), [Updated(4)]);
    assert_eq!(cache.queues(), "window | probation 2 | protected 4");
    // Protected does not take what is heavier than itself. 2 is the oldest on probation.
    assert_eq!(cache.write(2, 73), [Updated(2), Evicted(2)]);
    assert_eq!(cache.queues(), "window | probation | protected 4");
    // An entry that grows in protected may push everything out of it, itself included.
    cache.fill([(5, 5)]);
    assert_eq!(cache.write(4, 73), [Updated(4)]);
    assert_eq!(cache.queues(), "window 5 | probation 4 | protected");
    assert_eq!(cache.write(4, 72), [Updated(4)]);
    assert_eq!(cache.queues(), "window 5 | probation | protected 4");
}

#[test]
fn an_update_judges_no_candidate_of_an_earlier_one() {
    let mut cache = weighted("wtinylfu:window=10", 100);
    cache.fill([(1, 40), (2, 40), (2, 40), (2, 40), (2, 40), (2, 40), (2, 40), (1, 40)]);
    cache.fill([(3, 3), (4, 3), (5, 3)]);
    assert_eq!(cache.queues(), "window 3 4 5 | probation 2 | protected 1");
    // 5 grows, and 106 of 100 are used. The window cannot keep any of them; 3 and 4 lose against
    // 2, and after that 5 need not be judged.
    assert_eq!(cache.write(5, 20), [Updated(5), Evicted(3), Evicted(4)]);
    assert_eq!(cache.read([5]), [Hit(5)]);
    assert_eq!(cache.queues(), "window | probation 2 | protected 1 5");
    // 1 grows. The window gave no candidate: the oldest on probation leaves.
    assert_eq!(cache.write(1, 41), [Updated(1), Evicted(2)]);
    assert_eq!(cache.queues(), "window | probation | protected 5 1");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Keys so few that the sketch counts exactly, and entries so few that it does not grow.
    #[test]
    fn as_a_plain_model_with_exact_counts_does(
        capacity in 1..9_u64,
        scale in 1..7_u64,
        is_weighted: bool,
        ops in ops(6, 4, 200),
    ) {
        for (spec, window, protected) in [
            ("wtinylfu", 1, 80),
            ("wtinylfu:window=25,protected=50", 25, 50),
            ("wtinylfu:window=0", 0, 80),
            ("wtinylfu:window=100", 100, 80),
        ] {
            // Weights of `scale` and more: never more than eight entries.
            let unit = if is_weighted { scale } else { 1 };
            let weigh = |op: crate::driver::Op| scale_op(op, unit, is_weighted);
            let ops: Vec<_> = ops.iter().copied().map(weigh).collect();
            let capacity = capacity * unit;
            let setup = Setup { spec, capacity, weighted: is_weighted, keys: 6 };
            let plain = Plain::new(capacity, window, protected);
            same_decisions(&setup, setup.by_slot(), model(plain, &setup), &ops);
        }
    }
}

fn scale_op(op: crate::driver::Op, unit: u64, is_weighted: bool) -> crate::driver::Op {
    use crate::driver::Op::{Read, Write};
    let weigh = |weight| if is_weighted { unit + weight - 1 } else { 1 };
    match op {
        Read(key, weight) => Read(key, weigh(weight)),
        Write(key, weight) => Write(key, weigh(weight)),
        other => other,
    }
}
