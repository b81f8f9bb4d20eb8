//! Live counts: entries of a segment that slots point to, and their bytes.
//!
//! The count of a segment is the sum of its words in several tables, so that processes that write
//! different keys change different lines. All but the last table have one owner at a time.

use std::sync::atomic::Ordering;

use super::{Area, Owner};
use crate::file::format::layout::LIVE_TABLES;
use crate::file::format::segment::Live;
use crate::file::platform::ground::Ground;

impl<G: Ground> Area<G> {
    /// Counts an entry more.
    #[inline]
    pub(in crate::file) fn add_live(&self, me: Owner, segment: u32, bytes: u64) {
        self.change_live(me, segment, Live { entries: 1, bytes }.coming());
    }

    /// Counts an entry less. Before its slot changes: as long as the slot is there, the segment is not
    /// refilled.
    #[inline]
    pub(in crate::file) fn remove_live(&self, me: Owner, segment: u32, bytes: u64) {
        self.change_live(me, segment, Live { entries: 1, bytes }.going());
    }

    #[inline]
    fn change_live(&self, me: Owner, segment: u32, delta: u64) {
        let table = me.place.min(LIVE_TABLES - 1);
        let at = self.geometry.live_word(table, segment);
        if table < LIVE_TABLES - 1 {
            let word = self.ground.load(at, Ordering::Relaxed).wrapping_add(delta);
            self.ground.store(at, word, Ordering::Relaxed);
        } else {
            self.ground.add(at, delta);
        }
    }

    /// The sum of the words of a segment, which [`Live::decode`] reads.
    pub(in crate::file) fn live_sum(&self, segment: u32) -> u64 {
        let word =
            |table| self.ground.load(self.geometry.live_word(table, segment), Ordering::Relaxed);
        (0..LIVE_TABLES).fold(0, |sum, table| sum.wrapping_add(word(table)))
    }

    /// The sums of all segments.
    pub(in crate::file) fn live_sums(&self) -> Vec<u64> {
        (0..self.geometry.numbers.segments).map(|segment| self.live_sum(segment)).collect()
    }

    pub(in crate::file) fn live_of(&self, segment: u32) -> Live {
        Live::decode(self.live_sum(segment))
    }

    /// Makes the count of a segment that this sum had another one. Changes in the meantime, if there
    /// were any, stay counted.
    pub(in crate::file) fn correct_live(&self, me: Owner, segment: u32, sum: u64, live: Live) {
        self.change_live(me, segment, Live::correction(sum, live));
    }
}
