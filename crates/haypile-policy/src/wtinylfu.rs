//! W-TinyLFU: an admission window, and a main space that takes only what was asked for more often
//! than what it would push out.

use super::ghost::{Fingerprints, Memory};
use super::queues::Queues;
use super::ranking::best_first;
use super::sketch::{MAX_FREQUENCY, Sketch};
use super::weight::{Weights, share};
use super::{Newcomer, Param, Policy, PolicyKind, PolicySpec, Queue, Ranked, Slot};

/// The description of the policy `wtinylfu`: its name, paper and parameters.
pub const KIND: PolicyKind = PolicyKind {
    name: "wtinylfu",
    summary: "admission by frequency; strong on static popularity, favours small objects",
    paper: "Einziger, Friedman and Manes, TinyLFU: A Highly Efficient Cache Admission Policy, \
            ACM ToS 2017",
    params: &[
        Param {
            name: "window",
            default: 1.0,
            min: 0.0,
            max: 100.0,
            whole: false,
            help: "share of the capacity that the admission window has, in per cent; 10 suits \
                   objects of different sizes better",
        },
        Param {
            name: "protected",
            default: 80.0,
            min: 0.0,
            max: 100.0,
            whole: false,
            help: "share of the main space that entries hit on probation have, in per cent",
        },
    ],
};

const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

/// Where victims come from if the window gives no candidate, the first to leave first.
const VICTIMS: [usize; 3] = [PROBATION, PROTECTED, WINDOW];

/// The eviction policy W-TinyLFU, with a window of fixed size.
///
/// On objects it follows Caffeine's simulator (`sketch.WindowTinyLfu`); the sketch's hash differs,
/// so that the decisions do in some cases, and a candidate is never admitted by chance. Departures
/// where entries have weights: room is made before the newcomer is placed, and when the window
/// gave no candidate the main space's victim leaves without a contest. A newcomer that is heavier
/// than the window competes before anything leaves, with all entries that would: it has to have been
/// asked for more often than each of them.
#[derive(Debug)]
pub struct WTinyLfu<W: Weights, M: Memory> {
    segments: Queues<W, 3>,
    fingerprints: M::Fingerprints,
    sketch: Sketch,
    entries: u64,
    window_share: f64,
    protected_share: f64,
    window_capacity: u64,
    protected_capacity: u64,
    /// The entry that left the window for the newcomer's sake and has not been judged yet.
    candidate: Option<Slot>,
}

impl<W: Weights, M: Memory> WTinyLfu<W, M> {
    /// Creates the W-TinyLFU policy for an empty cache of size `capacity`.
    pub fn new(capacity: u64, spec: &PolicySpec) -> Self {
        let mut policy = Self {
            segments: Queues::new(),
            fingerprints: M::Fingerprints::default(),
            sketch: Sketch::new(0),
            entries: 0,
            window_share: spec.value("window"),
            protected_share: spec.value("protected"),
            window_capacity: 0,
            protected_capacity: 0,
            candidate: None,
        };
        policy.set_capacity(capacity);
        policy
    }

    fn frequency(&self, slot: Slot) -> u8 {
        self.sketch.frequency(self.fingerprints.get(slot))
    }

    /// Moves the window's oldest to probation until the window can take `incoming` more. Gives
    /// the first that was moved.
    fn drain_window(&mut self, incoming: u64) -> Option<Slot> {
        let mut first = None;
        while self.segments.sum(WINDOW) + incoming > self.window_capacity {
            let Some(slot) = self.segments.tail(WINDOW) else { break };
            self.segments.move_to(PROBATION, slot);
            first = first.or(Some(slot));
        }
        first
    }

    fn leave(&mut self, slot: Slot) -> Slot {
        if self.candidate == Some(slot) {
            self.candidate = self.segments.toward_head(slot);
        }
        self.segments.remove(slot);
        self.entries -= 1;
        slot
    }

    /// Whether an entry of this weight cannot compete later, as a candidate from the window.
    fn outweighs_window(&self, weight: u64) -> bool {
        weight > self.window_capacity
    }

    /// Whether all entries that would leave for `missing` have been asked for less often than this.
    fn beats_victims(&self, frequency: u8, missing: u64) -> bool {
        let mut left = missing;
        let victims = VICTIMS.into_iter().flat_map(|segment| self.segments.iter(segment));
        for slot in victims {
            if left == 0 {
                break;
            }
            if self.frequency(slot) >= frequency {
                return false;
            }
            left = left.saturating_sub(self.segments.weight(slot));
        }
        true
    }
}

impl<W: Weights, M: Memory> Policy for WTinyLfu<W, M> {
    const RELOCATES: bool = M::REUSES_SLOTS;

    fn reserve_slots(&mut self, slots: usize) {
        self.segments.reserve(slots);
        self.fingerprints.reserve(slots);
    }

