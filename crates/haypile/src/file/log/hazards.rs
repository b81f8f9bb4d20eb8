//! Hazards: the segments that owners append to, which nobody else may empty.

use crate::file::area::Area;
use crate::file::area::owners::OwnerSlot;
use crate::file::log::lane::Lanes;
use crate::file::platform::ground::Ground;
use crate::mutant;

/// The announcements (hazards) of all users of a cache file: the segment that each of them appends
/// to.
#[derive(Debug)]
pub(in crate::file) struct Hazards<'a, G> {
    area: &'a Area<G>,
}

impl<'a, G: Ground> Hazards<'a, G> {
    pub(in crate::file) fn of(area: &'a Area<G>) -> Self {
        Self { area }
    }

    /// Returns whether, at any moment during this call, a living user of the cache file appends to
    /// this segment, or an append lane names it.
    ///
    /// An owner that opens a segment moves it from its hazard to a lane's name; one that appends, from the
    /// name to its hazard, for others may rename the lane once it has the lock no more. So a look at hazards
    /// comes before the look at names, and another one after it.
    pub(in crate::file) fn or_lanes_name(&self, segment: u32) -> bool {
        (self.name(segment) && !mutant::is_on("names-are-read-before-hazards"))
            || Lanes::of(self.area).name(segment)
            || (self.name(segment) && !mutant::is_on("hazards-are-not-read-again"))
    }

    /// Returns whether a living user of the cache file announces that it appends to this segment.
    pub(in crate::file) fn name(&self, segment: u32) -> bool {
        self.area.used_owner_slots().any(|slot| slot.hazard() == Some(segment))
    }

    /// Returns the segments to which living users of the cache file announce that they append.
    pub(in crate::file) fn segments(&self) -> Vec<u32> {
        self.area.used_owner_slots().filter_map(|slot: OwnerSlot<'_, G>| slot.hazard()).collect()
    }
}
