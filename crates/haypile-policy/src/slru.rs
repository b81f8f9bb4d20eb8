//! Segmented LRU with eden, probation and protected segments, as RelStorage defined it.

use super::column::SlotColumn;
use super::queues::Queues;
use super::ranking::best_first;
use super::weight::{Weights, share};
use super::{Newcomer, Param, Policy, PolicyKind, PolicySpec, Queue, Ranked, Slot};

/// The description of the policy `slru`: its name, paper and parameters.
pub const KIND: PolicyKind = PolicyKind {
    name: "slru",
    summary: "three LRU segments: eden, probation, and a protected one that is hard to leave",
    paper: "RelStorage 2.0's local cache (after Caffeine's W-TinyLFU, with exact frequencies)",
    params: &[
        Param {
            name: "eden",
            default: 10.0,
            min: 0.0,
            max: 100.0,
            whole: false,
            help: "share of the capacity that new entries have, in per cent",
        },
        Param {
            name: "protected",
            default: 80.0,
            min: 0.0,
            max: 100.0,
            whole: false,
            help: "share of the capacity that entries hit on probation have, in per cent",
        },
        Param {
            name: "overflow",
            default: 0.0,
            min: 0.0,
            max: 1.0,
            whole: true,
            help: "1: exceed the bound as RelStorage did, by about 4 %; only in the simulator",
        },
    ],
};

const EDEN: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

/// The uses of a protected entry in a ranking.
const PROTECTED_USES: u8 = 2;

/// After how many operations per entry the frequencies are halved.
const AGING_PERIOD: u64 = 10;

/// The sizes of the segments in the segmented LRU policy (SLRU), in per cent of the capacity. The probation segment has
/// the rest.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The size of the eden segment (for new entries), in per cent of the capacity.
    pub eden: f64,
    /// The size of the protected segment (for entries that were hit on probation), in per cent of
    /// the capacity.
    pub protected: f64,
}

impl Config {
    /// Returns the sizes of the SLRU segments that a policy's parameters state.
    pub fn of(spec: &PolicySpec) -> Self {
        Self { eden: spec.value("eden"), protected: spec.value("protected") }
    }
}

/// The segmented LRU eviction policy (SLRU) of RelStorage, with the segments eden, probation and protected.
///
/// A newcomer enters eden. Eden's oldest goes on: straight to protected until that is full, later
/// to probation. When the cache is full it competes there with probation's oldest: the one hit
/// less often leaves, the older of two equals. A hit on probation leads to protected, whose oldest
/// falls back to probation.
///
/// With `EXCEEDS` the segments alone decide, as in the source: probation overflows when protected
/// spills into it, and is not trimmed. Without it, which is the departure, the cache as a whole
/// decides, and never holds more than its capacity. Frequencies are halved every ten operations
/// per entry once the cache has been full.
#[derive(Debug)]
pub struct Slru<W, const EXCEEDS: bool> {
    segments: Queues<W, 3>,
    frequency: SlotColumn<u32>,
    config: Config,
    eden_capacity: u64,
    probation_capacity: u64,
    protected_capacity: u64,
    entries: u64,
    operations: u64,
    aged_at: u64,
    was_full: bool,
    rejected: Vec<Slot>,
}

impl<W: Weights, const EXCEEDS: bool> Slru<W, EXCEEDS> {
    /// Creates the SLRU policy for an empty cache of size `capacity`.
    pub fn new(capacity: u64, config: Config) -> Self {
        let mut policy = Self {
            segments: Queues::new(),
            frequency: SlotColumn::default(),
            config,
            eden_capacity: 0,
            probation_capacity: 0,
            protected_capacity: 0,
            entries: 0,
            operations: 0,
            aged_at: 0,
            was_full: false,
            rejected: Vec::new(),
        };
        policy.set_capacity(capacity);
        policy
    }

    fn frequency(&self, slot: Slot) -> u32 {
        self.frequency[slot]
    }

    fn count(&mut self, slot: Slot) {
        let frequency = &mut self.frequency[slot];
        *frequency = frequency.saturating_add(1);
        self.operations += 1;
    }

    fn age(&mut self) {
        if self.was_full && self.operations - self.aged_at >= AGING_PERIOD * self.entries {
            self.aged_at = self.operations;
            for segment in [EDEN, PROBATION, PROTECTED] {
                for slot in self.segments.iter(segment) {
                    self.frequency[slot] /= 2;
                }
            }
        }
    }

    fn leave(&mut self, slot: Slot) -> Slot {
        self.segments.remove(slot);
        self.entries -= 1;
        slot
    }

    /// Eden's oldest against probation's oldest: the loser leaves, and where that is probation's,
    /// eden's takes its place.
    fn compete(&mut self, eden: Slot, probation: Slot) -> Slot {
        if self.frequency(eden) >= self.frequency(probation) {
            let slot = self.leave(probation);
            self.segments.move_to(PROBATION, eden);
            slot
        } else {
            self.leave(eden)
        }
    }

    /// Moves what overflows eden on. `newest` stays: it was just placed there.
    fn spill_eden(&mut self, newest: Slot) {
        let fills_protected = self.segments.is_empty(PROBATION);
        while self.segments.sum(EDEN) > self.eden_capacity {
            let Some(oldest) = self.segments.tail(EDEN).filter(|slot| *slot != newest) else {
                break;
            };
            let weight = self.segments.weight(oldest);
            if fills_protected {
                if self.segments.sum(PROTECTED) + weight > self.protected_capacity {
                    self.segments.move_to(PROBATION, oldest);
                    break;
                }
                self.segments.move_to(PROTECTED, oldest);
            } else if !EXCEEDS || self.segments.sum(PROBATION) + weight <= self.probation_capacity {
                self.segments.move_to(PROBATION, oldest);
            } else if let Some(probation) = self.segments.tail(PROBATION) {
                let loser = self.compete(oldest, probation);
                self.rejected.push(loser);
                self.was_full = true;
            } else {
                self.segments.move_to(PROBATION, oldest);
                break;
            }
        }
    }