    fn on_hit(&mut self, slot: Slot) {
        self.sketch.count(self.fingerprints.get(slot));
        match self.segments.of(slot) {
            WINDOW => self.segments.move_to(WINDOW, slot),
            PROBATION if self.segments.weight(slot) > self.protected_capacity => {
                self.segments.move_to(PROBATION, slot);
            }
            _ => {
                self.segments.move_to(PROTECTED, slot);
                while self.segments.sum(PROTECTED) > self.protected_capacity {
                    let oldest = self.segments.tail(PROTECTED).expect("an overflowing segment");
                    self.segments.move_to(PROBATION, oldest);
                }
            }
        }
    }

    fn on_update(&mut self, slot: Slot, weight: u64) {
        self.segments.reweigh(slot, weight);
        // What an earlier call of `evict` left to be judged was for the sake of another entry, and
        // may have moved since.
        self.candidate = None;
        self.on_hit(slot);
    }

    /// The newcomer is counted once more when it is admitted.
    fn judge(&self, newcomer: Newcomer, missing: u64) -> bool {
        if missing == 0 || !self.outweighs_window(newcomer.weight) {
            return true;
        }
        let frequency = self.sketch.frequency(newcomer.fingerprint) + 1;
        self.beats_victims(frequency.min(MAX_FREQUENCY), missing)
    }

    fn admit(&mut self, newcomer: Newcomer, missing: u64) -> bool {
        self.sketch.count(newcomer.fingerprint);
        self.candidate = None;
        missing == 0
            || !self.outweighs_window(newcomer.weight)
            || self.beats_victims(self.sketch.frequency(newcomer.fingerprint), missing)
    }

    fn evict(&mut self, newcomer: Option<Newcomer>) -> Slot {
        let incoming = newcomer.map_or(0, |newcomer| newcomer.weight);
        if self.outweighs_window(incoming) {
            // It has won against these.
            let victim = VICTIMS.into_iter().find_map(|segment| self.segments.tail(segment));
            return self.leave(victim.expect("an entry to evict"));
        }
        let drained = self.drain_window(incoming);
        self.candidate = self.candidate.or(drained);
        let victim = self.segments.tail(PROBATION);
        if let (Some(candidate), Some(victim)) = (self.candidate, victim) {
            if candidate == victim || self.frequency(candidate) <= self.frequency(victim) {
                return self.leave(candidate);
            }
            self.candidate = self.segments.toward_head(candidate);
            return self.leave(victim);
        }
        let victim = victim
            .or_else(|| self.segments.tail(PROTECTED))
            .or_else(|| self.segments.tail(WINDOW))
            .expect("an entry to evict");
        self.leave(victim)
    }

    fn on_insert(&mut self, slot: Slot, newcomer: Newcomer) {
        self.candidate = None;
        self.entries += 1;
        self.sketch.grow(self.entries);
        self.fingerprints.set(slot, newcomer.fingerprint);
        self.segments.insert(WINDOW, slot, newcomer.weight);
        self.drain_window(0);
    }

    fn on_remove(&mut self, slot: Slot) {
        self.leave(slot);
    }

    fn set_capacity(&mut self, capacity: u64) {
        self.candidate = None;
        let main = share(capacity, 100.0 - self.window_share);
        self.window_capacity = capacity - main;
        self.protected_capacity = share(main, self.protected_share);
    }

    fn relocate(&mut self, from: Slot, to: Slot) {
        self.segments.relocate(from, to);
        self.fingerprints.relocate(from, to);
        if self.candidate == Some(from) {
            self.candidate = Some(to);
        }
    }

    /// The sketch shrinks as well, and then keys share more of its counters.
    fn drop_slots(&mut self, slots: usize) {
        self.segments.drop_slots(slots);
        self.fingerprints.drop_slots(slots);
        self.sketch.shrink(slots as u64);
    }

    /// The uses are what the sketch knows of, so that the next sketch has them too.
    fn ranking(&self) -> Vec<Ranked> {
        let entry = |slot| {
            // Its admission is counted once more when it is brought back.
            Ranked { slot, uses: self.frequency(slot).saturating_sub(1) }
        };
        let leaving = [PROBATION, WINDOW, PROTECTED].into_iter();
        best_first(leaving.flat_map(|segment| self.segments.iter(segment)).map(entry))
    }

    fn queues(&self) -> Vec<Queue> {
        vec![
            Queue { name: "window", entries: self.segments.dump(WINDOW) },
            Queue { name: "probation", entries: self.segments.dump(PROBATION) },
            Queue { name: "protected", entries: self.segments.dump(PROTECTED) },
        ]
    }

    fn metadata_bytes(&self) -> usize {
        self.segments.memory_bytes() + self.fingerprints.memory_bytes() + self.sketch.memory_bytes()
    }
}
