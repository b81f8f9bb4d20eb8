//! S3-FIFO: a small queue that filters, a main queue, and ghosts of what the filter dropped.

use super::ghost::{Fingerprints, GhostList, Memory};
use super::mark::Marks;
use super::queues::Queues;
use super::ranking::best_first;
use super::weight::{Weights, share};
use super::{Newcomer, Param, Policy, PolicyKind, PolicySpec, Queue, Ranked, Slot};

/// The description of the policy `s3fifo`: its name, paper and parameters.
pub const KIND: PolicyKind = PolicyKind {
    name: "s3fifo",
    summary: "three FIFO queues; the best mean byte hit ratio, and the default",
    paper: "Yang et al., FIFO Queues are All You Need for Cache Eviction, SOSP 2023",
    params: &[
        Param {
            name: "small",
            default: 10.0,
            min: 0.1,
            max: 90.0,
            whole: false,
            help: "share of the capacity that the small queue has, in per cent",
        },
        Param {
            name: "threshold",
            default: 1.0,
            min: 1.0,
            max: 3.0,
            whole: true,
            help: "hits in the small queue that earn a place in the main queue",
        },
        Param {
            name: "ghost",
            default: 90.0,
            min: 0.0,
            max: 1000.0,
            whole: false,
            help: "weight of the entries remembered after they left the small queue, in per cent \
                   of the capacity",
        },
    ],
};

const SMALL: usize = 0;
const MAIN: usize = 1;
const MAX_HITS: u8 = 3;

/// The eviction policy S3-FIFO, with a small, a main and a ghost queue.
///
/// With `threshold=2` the decisions are those of libCacheSim's C code of October 2024, from 20
/// objects up. Departures: the default threshold is 1, as in the paper's text (libCacheSim 2),
/// because on bytes it holds more; an entry heavier than the small queue is stored (libCacheSim
/// refuses it, which also makes a cache of less than 20 objects refuse everything).
#[derive(Debug)]
pub struct S3Fifo<W: Weights, M: Memory> {
    queues: Queues<W, 2>,
    hits: Marks,
    fingerprints: M::Fingerprints,
    ghosts: M::List<W>,
    small_share: f64,
    ghost_share: f64,
    main_capacity: u64,
    ghost_capacity: u64,
    threshold: u8,
    /// Whether the newcomer that was admitted last had a ghost.
    was_ghost: bool,
}

impl<W: Weights, M: Memory> S3Fifo<W, M> {
    /// Creates the S3-FIFO policy for an empty cache of size `capacity`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the parameter's range is checked where it is read"
    )]
    pub fn new(capacity: u64, spec: &PolicySpec) -> Self {
        let mut policy = Self {
            queues: Queues::new(),
            hits: Marks::default(),
            fingerprints: M::Fingerprints::default(),
            ghosts: M::List::default(),
            small_share: spec.value("small"),
            ghost_share: spec.value("ghost"),
            main_capacity: 0,
            ghost_capacity: 0,
            threshold: spec.value("threshold") as u8,
            was_ghost: false,
        };
        policy.set_capacity(capacity);
        policy
    }

    /// Empties the small queue into the main queue up to the first entry that has not earned it,
    /// and drops that one.
    fn filter(&mut self) -> Option<Slot> {
        while let Some(slot) = self.queues.tail(SMALL) {
            if self.hits.get(slot) < self.threshold {
                self.remember(slot);
                self.queues.remove(slot);
                return Some(slot);
            }
            self.hits.set(slot, 0);
            self.queues.move_to(MAIN, slot);
        }
        None
    }

    fn remember(&mut self, slot: Slot) {
        let weight = self.queues.weight(slot);
        if weight > self.ghost_capacity {
            return;
        }
        while self.ghosts.weight() + weight > self.ghost_capacity {
            self.ghosts.pop();
        }
        self.ghosts.push(self.fingerprints.get(slot), weight);
    }
}

impl<W: Weights, M: Memory> Policy for S3Fifo<W, M> {
    const SHARED_HITS: bool = true;
    const RELOCATES: bool = M::REUSES_SLOTS;

    fn reserve_slots(&mut self, slots: usize) {
        self.queues.reserve(slots);
        self.hits.reserve(slots);
        self.fingerprints.reserve(slots);
        self.ghosts.reserve(slots);
    }