    /// Lets what overflows protected fall back to probation. `newest` stays.
    fn spill_protected(&mut self, newest: Slot) {
        while self.segments.sum(PROTECTED) > self.protected_capacity {
            match self.segments.tail(PROTECTED) {
                Some(oldest) if oldest != newest => self.segments.move_to(PROBATION, oldest),
                _ => break,
            }
        }
    }
}

impl<W: Weights, const EXCEEDS: bool> Policy for Slru<W, EXCEEDS> {
    const HAS_OVERFLOW: bool = EXCEEDS;
    const EXCEEDS_BOUND: bool = EXCEEDS;
    const RELOCATES: bool = true;

    fn reserve_slots(&mut self, slots: usize) {
        self.segments.reserve(slots);
        self.frequency.reserve(slots);
    }

    #[inline]
    fn on_hit(&mut self, slot: Slot) {
        self.count(slot);
        if self.segments.of(slot) == EDEN {
            self.segments.move_to(EDEN, slot);
        } else {
            self.segments.move_to(PROTECTED, slot);
            self.spill_protected(slot);
        }
    }

    fn on_update(&mut self, slot: Slot, weight: u64) {
        let old = self.segments.reweigh(slot, weight);
        self.on_hit(slot);
        if old != weight && self.segments.of(slot) == EDEN {
            self.spill_eden(slot);
        }
        self.age();
    }

    fn evict(&mut self, newcomer: Option<Newcomer>) -> Slot {
        self.was_full = true;
        let incoming = newcomer.map_or(0, |newcomer| newcomer.weight);
        let eden = self.segments.tail(EDEN);
        let probation = self.segments.tail(PROBATION);
        let eden_overflows = self.segments.sum(EDEN) + incoming > self.eden_capacity;
        match (eden, probation) {
            (Some(eden), Some(probation)) if eden_overflows => self.compete(eden, probation),
            (Some(eden), None) if eden_overflows => self.leave(eden),
            (_, Some(probation)) => self.leave(probation),
            (_, None) => {
                let slot = self.segments.tail(PROTECTED).or(eden).expect("an entry to evict");
                self.leave(slot)
            }
        }
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        self.frequency[slot] = 0;
        self.count(slot);
        self.entries += 1;
        self.segments.insert(EDEN, slot, newcomer.weight);
        self.spill_eden(slot);
        self.age();
    }

    /// Straight to the segment that the uses speak of. Through eden the first to come would fill
    /// protected, and those are the least worth keeping.
    fn on_restore(&mut self, slot: Slot, newcomer: Newcomer, uses: u8) {
        self.frequency[slot] = u32::from(uses);
        self.count(slot);
        self.entries += 1;
        if uses >= PROTECTED_USES {
            self.segments.insert(PROTECTED, slot, newcomer.weight);
            self.spill_protected(slot);
            return;
        }
        self.segments.insert(EDEN, slot, newcomer.weight);
        while self.segments.sum(EDEN) > self.eden_capacity
            && let Some(oldest) = self.segments.tail(EDEN).filter(|oldest| *oldest != slot)
        {
            self.segments.move_to(PROBATION, oldest);
        }
    }

    fn on_remove(&mut self, slot: Slot) {
        self.leave(slot);
    }

    fn overflow(&mut self) -> Option<Slot> {
        self.rejected.pop()
    }

    fn set_capacity(&mut self, capacity: u64) {
        self.eden_capacity = share(capacity, self.config.eden);
        self.protected_capacity = share(capacity, self.config.protected);
        self.probation_capacity =
            capacity.saturating_sub(self.eden_capacity).saturating_sub(self.protected_capacity);
    }

    fn relocate(&mut self, from: Slot, to: Slot) {
        debug_assert!(self.rejected.is_empty(), "the driver has taken the overflow");
        self.segments.relocate(from, to);
        self.frequency.relocate(from, to);
    }

    fn drop_slots(&mut self, slots: usize) {
        self.segments.drop_slots(slots);
        self.frequency.drop_slots(slots);
    }

    /// Protected first. Then eden and probation, as they would compete: by frequency.
    fn ranking(&self) -> Vec<Ranked> {
        let mut entries: Vec<Slot> =
            [PROBATION, EDEN].into_iter().flat_map(|segment| self.segments.iter(segment)).collect();
        entries.sort_by_key(|slot| self.frequency(*slot));
        let competing = entries
            .into_iter()
            .map(|slot| Ranked { slot, uses: u8::from(self.frequency(slot) > 1) });
        let protected = self.segments.iter(PROTECTED);
        let protected = protected.map(|slot| Ranked { slot, uses: PROTECTED_USES });
        best_first(competing.chain(protected))
    }

    fn queues(&self) -> Vec<Queue> {
        vec![
            Queue { name: "eden", entries: self.segments.dump(EDEN) },
            Queue { name: "probation", entries: self.segments.dump(PROBATION) },
            Queue { name: "protected", entries: self.segments.dump(PROTECTED) },
        ]
    }

    fn metadata_bytes(&self) -> usize {
        self.segments.memory_bytes() + self.frequency.memory_bytes()
    }
}
