//! Owner slots, as words that processes share.

use std::sync::atomic::Ordering;

use super::{Area, Owner, Record};
use crate::file::crash;
use crate::file::format::header;
use crate::file::format::owner_slot::{
    HAZARD, INCARNATION, LANES, NAMESPACE, PROCESS, SINCE, SLOT_STAMP, STATE, TAKEN,
};
use crate::file::format::record::MAX_VERSION;
use crate::file::format::segment::Origin;
use crate::file::format::slot::Token;
use crate::file::platform::ground::{Ground, IN_ORDER};
use crate::file::platform::halted::ProcessId;
use crate::mutant;

/// A loss of power or damage makes no versions skip beyond this.
pub(in crate::file) const VERSIONS_END: u64 = MAX_VERSION / 2;

impl<G: Ground> Area<G> {
    /// Makes a process the owner of a slot that it has locked.
    pub(in crate::file) fn settle(
        &self,
        owner_slot: u32,
        process: ProcessId,
        now_ms: u64,
    ) -> Owner {
        let at = self.geometry.owner_slot(owner_slot);
        let load = |word: u64| self.ground.load(at + word, Ordering::Relaxed);
        let store = |word: u64, value: u64| self.ground.store(at + word, value, IN_ORDER);
        if load(STATE) == TAKEN {
            self.ground.add(header::DEATHS, 1);
        }
        // After a loss of power there may be tokens of owners that the word does not know of.
        let jump = if load(SLOT_STAMP) == self.stamp { 1 } else { 1 + (self.stamp & 0xF_FFFF) };
        let jump = if mutant::is_on("incarnation-not-raised") { 0 } else { jump };
        let incarnation = load(INCARNATION).wrapping_add(jump);
        if !mutant::is_on("hazard-inherited-from-the-dead") {
            store(HAZARD, 0);
        }
        crash::point("settle.hazard");
        store(LANES, 0);
        crash::point("settle.lanes");
        // Before the stamp: an owner that ends in between leaves the jump to the next.
        let stamps_first = mutant::is_on("stamp-stored-before-the-incarnation");
        if stamps_first {
            store(SLOT_STAMP, self.stamp);
            crash::point("settle.stamp");
        }
        store(INCARNATION, incarnation);
        crash::point("settle.incarnation");
        if !stamps_first {
            store(SLOT_STAMP, self.stamp);
            crash::point("settle.stamp");
        }
        store(PROCESS, process.number);
        crash::point("settle.process");
        store(NAMESPACE, process.namespace);
        crash::point("settle.namespace");
        store(SINCE, now_ms);
        crash::point("settle.since");
        self.ground.raise(header::OWNER_SLOTS_USED, u64::from(owner_slot) + 1);
        crash::point("settle.used");
        store(STATE, TAKEN);
        crash::point("settle.taken");
        Owner::new(owner_slot, Token::new(owner_slot, incarnation))
    }

    /// Skips the versions up to that of a record, if it was written under an earlier stamp: the word
    /// that counts them may have been lost with the power. One that cannot have been drawn is damage.
    #[inline]
    pub(in crate::file) fn note_version(&self, record: &Record) {
        let version = record.head.version();
        if self.origin(record.segment) == Origin::Earlier && version < VERSIONS_END {
            self.skip_versions_to(version);
        }
    }

    /// Lets no version up to this one be given to an entry from now on.
    #[cold]
    pub(in crate::file) fn skip_versions_to(&self, version: u64) {
        if self.ground.load(header::SKIPPED_VERSIONS, Ordering::Relaxed) < version {
            self.ground.raise(header::NEXT_VERSION, version + 1);
            self.ground.raise(header::SKIPPED_VERSIONS, version);
        }
    }

    /// The owner of a slot, as it says.
    pub(in crate::file) fn process_of(&self, owner_slot: u32) -> ProcessId {
        let word =
            |word| self.ground.load(self.geometry.owner_slot(owner_slot) + word, Ordering::Relaxed);
        ProcessId { number: word(PROCESS), namespace: word(NAMESPACE) }
    }

    /// Whether an owner slot was last taken under another stamp: its owner is dead.
    pub(in crate::file) fn is_of_earlier_stamp(&self, owner_slot: u32) -> bool {
        let at = self.geometry.owner_slot(owner_slot) + SLOT_STAMP;
        self.ground.load(at, Ordering::Relaxed) != self.stamp
    }

    /// The owner slots that have ever been taken.
    pub(in crate::file) fn used_owner_slots(&self) -> std::ops::Range<u32> {
        let used = self.ground.load(header::OWNER_SLOTS_USED, Ordering::Relaxed);
        0..u32::try_from(used).unwrap_or(u32::MAX).min(self.geometry.numbers.owner_slots)
    }

    /// The processes that have an owner slot: their ids, and since when, in ms since 1970.
    pub(in crate::file) fn processes(&self) -> Vec<(u64, u64)> {
        let owner_slots = (0..self.geometry.numbers.owner_slots).filter(|owner_slot| {
            let state =
                self.ground.load(self.geometry.owner_slot(*owner_slot) + STATE, Ordering::Relaxed);
            state == TAKEN && self.ground.is_taken(*owner_slot)
        });
        let mut processes: Vec<(u64, u64)> = owner_slots
            .map(|owner_slot| {
                let word = |word| {
                    self.ground.load(self.geometry.owner_slot(owner_slot) + word, Ordering::Relaxed)
                };
                (word(PROCESS), word(SINCE))
            })
            .collect();
        processes.sort_unstable();
        processes.dedup_by_key(|(process, _)| *process);
        processes
    }
}
