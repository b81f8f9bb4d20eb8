//! Clearing: everything that was written before becomes invisible at once.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use crate::file::crash;
use crate::file::format::header;
use crate::file::log::lane::{Lanes, LockedLane};
use crate::file::log::recycler::Recycler;
use crate::file::platform::ground::Ground;
use crate::mutant;

impl<G: Ground> Recycler<'_, G> {
    /// Clears the cache file: all entries that were written before the call become misses, by a
    /// change of one number (the clearing epoch).
    pub(in crate::file) fn clear(&self) {
        let epochs = (0..self.geometry.numbers.segments).map(|segment| self.entry(segment).epoch());
        // A loss of power can leave segments of a later epoch than the header's; damage, of the last.
        let epochs: HashSet<u64> = epochs.chain([self.epoch()]).collect();
        let next = epochs.iter().max().and_then(|latest| latest.checked_add(1));
        let next = next.or_else(|| (1..u64::MAX).find(|epoch| !epochs.contains(epoch)));
        let next = next.expect("there are more numbers than segments");
        // Who sees it sees what its caller changed elsewhere before.
        self.ground.store(header::EPOCH, next, mutant::order("epoch-raised", Ordering::Release));
        crash::point("clear.risen");
        if mutant::is_on("clear-leaves-the-lanes") {
            return;
        }
        for lane in Lanes::of(self).numbers() {
            // What is open is of the old epoch, and nothing is appended to it any more.
            if let Some(mut lane) = LockedLane::lock_if_free(self, self.owner, lane) {
                lane.forget();
            }
        }
    }
}
