//! The slots of a bucket: those of its own line, and of the overflow lines that it goes on in.

#![expect(clippy::similar_names, reason = "a line, and the link to it")]

use std::sync::atomic::Ordering;

use crate::file::area::Area;
use crate::file::format::layout::SLOTS;
use crate::file::format::slot::{LockWord, Slot, Token};
use crate::file::platform::ground::{Ground, Line};
use crate::mutant;

/// The highest number of 64-byte lines of an index bucket; more mean that damage has linked the
/// lines in a loop.
pub(in crate::file) const MOST_LINES: usize = 64;

impl<G: Ground> Area<G> {
    #[inline]
    pub(in crate::file) fn slot(&self, at: u64) -> Slot {
        Slot(self.ground.load(at, mutant::order("slot-read", Ordering::Acquire)))
    }

    /// Returns the link from an index bucket's own line to its first overflow line; 0 if there is
    /// none.
    pub(in crate::file) fn link_of(&self, bucket: u32) -> u32 {
        link_in(self.ground.line(self.geometry.bucket(bucket)))
    }

    /// Returns the offset and the first word of the overflow line that a link names, if that line
    /// exists and belongs to the index bucket.
    pub(in crate::file) fn follow(&self, bucket: u32, link: u32) -> Option<(u64, LockWord)> {
        let line = link.checked_sub(1).filter(|line| *line < self.geometry.numbers.overflows)?;
        let at = self.geometry.overflow_line(line);
        // Who sees a link sees that the line was emptied before.
        let order = mutant::order("link-read", Ordering::Acquire);
        let word = LockWord(self.ground.load(at, order));
        let is_own = word.token() == Token(bucket + 1) || mutant::is_on("owner-of-lines-ignored");
        is_own.then_some((at, word))
    }

    /// Returns the offset in the cache file of each 64-byte line of an index bucket, its own line
    /// first.
    pub(in crate::file) fn lines(
        &self,
        bucket: u32,
        link: u32,
    ) -> impl Iterator<Item = u64> + use<'_, G> {
        let first = (self.geometry.bucket(bucket), link);
        let next = move |&(_, link): &(u64, u32)| {
            self.follow(bucket, link).map(|(at, word)| (at, word.payload()))
        };
        std::iter::successors(Some(first), next).map(|(at, _)| at).take(MOST_LINES)
    }

    /// Calls `look` with each slot of an index bucket and the slot's offset, until it returns a
    /// result, and returns that; `None` if it returns none. Without the bucket's lock, slots may
    /// move concurrently, and a scan can miss one.
    #[inline]
    pub(in crate::file) fn scan<T>(
        &self,
        bucket: u32,
        link: u32,
        mut look: impl FnMut(u64, Slot) -> Option<T>,
    ) -> Option<T> {
        // Loops rather than the iterator of lines, which the compiler leaves as calls for each slot.
        let (mut at, mut next) = (self.geometry.bucket(bucket), link);
        for _ in 0..MOST_LINES {
            let line = self.ground.line(at);
            for word in slots_of_line(0) {
                if let Some(answer) = look(at + word, slot_in(line, word)) {
                    return Some(answer);
                }
            }
            let (follower, word) = self.follow(bucket, next)?;
            (at, next) = (follower, word.payload());
        }
        None
    }

    /// Returns the slots of an index bucket that are not empty, without its lock. If damage has
    /// linked lines in a loop, each slot is returned once.
    pub(in crate::file) fn slots_of(&self, bucket: u32) -> Vec<Slot> {
        let (mut slots, mut walked) = (Vec::new(), Vec::new());
        for line in self.lines(bucket, self.link_of(bucket)) {
            if walked.contains(&line) && !mutant::is_on("lines-counted-twice") {
                break;
            }
            walked.push(line);
            let found = slots_of_line(line).map(|at| self.slot(at));
            slots.extend(found.filter(|slot| !slot.is_empty()));
        }
        slots
    }
}

/// Reads the link to the first overflow line from an index bucket's own line.
#[inline]
pub(in crate::file) fn link_in(line: impl Line) -> u32 {
    LockWord(line.load(0, mutant::order("first-link-read", Ordering::Acquire))).payload()
}

/// Reads the index slot at an offset in a 64-byte line of the index.
#[inline]
pub(in crate::file) fn slot_in(line: impl Line, word: u64) -> Slot {
    Slot(line.load(word, mutant::order("slot-read", Ordering::Acquire)))
}

/// Returns the offset of each slot of the 64-byte index line at this offset.
#[inline]
pub(in crate::file) fn slots_of_line(line: u64) -> impl Iterator<Item = u64> + Clone {
    // After the word of the lock, or of the owner.
    (0..SLOTS).map(move |number| line + 8 + 8 * number)
}
