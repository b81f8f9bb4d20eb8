//! ARC: recency against frequency, balanced by what the ghosts of each would have hit.

use super::ghost::{Fingerprints, GhostList, Memory};
use super::queues::Queues;
use super::ranking::best_first;
use super::weight::Weights;
use super::{Newcomer, Param, Policy, PolicyKind, PolicySpec, Queue, Ranked, Slot};

/// The description of the policy `arc`: its name, paper and parameters.
pub const KIND: PolicyKind = PolicyKind {
    name: "arc",
    summary: "two LRU queues, seen once and seen again, that adapt to each other",
    paper: "Megiddo and Modha, ARC: A Self-Tuning, Low Overhead Replacement Cache, FAST 2003",
    params: &[Param {
        name: "weighted",
        default: 1.0,
        min: 0.0,
        max: 1.0,
        whole: true,
        help: "1: a ghost hit moves the balance in proportion to the entry's weight, and ghosts \
               are bounded by weight; 0: by at least 1, whatever the weights, and one ghost is \
               dropped for each entry, as libCacheSim does",
    }],
};

/// Seen once: T1 in the paper.
const RECENT: usize = 0;
/// Seen at least twice: T2.
const FREQUENT: usize = 1;

/// Which ghost the newcomer that was admitted last had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ghost {
    None,
    Recent,
    Frequent,
}

/// The eviction policy ARC (adaptive replacement cache).
///
/// On objects its decisions are those of libCacheSim and so of the paper's listing. Departures:
/// the paper knows pages of one size only; here sums of weights stand where it has counts, a
/// ghost hit moves the balance by the newcomer's weight times the paper's step, and as many
/// ghosts are dropped as it takes to keep the paper's bounds (not with `weighted=0`, which drops
/// one for each entry that leaves, as libCacheSim does).
#[derive(Debug)]
pub struct Arc<W: Weights, M: Memory> {
    resident: Queues<W, 2>,
    fingerprints: M::Fingerprints,
    recent_ghosts: M::List<W>,
    frequent_ghosts: M::List<W>,
    capacity: u64,
    /// The weight that T1 should have: p in the paper.
    target: f64,
    weighted: bool,
    ghost: Ghost,
}

impl<W: Weights, M: Memory> Arc<W, M> {
    /// Creates the ARC policy for an empty cache of size `capacity`.
    pub fn new(capacity: u64, spec: &PolicySpec) -> Self {
        Self {
            resident: Queues::new(),
            fingerprints: M::Fingerprints::default(),
            recent_ghosts: M::List::default(),
            frequent_ghosts: M::List::default(),
            capacity,
            target: 0.0,
            weighted: spec.value("weighted") != 0.0,
            ghost: Ghost::None,
        }
    }

    /// REPLACE in the paper.
    fn replace(&mut self) -> Slot {
        let recent = precise(self.resident.sum(RECENT));
        let from_recent = recent > self.target
            || (self.ghost == Ghost::Frequent && recent >= self.target && recent > 0.0);
        if let Some(slot) = self.resident.tail(RECENT)
            && (from_recent || self.resident.is_empty(FREQUENT))
        {
            self.recent_ghosts.push(self.fingerprints.get(slot), self.resident.weight(slot));
            self.resident.remove(slot);
            self.keep_bounds();
            slot
        } else {
            let slot = self.resident.tail(FREQUENT).expect("an entry to evict");
            self.frequent_ghosts.push(self.fingerprints.get(slot), self.resident.weight(slot));
            self.resident.remove(slot);
            self.keep_bounds();
            slot
        }
    }

    /// T1 and B1 together.
    fn seen_once(&self) -> u64 {
        self.resident.sum(RECENT) + self.recent_ghosts.weight()
    }

    /// Returns all four queues together.
    fn remembered(&self) -> u64 {
        self.seen_once() + self.resident.sum(FREQUENT) + self.frequent_ghosts.weight()
    }

    /// Drops ghosts until T1 and B1 hold the capacity at most, and all queues twice that.
    fn drop_excess_ghosts(&mut self) {
        while self.seen_once() > self.capacity && self.recent_ghosts.pop().is_some() {}
        let twice = self.capacity.saturating_mul(2);
        while self.remembered() > twice && self.frequent_ghosts.pop().is_some() {}
    }

