//! Groups of entries: the clock of invalidations, and a word for each group.

use std::sync::atomic::Ordering;

use super::{Area, Record};
use crate::file::crash;
use crate::file::format::header;
use crate::file::format::segment::Origin;
use crate::file::platform::ground::Ground;
use crate::groups::{Hashes, Marks};
use crate::mutant;

/// The clock stays behind the wall clock with fewer invalidations than this in each millisecond.
const NUMBERS_PER_MS_LOG2: u32 = 20;
/// More numbers than are lost with the power.
const SKIPPED_NUMBERS: u64 = 1 << 32;

impl<G: Ground> Area<G> {
    /// Returns the number of invalidations of groups of entries and clearings of namespaces so far
    /// in the cache file. A reader sees what was done before the last of them after an acquire
    /// fence.
    #[inline]
    pub(in crate::file) fn group_clock(&self) -> u64 {
        self.ground.load(header::GROUP_CLOCK, Ordering::Relaxed)
    }

    /// Invalidates all entries that were written before this call in the group whose name has this
    /// hash.
    pub(in crate::file) fn invalidate(&self, hash: u32) {
        self.invalidate_at(self.geometry.group_word(hash));
    }

    /// Lets a word have the next number of the clock. Who has that number, or a higher one, sees what this caller changed
    /// elsewhere before.
    fn invalidate_at(&self, word: u64) {
        self.ground.fence(mutant::order("fence-before-an-invalidation", Ordering::Release));
        let number = self.ground.add(header::GROUP_CLOCK, 1).wrapping_add(1);
        crash::point("invalidate.drawn");
        // Another invalidation of the group may have a higher number by now.
        if mutant::is_on("words-of-groups-go-back") {
            self.ground.store(word, number, Ordering::Relaxed);
        } else {
            self.ground.raise(word, number);
        }
        crash::point("invalidate.raised");
    }

    /// Records that a namespace is about to be cleared, before any of its buckets is locked for
    /// that: any later write to the namespace sees it.
    pub(in crate::file) fn note_clearing(&self, namespace: u64) {
        self.invalidate_at(self.geometry.clearings_of(namespace));
    }

    /// Returns whether a namespace was cleared since the cache file's count of invalidations and
    /// clearings was `number`.
    pub(in crate::file) fn is_cleared_since(&self, namespace: u64, number: u64) -> bool {
        self.ground.load(self.geometry.clearings_of(namespace), Ordering::Relaxed) > number
    }

    /// Returns whether one of these groups of entries was invalidated since the cache file's count
    /// of invalidations was `number`.
    pub(in crate::file) fn are_invalid_since(&self, groups: &Hashes, number: u64) -> bool {
        groups.are_invalid_since(number, |hash| self.number_of(hash))
    }

    /// Returns the number of the last invalidation of a group, or of another with the same word.
    fn number_of(&self, hash: u32) -> u64 {
        self.ground.load(self.geometry.group_word(hash), Ordering::Relaxed)
    }

    /// Returns the hashes of the groups that a record's entry is in, and the number of the last
    /// invalidation before the entry was computed; `None` if they are damaged.
    pub(in crate::file) fn marks(&self, record: &Record) -> Option<Marks> {
        Marks::read(record.head.value_bytes(), |back| self.word_from_end(record, back))
    }

    /// Returns whether a record is invalid because one of its groups of entries was invalidated
    /// after it was written, or may have been. A loss of power may have lost invalidations that
    /// followed a record of an earlier boot.
    #[cold]
    #[inline(never)]
    pub(in crate::file) fn is_invalid(&self, record: &Record) -> bool {
        let Some(marks) = self.marks(record) else { return true };
        if self.origin(record.segment) == Origin::Earlier
            && marks.number > self.group_base
            && !mutant::is_on("numbers-of-another-boot-are-believed")
        {
            return true;
        }
        // One word tells it of every entry since which nothing was invalidated.
        if self.group_clock() <= marks.number {
            return false;
        }
        let is_invalid = marks
            .are_invalid(|back| self.word_from_end(record, back), |hash| self.number_of(hash))
            && !mutant::is_on("invalidations-are-not-seen");
        if is_invalid {
            // Who hears of it from this reader sees the clock of the invalidation too, and not an earlier one that allows the entry.
            self.ground.fence(Ordering::Acquire);
        }
        is_invalid
    }

    fn word_from_end(&self, record: &Record, back: usize) -> u64 {
        let end = record.at + record.head.bytes();
        self.ground.load(end - 8 * back as u64, Ordering::Relaxed)
    }

    /// Raises the cache file's count of invalidations above every number that was ever used, before
    /// the first user after a reboot installs a new boot stamp. It takes the time of day into
    /// account, because a loss of power may have lost the latest counts.
    pub(in crate::file) fn renew_group_clock(&self, now_ms: u64) {
        // Those of namespaces, and then those of groups: a clock below one of them would revoke every lease in it.
        let words = (self.geometry.clearings..self.geometry.index).step_by(8);
        let known = words.map(|at| self.ground.load(at, Ordering::Relaxed)).max().unwrap_or(0);
        let known = known.max(self.group_clock()).min(u64::MAX / 2);
        self.ground.store(header::GROUP_BASE, known, Ordering::Relaxed);
        let next = (known + SKIPPED_NUMBERS).max(now_ms << NUMBERS_PER_MS_LOG2);
        self.ground.store(header::GROUP_CLOCK, next, Ordering::Relaxed);
    }
}
