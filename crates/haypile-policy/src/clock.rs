//! CLOCK: FIFO with a second chance.

use super::link::Links;
use super::mark::Marks;
use super::ranking::fewest_uses_leave;
use super::{Newcomer, Param, Policy, PolicyKind, PolicySpec, Queue, Ranked, Slot};

/// The description of the policy `clock`: its name, paper and parameters.
pub const KIND: PolicyKind = PolicyKind {
    name: "clock",
    summary: "FIFO that sends what was used round again",
    paper: "Corbato, A Paging Experiment with the Multics System, 1968",
    params: &[Param {
        name: "bits",
        default: 1.0,
        min: 1.0,
        max: 7.0,
        whole: true,
        help: "bits of the use counter; each round takes one off",
    }],
};

/// The eviction policy CLOCK: FIFO, except that an entry with hits (counted in one or more bits) loses one and goes
/// round again instead of being evicted.
///
/// The same as libCacheSim's `clock` (there too, an entry that is sent round again goes to the
/// head of the queue; the hand is the queue's tail).
#[derive(Debug)]
pub struct Clock {
    links: Links<1>,
    marks: Marks,
    max: u8,
}

impl Clock {
    /// Creates the CLOCK policy for an empty cache.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the parameter's range is checked where it is read"
    )]
    pub fn new(spec: &PolicySpec) -> Self {
        let max = (1 << spec.value("bits") as u8) - 1;
        Self { links: Links::new(), marks: Marks::default(), max }
    }
}

impl Policy for Clock {
    const SHARED_HITS: bool = true;
    const RELOCATES: bool = true;

    fn reserve_slots(&mut self, slots: usize) {
        self.links.reserve(slots);
        self.marks.reserve(slots);
    }

    #[inline]
    fn on_hit(&mut self, slot: Slot) {
        self.marks.raise(slot, self.max);
    }

    #[inline]
    fn on_hit_shared(&self, slot: Slot) {
        self.marks.raise(slot, self.max);
    }

    fn evict(&mut self, _newcomer: Option<Newcomer>) -> Slot {
        loop {
            let slot = self.links.tail(0).expect("an entry to evict");
            let count = self.marks.get(slot);
            if count == 0 {
                self.links.unlink(slot);
                return slot;
            }
            self.marks.set(slot, count - 1);
            self.links.move_to_head(0, slot);
        }
    }

    fn on_insert(&mut self, slot: Slot, _newcomer: Newcomer) {
        self.marks.set(slot, 0);
        self.links.push_head(0, slot);
    }

    fn on_remove(&mut self, slot: Slot) {
        self.links.unlink(slot);
    }

    #[inline]
    fn prefetch_slot(&self, slot: Slot) {
        self.marks.prefetch(slot);
    }

    fn relocate(&mut self, from: Slot, to: Slot) {
        self.links.relocate(from, to);
        self.marks.relocate(from, to);
    }

    fn drop_slots(&mut self, slots: usize) {
        self.links.drop_slots(slots);
        self.marks.drop_slots(slots);
    }

    fn ranking(&self) -> Vec<Ranked> {
        let entry = |slot| Ranked { slot, uses: self.marks.get(slot) };
        fewest_uses_leave(self.links.iter(0).map(entry))
    }

    fn queues(&self) -> Vec<Queue> {
        vec![Queue { name: "clock", entries: self.links.dump(0) }]
    }

    fn metadata_bytes(&self) -> usize {
        self.links.memory_bytes() + self.marks.memory_bytes()
    }
}
