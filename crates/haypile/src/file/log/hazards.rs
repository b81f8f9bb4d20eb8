//! Hazards: the segments that owners append to, which nobody else may empty.

use std::sync::atomic::Ordering;

use crate::file::area::Area;
use crate::file::format::owner_slot::HAZARD;
use crate::file::platform::ground::Ground;
use crate::mutant;

impl<G: Ground> Area<G> {
    /// Sets or clears the hazard of an owner slot.
    #[inline]
    pub(in crate::file) fn set_hazard(&self, owner_slot: u32, segment: Option<u32>) {
        let word = segment.map_or(0, |segment| u64::from(segment) + 1);
        let word = if mutant::is_on("hazard-never-set") { 0 } else { word };
        // Who sees that it is gone sees what was published before.
        let order = mutant::order("hazard-cleared", Ordering::Release);
        self.ground.store(self.geometry.owner_slot(owner_slot) + HAZARD, word, order);
    }

    /// Whether a living owner appends to an open segment or a lane names it, at any moment from this call
    /// to its end.
    ///
    /// An owner that opens a segment moves it from its hazard to a lane's name; one that appends, from the
    /// name to its hazard, for others may rename the lane once it has the lock no more. So a look at hazards
    /// comes before the look at names, and another one after it.
    pub(in crate::file) fn is_held(&self, segment: u32) -> bool {
        (self.is_appended_to(segment) && !mutant::is_on("names-are-read-before-hazards"))
            || self.is_named(segment)
            || (self.is_appended_to(segment) && !mutant::is_on("hazards-are-not-read-again"))
    }

    /// Whether the hazard of a living owner names a segment.
    pub(in crate::file) fn is_appended_to(&self, segment: u32) -> bool {
        self.used_owner_slots().any(|owner_slot| self.hazard_of(owner_slot) == Some(segment))
    }

    /// The segments that hazards of living owners name.
    pub(in crate::file) fn hazards(&self) -> Vec<u32> {
        self.used_owner_slots().filter_map(|owner_slot| self.hazard_of(owner_slot)).collect()
    }

    /// The segment that the owner of a slot appends to, if it is alive.
    fn hazard_of(&self, owner_slot: u32) -> Option<u32> {
        let at = self.geometry.owner_slot(owner_slot) + HAZARD;
        let order = mutant::order("hazard-read", Ordering::Acquire);
        let hazard = || self.ground.load(at, order);
        let before = hazard();
        if before == 0 || mutant::is_on("hazards-ignored") {
            return None;
        }
        let is_set = self.ground.is_taken(owner_slot) && hazard() == before;
        is_set.then(|| u32::try_from(before - 1).ok()).flatten()
    }
}
