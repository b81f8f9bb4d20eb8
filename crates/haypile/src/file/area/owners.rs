//! Owner slots, as words that processes share.

use std::sync::atomic::Ordering;

use super::{Area, Owner};
use crate::file::crash;
use crate::file::format::counter::Counted;
use crate::file::format::header;
use crate::file::format::owner_slot::{
    HAZARD, INCARNATION, LANES, LEFT, NAMESPACE, PROCESS, SINCE, SLOT_STAMP, STATE, TAKEN,
};
use crate::file::format::slot::Token;
use crate::file::platform::ground::{Ground, IN_ORDER};
use crate::file::platform::halted::ProcessId;
use crate::mutant;

/// An owner slot of the cache file: the entry of one user in the file's table of users.
#[derive(Debug)]
pub(in crate::file) struct OwnerSlot<'a, G> {
    area: &'a Area<G>,
    pub(in crate::file) number: u32,
}

impl<G: Ground> OwnerSlot<'_, G> {
    #[inline]
    fn at(&self, word: u64) -> u64 {
        self.area.geometry.owner_slot(self.number) + word
    }

    #[inline]
    fn load(&self, word: u64) -> u64 {
        self.area.ground.load(self.at(word), Ordering::Relaxed)
    }

    fn store(&self, word: u64, value: u64) {
        self.area.ground.store(self.at(word), value, IN_ORDER);
    }

    /// Makes a process that has locked an owner slot of the cache file the slot's owner, and
    /// returns that owner.
    pub(in crate::file) fn settle(&self, process: ProcessId, now_ms: u64) -> Owner {
        let Area { ground, stamp, .. } = self.area;
        if self.load(STATE) == TAKEN {
            ground.add(header::DEATHS, 1);
        }
        // After a loss of power there may be tokens of owners that the word does not know of.
        let jump = if self.load(SLOT_STAMP) == *stamp { 1 } else { 1 + (*stamp & 0xF_FFFF) };
        let jump = if mutant::is_on("incarnation-not-raised") { 0 } else { jump };
        let incarnation = self.load(INCARNATION).wrapping_add(jump);
        if !mutant::is_on("hazard-inherited-from-the-dead") {
            self.store(HAZARD, 0);
        }
        crash::point("settle.hazard");
        self.store(LANES, 0);
        crash::point("settle.lanes");
        // Before the stamp: an owner that ends in between leaves the jump to the next.
        let stamps_first = mutant::is_on("stamp-stored-before-the-incarnation");
        if stamps_first {
            self.store(SLOT_STAMP, *stamp);
            crash::point("settle.stamp");
        }
        self.store(INCARNATION, incarnation);
        crash::point("settle.incarnation");
        if !stamps_first {
            self.store(SLOT_STAMP, *stamp);
            crash::point("settle.stamp");
        }
        self.store(PROCESS, process.number);
        crash::point("settle.process");
        self.store(NAMESPACE, process.namespace);
        crash::point("settle.namespace");
        self.store(SINCE, now_ms);
        crash::point("settle.since");
        ground.raise(header::OWNER_SLOTS_USED, u64::from(self.number) + 1);
        crash::point("settle.used");
        self.store(STATE, TAKEN);
        crash::point("settle.taken");
        Owner::new(self.number, Token::new(self.number, incarnation))
    }

    /// Returns the process that last took this owner slot of the cache file.
    pub(in crate::file) fn process(&self) -> ProcessId {
        ProcessId { number: self.load(PROCESS), namespace: self.load(NAMESPACE) }
    }

    /// Returns since when that process has had it, in ms since 1970.
    fn since_ms(&self) -> u64 {
        self.load(SINCE)
    }

    /// Returns the number of owners that this owner slot of the cache file has had.
    pub(in crate::file) fn incarnation(&self) -> u64 {
        self.load(INCARNATION)
    }

    /// Returns whether this owner slot of the cache file was last taken before the last reboot, so
    /// that its owner is dead.
    pub(in crate::file) fn has_earlier_stamp(&self) -> bool {
        self.load(SLOT_STAMP) != self.area.stamp
    }

    /// Returns whether the process that last took this owner slot has closed the cache file.
    pub(in crate::file) fn is_left(&self) -> bool {
        self.load(STATE) == LEFT
    }

    /// Returns whether the process that last took this owner slot has not closed the cache file;
    /// that process may have died.
    pub(in crate::file) fn seems_taken(&self) -> bool {
        self.load(STATE) == TAKEN
    }

    /// Marks an owner slot of the cache file as free again, because its process has closed the
    /// file.
    pub(in crate::file) fn set_left(&self) {
        self.store(STATE, LEFT);
    }

    /// Returns the values of all statistics counters in this owner slot of the cache file.
    pub(in crate::file) fn counted(&self) -> Counted {
        Counted::read(|offset| self.load(offset))
    }

    /// Announces in the cache file the segment that this owner slot's user appends to, so that no
    /// process recycles it; `None` clears the announcement.
    #[inline]
    pub(in crate::file) fn set_hazard(&self, segment: Option<u32>) {
        let word = segment.map_or(0, |segment| u64::from(segment) + 1);
        let word = if mutant::is_on("hazard-never-set") { 0 } else { word };
        // Who sees that it is gone sees what was published before.
        let order = mutant::order("hazard-cleared", Ordering::Release);
        self.area.ground.store(self.at(HAZARD), word, order);
    }

    /// Returns the segment that this owner slot's user appends records to, if that user is alive.
    pub(in crate::file) fn hazard(&self) -> Option<u32> {
        let order = mutant::order("hazard-read", Ordering::Acquire);
        let hazard = || self.area.ground.load(self.at(HAZARD), order);
        let before = hazard();
        if before == 0 || mutant::is_on("hazards-ignored") {
            return None;
        }
        let is_set = self.area.ground.is_taken(self.number) && hazard() == before;
        is_set.then(|| u32::try_from(before - 1).ok()).flatten()
    }

    /// Returns the word of an owner slot that encodes, for each queue of segments, the append lane
    /// (shared open segment) that the slot's user last used.
    #[inline]
    pub(in crate::file) fn lanes(&self) -> u64 {
        self.load(LANES)
    }

    pub(in crate::file) fn set_lanes(&self, word: u64) {
        self.store(LANES, word);
    }
}

impl<G: Ground> Area<G> {
    #[inline]
    pub(in crate::file) fn owner_slot(&self, number: u32) -> OwnerSlot<'_, G> {
        OwnerSlot { area: self, number }
    }

    /// Returns the owner slots of the cache file that a process has ever taken.
    pub(in crate::file) fn used_owner_slots(&self) -> impl Iterator<Item = OwnerSlot<'_, G>> {
        let used = self.ground.load(header::OWNER_SLOTS_USED, Ordering::Relaxed);
        let used = u32::try_from(used).unwrap_or(u32::MAX);
        (0..used.min(self.geometry.numbers.owner_slots)).map(|number| self.owner_slot(number))
    }

    /// Returns the id of each process that has the cache file open for writing, and the time at
    /// which it opened the file, in ms since 1970.
    pub(in crate::file) fn processes(&self) -> Vec<(u64, u64)> {
        let slots = (0..self.geometry.numbers.owner_slots).map(|number| self.owner_slot(number));
        let taken = slots.filter(|slot| slot.seems_taken() && self.ground.is_taken(slot.number));
        let mut processes: Vec<(u64, u64)> =
            taken.map(|slot| (slot.process().number, slot.since_ms())).collect();
        processes.sort_unstable();
        processes.dedup_by_key(|(process, _)| *process);
        processes
    }
}