    /// The paper's listing keeps its bounds by itself as long as all entries weigh the same and
    /// none is removed. Otherwise this does.
    fn keep_bounds(&mut self) {
        if self.weighted {
            self.drop_excess_ghosts();
        }
    }
}

impl<W: Weights, M: Memory> Policy for Arc<W, M> {
    const RELOCATES: bool = M::REUSES_SLOTS;

    fn reserve_slots(&mut self, slots: usize) {
        self.resident.reserve(slots);
        self.fingerprints.reserve(slots);
        self.recent_ghosts.reserve(slots);
        self.frequent_ghosts.reserve(slots);
    }

    #[inline]
    fn on_hit(&mut self, slot: Slot) {
        self.resident.move_to(FREQUENT, slot);
    }

    fn on_update(&mut self, slot: Slot, weight: u64) {
        self.resident.reweigh(slot, weight);
        self.on_hit(slot);
        self.keep_bounds();
    }

    fn admit(&mut self, newcomer: Newcomer, _missing: u64) -> bool {
        let (recent, frequent) = (self.recent_ghosts.weight(), self.frequent_ghosts.weight());
        let unit = if self.weighted { precise(newcomer.weight) } else { 1.0 };
        if self.recent_ghosts.remove(newcomer.fingerprint).is_some() {
            let step = unit * (precise(frequent) / precise(recent)).max(1.0);
            self.target = (self.target + step).min(precise(self.capacity));
            self.ghost = Ghost::Recent;
        } else if self.frequent_ghosts.remove(newcomer.fingerprint).is_some() {
            let step = unit * (precise(recent) / precise(frequent)).max(1.0);
            self.target = (self.target - step).max(0.0);
            self.ghost = Ghost::Frequent;
        } else {
            self.ghost = Ghost::None;
        }
        true
    }

    fn evict(&mut self, newcomer: Option<Newcomer>) -> Slot {
        let incoming = newcomer.map_or(0, |newcomer| newcomer.weight);
        if self.ghost == Ghost::None {
            if self.seen_once() + incoming > self.capacity {
                if self.recent_ghosts.pop().is_none()
                    && let Some(slot) = self.resident.tail(RECENT)
                {
                    self.resident.remove(slot);
                    return slot;
                }
            } else {
                // The paper's bound on everything that is remembered, before one more is. Without weights it is that
                // of equal entries: one ghost goes for each that comes.
                let twice = self.capacity.saturating_mul(2);
                while self.remembered() >= twice && self.frequent_ghosts.pop().is_some() {
                    if !self.weighted {
                        break;
                    }
                }
            }
        }
        self.replace()
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        self.fingerprints.set(slot, newcomer.fingerprint);
        let queue = if self.ghost == Ghost::None { RECENT } else { FREQUENT };
        self.resident.insert(queue, slot, newcomer.weight);
        self.ghost = Ghost::None;
        self.keep_bounds();
    }

    fn on_remove(&mut self, slot: Slot) {
        self.resident.remove(slot);
    }

    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.target = self.target.min(precise(capacity));
        self.drop_excess_ghosts();
    }

    fn relocate(&mut self, from: Slot, to: Slot) {
        self.resident.relocate(from, to);
        self.fingerprints.relocate(from, to);
    }

    fn drop_slots(&mut self, slots: usize) {
        self.resident.drop_slots(slots);
        self.fingerprints.drop_slots(slots);
    }

    /// Entries seen again come before those seen once, whatever the balance is now: it is not
    /// brought back.
    fn ranking(&self) -> Vec<Ranked> {
        let queue =
            |(queue, uses)| self.resident.iter(queue).map(move |slot| Ranked { slot, uses });
        best_first([(RECENT, 0), (FREQUENT, 1)].into_iter().flat_map(queue))
    }

    fn queues(&self) -> Vec<Queue> {
        vec![
            Queue { name: "t1", entries: self.resident.dump(RECENT) },
            Queue { name: "t2", entries: self.resident.dump(FREQUENT) },
            Queue { name: "b1", entries: self.recent_ghosts.dump() },
            Queue { name: "b2", entries: self.frequent_ghosts.dump() },
        ]
    }

    fn metadata_bytes(&self) -> usize {
        self.resident.memory_bytes()
            + self.fingerprints.memory_bytes()
            + self.recent_ghosts.memory_bytes()
            + self.frequent_ghosts.memory_bytes()
    }
}

fn precise(weight: u64) -> f64 {
    weight as f64
}
