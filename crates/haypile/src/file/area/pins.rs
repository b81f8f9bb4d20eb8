//! Pins: the segments in which processes read values in place.
//!
//! A pin is a lock of the kernel's, which falls with its process. A word in the file counts the pins of
//! each segment, so that nobody has to ask the kernel about all of them. The word is raised after the lock
//! is taken and lowered before it is released: where a process has died, the word is too high, and whoever
//! learns from the kernel that nobody has the segment pinned clears it.

use std::sync::atomic::Ordering;

use super::Area;
use crate::file::platform::ground::{Ground, Line};
use crate::mutant;

/// All processes together pin at most one segment of this number: writers have the others.
const SEGMENTS_PER_PIN: u32 = 4;
/// One process pins at most one segment of this number.
const SEGMENTS_PER_PIN_OF_A_PROCESS: u32 = 8;

/// The words of a line of the table.
const WORDS_PER_LINE: u32 = 8;

/// The counts of pins (readers that use values in the mapped file without copying them) of each
/// segment of the cache file.
#[derive(Debug)]
pub(in crate::file) struct PinCounts<'a, G> {
    area: &'a Area<G>,
}

impl<'a, G: Ground> PinCounts<'a, G> {
    pub(in crate::file) fn of(area: &'a Area<G>) -> Self {
        Self { area }
    }

    /// Returns the largest number of segments of the cache file that all processes together may
    /// protect for reading values in place.
    pub(in crate::file) fn most(&self) -> u32 {
        self.area.geometry.numbers.segments / SEGMENTS_PER_PIN
    }

    /// Returns the largest number of segments of the cache file that one process may protect for
    /// reading values in place.
    pub(in crate::file) fn most_of_a_process(&self) -> u32 {
        self.area.geometry.numbers.segments / SEGMENTS_PER_PIN_OF_A_PROCESS
    }

    /// Counts one more reader of values in place in a segment that this process has locked for
    /// that; returns whether the reader was counted: it is not if too many segments are in such
    /// use.
    pub(in crate::file) fn count(&self, segment: u32) -> bool {
        let is_first = self.area.ground.add(self.area.geometry.pin_word(segment), 1) == 0;
        if !is_first || mutant::is_on("pins-of-all-are-not-bounded") {
            return true;
        }
        // Of two that count at the same time, at least one sees both.
        self.area.ground.fence(Ordering::SeqCst);
        let sum = |pinned: Vec<u32>| pinned.iter().map(|it| self.area.run_length(*it)).sum::<u32>();
        let has_room = sum(self.counted()) <= self.most() || sum(self.pinned()) <= self.most();
        if !has_room {
            self.uncount(segment);
        }
        has_room
    }

    /// Subtracts one from the count of readers that read values in place in a segment, before the
    /// segment's read lock is released.
    pub(in crate::file) fn uncount(&self, segment: u32) {
        self.area.ground.add(self.area.geometry.pin_word(segment), u64::MAX);
    }

    /// Returns the segments of the cache file in which processes read values in place now; for a
    /// value longer than a segment, its first segment.
    pub(in crate::file) fn pinned(&self) -> Vec<u32> {
        if mutant::is_on("pins-ignored") {
            return Vec::new();
        }
        let mut pinned = self.counted();
        pinned.retain(|segment| {
            let at = self.area.geometry.pin_word(*segment);
            let count = self.area.ground.load(at, Ordering::Relaxed);
            let is_pinned = self.area.ground.is_pinned(*segment);
            if !is_pinned && !mutant::is_on("pins-of-the-dead-count") {
                // Unless somebody has counted another pin since.
                let _ = self.area.ground.exchange(at, count, 0);
            }
            is_pinned || mutant::is_on("pins-of-the-dead-count")
        });
        pinned
    }

    /// Returns the segments whose pins are counted, those of dead processes included.
    fn counted(&self) -> Vec<u32> {
        let segments = self.area.geometry.numbers.segments;
        let mut pinned = Vec::new();
        for first in (0..segments).step_by(WORDS_PER_LINE as usize) {
            let line = self.area.ground.line(self.area.geometry.pin_word(first));
            let in_line = first..segments.min(first + WORDS_PER_LINE);
            let counts = in_line.zip((0..).step_by(8));
            let counted = counts.filter(|(_, at)| line.load(*at, Ordering::Relaxed) > 0);
            pinned.extend(counted.map(|(segment, _)| segment));
        }
        pinned
    }
}
