//! Censuses: counting all entries.

use std::sync::atomic::Ordering;

use crate::file::area::{Area, OpError, Owner};
use crate::file::format::header;
use crate::file::format::layout::SLOTS;
use crate::file::format::segment::{Live, SegmentKind};
use crate::file::format::slot::Slot;
use crate::file::index::bucket::Bucket;
use crate::file::log::recycler::Recycler;
use crate::file::platform::ground::Ground;
use crate::mutant;

/// The number of attempts to count all entries while other processes change them.
const RECOUNTS: u32 = 4;

/// A counter of a cache file's live entries and their bytes.
#[derive(Debug)]
pub(in crate::file) struct Census<'a, G> {
    area: &'a Area<G>,
}

impl<'a, G: Ground> Census<'a, G> {
    pub(in crate::file) fn of(area: &'a Area<G>) -> Self {
        Self { area }
    }

    /// Returns the number of the cache file's live entries and their bytes from the stored counts
    /// of its segments; `None` if the counts are known to be wrong.
    pub(in crate::file) fn believable_live(&self) -> Option<Live> {
        let deaths = self.area.ground.load(header::DEATHS, Ordering::Relaxed);
        if self.area.ground.load(header::RECOUNTED, Ordering::Relaxed) != deaths {
            return None;
        }
        let (live, numbers) = (self.live(), self.area.geometry.numbers);
        let slots = SLOTS * (u64::from(numbers.buckets) + u64::from(numbers.overflows));
        let is_possible =
            live.entries <= slots && live.bytes <= self.area.geometry.capacity_bytes();
        is_possible.then_some(live)
    }

    /// Returns the number of the cache file's live entries and their bytes (those written since the
    /// last clearing), from the stored counts of its segments.
    pub(in crate::file) fn live(&self) -> Live {
        let epoch = self.area.epoch();
        let mut sum = Live::default();
        for (segment, live) in (0..).zip(self.area.live_sums()) {
            let entry = self.area.entry(segment);
            let is_filled = matches!(
                entry.state().kind,
                SegmentKind::Open | SegmentKind::Sealed | SegmentKind::Recycling
            );
            if is_filled && entry.epoch() == epoch {
                let live = Live::decode(live);
                sum.entries += live.entries;
                sum.bytes += live.bytes;
            }
        }
        sum
    }

    /// Counts the cache file's live entries again, from the index, if a process has died since the
    /// last count or the power was lost: both can leave stored counts wrong. Where another process
    /// holds a lock, or changes a segment during each count, the stored count stays marked as
    /// doubtful.
    pub(in crate::file) fn recount_after_deaths(&self, owner: Owner) {
        let deaths = self.area.ground.load(header::DEATHS, Ordering::Relaxed);
        let recounted = self.area.ground.load(header::RECOUNTED, Ordering::Relaxed);
        let mut is_counted = vec![false; self.area.geometry.numbers.segments as usize];
        for _ in 0..RECOUNTS {
            if self.recount(owner.hurried(), &mut is_counted).is_err() {
                break;
            }
            if is_counted.iter().all(|is_counted| *is_counted) {
                break;
            }
        }
        if is_counted.into_iter().all(|is_counted| is_counted)
            || mutant::is_on("failed-recount-is-noted-as-done")
        {
            // Unless they were invalidated again in the meantime.
            let _ = self.area.ground.exchange(header::RECOUNTED, recounted, deaths);
        }
    }

    /// Returns the number of the cache file's live entries and their bytes like
    /// [`live`](Self::live); where the stored counts may be wrong, it counts slot by slot.
    pub(in crate::file) fn live_for_sure(&self) -> Live {
        let counted = if self.area.verifies_all { None } else { self.believable_live() };
        counted.unwrap_or_else(|| {
            let epoch = self.area.epoch();
            let mut sum = Live::default();
            for bucket in 0..self.area.geometry.numbers.buckets {
                for slot in self.area.slots_of(bucket) {
                    if let Some((segment, bytes)) = self.counting(bucket, slot)
                        && self.area.entry(segment).epoch() == epoch
                    {
                        sum.count(bytes);
                    }
                }
            }
            // Slots that damage makes point to one record count it several times.
            Live { bytes: sum.bytes.min(self.area.geometry.capacity_bytes()), ..sum }
        })
    }

    /// Returns the part of the count that a slot of a bucket makes up: the segment, and the bytes of its
    /// record there.
    fn counting(&self, bucket: u32, slot: Slot) -> Option<(u32, u64)> {
        let segment = self.area.segment_of(slot)?;
        let record = self.area.record(slot, segment)?;
        let counts = !self.area.is_in_doubt(segment)
            || self.area.is_key_at_home(bucket, slot, &record).is_ok_and(|is_at_home| is_at_home);
        counts.then_some((segment, record.head.bytes()))
    }

    /// Counts once, and notes the segments that nobody changed in the meantime.
    fn recount(&self, owner: Owner, is_counted: &mut [bool]) -> Result<(), OpError> {
        let before = self.area.live_sums();
        let mut counted = vec![Live::default(); before.len()];
        for bucket in 0..self.area.geometry.numbers.buckets {
            // The holder of the lock may have counted a slot that it has not written yet.
            let locked = if mutant::is_on("counts-slots-without-their-locks") {
                None
            } else {
                Some(Bucket::lock_number(self.area, owner, bucket)?)
            };
            for slot in self.area.slots_of(bucket) {
                if let Some((segment, bytes)) = self.counting(bucket, slot) {
                    counted[segment as usize].count(bytes);
                }
            }
            drop(locked);
        }
        // Others count as well, and free segments are filled again, but not while this one has the lock.
        let _recycler = Recycler::lock(self.area, owner)?;
        // Nothing has changed since, or it was seen as it was at some moment in between.
        let sums = before.into_iter().zip(self.area.live_sums());
        for (segment, ((before, now), counted)) in (0..).zip(sums.zip(counted)) {
            let is_counted = &mut is_counted[segment as usize];
            if *is_counted || before != now {
                continue;
            }
            *is_counted = true;
            if Live::decode(before) != counted && !self.area.holds_nothing(segment) {
                self.area.correct_live(owner.slot, segment, before, counted);
            }
        }
        Ok(())
    }
}