    #[inline]
    fn on_hit(&mut self, slot: Slot) {
        self.hits.raise(slot, MAX_HITS);
    }

    #[inline]
    fn on_hit_shared(&self, slot: Slot) {
        self.hits.raise(slot, MAX_HITS);
    }

    fn on_update(&mut self, slot: Slot, weight: u64) {
        self.queues.reweigh(slot, weight);
        self.on_hit(slot);
    }

    fn admit(&mut self, newcomer: Newcomer, _missing: u64) -> bool {
        self.was_ghost = self.ghosts.remove(newcomer.fingerprint).is_some();
        true
    }

    fn evict(&mut self, _newcomer: Option<Newcomer>) -> Slot {
        if self.queues.sum(MAIN) <= self.main_capacity
            && let Some(slot) = self.filter()
        {
            return slot;
        }
        loop {
            let slot = self.queues.tail(MAIN).expect("an entry to evict");
            let hits = self.hits.get(slot);
            if hits == 0 {
                self.queues.remove(slot);
                return slot;
            }
            self.hits.set(slot, hits - 1);
            self.queues.move_to(MAIN, slot);
        }
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        self.hits.set(slot, 0);
        self.fingerprints.set(slot, newcomer.fingerprint);
        let queue = if self.was_ghost { MAIN } else { SMALL };
        self.queues.insert(queue, slot, newcomer.weight);
    }

    fn on_remove(&mut self, slot: Slot) {
        self.queues.remove(slot);
    }

    fn next_victim(&self) -> Option<Slot> {
        self.queues.tail(SMALL).or_else(|| self.queues.tail(MAIN))
    }

    #[inline]
    fn prefetch(&self, fingerprint: u64) {
        self.ghosts.prefetch_to_write(fingerprint);
    }

    #[inline]
    fn prefetch_victim(&self, slot: Slot) {
        self.queues.prefetch_to_write(slot);
        self.hits.prefetch(slot);
        self.fingerprints.prefetch(slot);
    }

    #[inline]
    fn fingerprint(&self, slot: Slot) -> Option<u64> {
        Some(self.fingerprints.get(slot))
    }

    #[inline]
    fn prefetch_slot(&self, slot: Slot) {
        self.hits.prefetch(slot);
    }

    fn set_capacity(&mut self, capacity: u64) {
        self.main_capacity = capacity - share(capacity, self.small_share);
        self.ghost_capacity = share(capacity, self.ghost_share);
        while self.ghosts.weight() > self.ghost_capacity {
            self.ghosts.pop();
        }
    }

    fn relocate(&mut self, from: Slot, to: Slot) {
        self.queues.relocate(from, to);
        self.hits.relocate(from, to);
        self.fingerprints.relocate(from, to);
    }

    fn drop_slots(&mut self, slots: usize) {
        self.queues.drop_slots(slots);
        self.hits.drop_slots(slots);
        self.fingerprints.drop_slots(slots);
    }

    /// The main queue by hits; behind its entries without any, what has not earned a place there. Of
    /// what has, the most used come first, though the policy itself would forget their hits.
    fn ranking(&self) -> Vec<Ranked> {
        let small = self.queues.iter(SMALL).map(|slot| {
            let uses = self.hits.get(slot);
            // What has earned its place will have it at the head of the main queue, without hits.
            let round = if uses < self.threshold { (0, 0) } else { (2, uses) };
            (round, Ranked { slot, uses })
        });
        let main = self.queues.iter(MAIN).map(|slot| {
            let hits = self.hits.get(slot);
            let round = if hits == 0 { 1 } else { 2 + hits };
            ((round, 0), Ranked { slot, uses: hits.max(self.threshold) })
        });
        let mut leaving: Vec<((u8, u8), Ranked)> = small.chain(main).collect();
        leaving.sort_by_key(|(round, _)| *round);
        best_first(leaving.into_iter().map(|(_, entry)| entry))
    }

    fn queues(&self) -> Vec<Queue> {
        vec![
            Queue { name: "small", entries: self.queues.dump(SMALL) },
            Queue { name: "main", entries: self.queues.dump(MAIN) },
            Queue { name: "ghost", entries: self.ghosts.dump() },
        ]
    }

    fn metadata_bytes(&self) -> usize {
        self.queues.memory_bytes()
            + self.hits.memory_bytes()
            + self.fingerprints.memory_bytes()
            + self.ghosts.memory_bytes()
    }
}
