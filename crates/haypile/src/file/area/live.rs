//! Live counts: the numbers of a segment's entries that slots point to, and of their bytes.
//!
//! The count of a segment is the sum of its words in several tables, so that processes that write
//! different keys change different lines. All but the last table have one owner at a time.

use std::sync::atomic::Ordering;

use super::Area;
use crate::file::format::layout::LIVE_TABLES;
use crate::file::format::segment::Live;
use crate::file::platform::ground::{Ground, Line};

/// The segments whose words are in a line of a table.
const SEGMENTS_PER_LINE: u32 = 8;

impl<G: Ground> Area<G> {
    /// Adds one entry of this length to the cache file's count of live entries in a segment.
    #[inline]
    pub(in crate::file) fn add_live(&self, owner_slot: u32, segment: u32, bytes: u64) {
        self.change_live(owner_slot, segment, Live { entries: 1, bytes }.coming());
    }

    /// Subtracts one entry of this length from the cache file's count of live entries in a segment.
    /// To be called before the entry's index slot changes, because a segment with live slots is not
    /// refilled.
    #[inline]
    pub(in crate::file) fn remove_live(&self, owner_slot: u32, segment: u32, bytes: u64) {
        self.change_live(owner_slot, segment, Live { entries: 1, bytes }.going());
    }

    #[inline]
    fn change_live(&self, owner_slot: u32, segment: u32, delta: u64) {
        let table = owner_slot.min(LIVE_TABLES - 1);
        let at = self.geometry.live_word(table, segment);
        if table < LIVE_TABLES - 1 {
            let word = self.ground.load(at, Ordering::Relaxed).wrapping_add(delta);
            self.ground.store(at, word, Ordering::Relaxed);
        } else {
            self.ground.add(at, delta);
        }
    }

    /// Returns the count of live entries in a segment of the cache file, summed over all counter
    /// words and still encoded, for [`Live::decode`].
    pub(in crate::file) fn live_sum(&self, segment: u32) -> u64 {
        let word = |table| self.geometry.live_word(table, segment);
        let words = (0..LIVE_TABLES).map(|table| self.ground.load(word(table), Ordering::Relaxed));
        words.fold(0, u64::wrapping_add)
    }

    /// Returns the counts of live entries in all segments of the cache file, each encoded in one
    /// word.
    pub(in crate::file) fn live_sums(&self) -> Vec<u64> {
        let segments = self.geometry.numbers.segments;
        let lines = segments.div_ceil(SEGMENTS_PER_LINE);
        let mut sums = vec![0_u64; (lines * SEGMENTS_PER_LINE) as usize];
        for table in 0..LIVE_TABLES {
            for (number, sums) in (0..lines).zip(sums.chunks_exact_mut(SEGMENTS_PER_LINE as usize))
            {
                let line = self.geometry.live_word(table, number * SEGMENTS_PER_LINE);
                let line = self.ground.line(line);
                for (at, sum) in (0..).step_by(8).zip(sums) {
                    *sum = sum.wrapping_add(line.load(at, Ordering::Relaxed));
                }
            }
        }
        sums.truncate(segments as usize);
        sums
    }

    pub(in crate::file) fn live_of(&self, segment: u32) -> Live {
        Live::decode(self.live_sum(segment))
    }

    /// Corrects the cache file's count of live entries in a segment to `live`, given that the
    /// encoded count was `sum`. Concurrent changes stay counted.
    pub(in crate::file) fn correct_live(
        &self,
        owner_slot: u32,
        segment: u32,
        sum: u64,
        live: Live,
    ) {
        self.change_live(owner_slot, segment, Live::correction(sum, live));
    }
}
