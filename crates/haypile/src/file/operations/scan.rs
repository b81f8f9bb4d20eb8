//! Operations on all entries: counting, going through keys, clearing.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use crate::file::area::{Area, Key, OpError, Owner};
use crate::file::format::header;
use crate::file::format::layout::SLOTS;
use crate::file::format::segment::{Live, SegmentKind};
use crate::file::format::slot::Slot;
use crate::file::platform::ground::{Ground, IN_ORDER};
use crate::mutant;

/// The number of attempts to count all entries while other processes change them.
const RECOUNTS: u32 = 4;

impl<G: Ground> Area<G> {
    /// Entries and bytes of all segments of this epoch, as they are counted. `None` where the counts
    /// are known to be wrong, or cannot be right.
    pub(in crate::file) fn believable_live(&self) -> Option<Live> {
        let deaths = self.ground.load(header::DEATHS, Ordering::Relaxed);
        if self.ground.load(header::RECOUNTED, Ordering::Relaxed) != deaths {
            return None;
        }
        let (live, numbers) = (self.live(), self.geometry.numbers);
        let slots = SLOTS * (u64::from(numbers.buckets) + u64::from(numbers.overflows));
        let is_possible = live.entries <= slots && live.bytes <= self.geometry.capacity_bytes();
        is_possible.then_some(live)
    }

    /// Entries and bytes of all segments of this epoch.
    pub(in crate::file) fn live(&self) -> Live {
        let epoch = self.epoch();
        let mut sum = Live::default();
        for (segment, live) in (0..).zip(self.live_sums()) {
            let entry = self.entry(segment);
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

    /// Counts again what slots point to, for a process has died since that was done: each death can
    /// leave a count off by one. A loss of power leaves any counts. Where a process is in the way, or others
    /// change a segment each time that it is counted, the counts stay in doubt.
    pub(in crate::file) fn recount_after_deaths(&self, owner: Owner) {
        let deaths = self.ground.load(header::DEATHS, Ordering::Relaxed);
        let recounted = self.ground.load(header::RECOUNTED, Ordering::Relaxed);
        let mut is_counted = vec![false; self.geometry.numbers.segments as usize];
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
            let _ = self.ground.exchange(header::RECOUNTED, recounted, deaths);
        }
    }

    /// As [`live`](Self::live); where the counts are wrong, or may be, counted slot by slot.
    pub(in crate::file) fn live_for_sure(&self) -> Live {
        let counted = if self.verifies_all { None } else { self.believable_live() };
        counted.unwrap_or_else(|| {
            let epoch = self.epoch();
            let mut sum = Live::default();
            for bucket in 0..self.geometry.numbers.buckets {
                for slot in self.slots_of(bucket) {
                    if let Some((segment, bytes)) = self.counting(bucket, slot)
                        && self.entry(segment).epoch() == epoch
                    {
                        sum.count(bytes);
                    }
                }
            }
            // Slots that damage makes point to one record count it several times.
            Live { bytes: sum.bytes.min(self.geometry.capacity_bytes()), ..sum }
        })
    }

    /// The part of the count that a slot of a bucket makes up: the segment, and the bytes of its
    /// record there.
    fn counting(&self, bucket: u32, slot: Slot) -> Option<(u32, u64)> {
        let segment = self.segment_of(slot)?;
        let record = self.record(slot, segment)?;
        let counts = !self.is_in_doubt(segment)
            || self.is_key_at_home(bucket, slot, &record).is_ok_and(|is_at_home| is_at_home);
        counts.then_some((segment, record.head.bytes()))
    }

    /// Counts once, and notes the segments that nobody changed in the meantime.
    fn recount(&self, owner: Owner, is_counted: &mut [bool]) -> Result<(), OpError> {
        let before = self.live_sums();
        let mut counted = vec![Live::default(); before.len()];
        for bucket in 0..self.geometry.numbers.buckets {
            // The holder of the lock may have counted a slot that it has not written yet.
            let locked = if mutant::is_on("counts-slots-without-their-locks") {
                None
            } else {
                Some(self.lock_bucket_number(owner, bucket)?)
            };
            for slot in self.slots_of(bucket) {
                if let Some((segment, bytes)) = self.counting(bucket, slot) {
                    counted[segment as usize].count(bytes);
                }
            }
            drop(locked);
        }
        // Others count as well, and free segments are filled again, but not while this one has the lock.
        let _recycler = self.lock_recycler(owner)?;
        // Nothing has changed since, or it was seen as it was at some moment in between.
        let sums = before.into_iter().zip(self.live_sums());
        for (segment, ((before, now), counted)) in (0..).zip(sums.zip(counted)) {
            let is_counted = &mut is_counted[segment as usize];
            if *is_counted || before != now {
                continue;
            }
            *is_counted = true;
            if Live::decode(before) != counted && !self.holds_nothing(segment) {
                self.correct_live(owner, segment, before, counted);
            }
        }
        Ok(())
    }

    /// The keys of a bucket that have not expired.
    pub(in crate::file) fn keys_of(
        &self,
        bucket: u32,
        now_ms: u64,
    ) -> Result<Vec<(Vec<u8>, bool)>, OpError> {
        let mut keys = Vec::new();
        for slot in self.slots_of(bucket) {
            let Some(segment) = self.segment_of(slot) else {
                continue;
            };
            let entry = self.entry(segment);
            let generation = entry.generation();
            let Some(record) = self.live_record(slot, self.epoch()) else {
                continue;
            };
            let head = record.head;
            let mut bytes = Vec::new();
            self.copy_key(&record, &mut bytes)?;
            if entry.generation_after() != generation {
                continue;
            }
            // Found as anybody would find it: what this slot showed may be damaged, or of the past.
            let key: Key<'_> = self.key(&bytes, head.has_namespace());
            if let crate::file::operations::read::Search::Found(seen) = self.search(&key, None)?
                && seen.expires_ms > now_ms
                && !keys.contains(&(bytes.clone(), head.has_namespace()))
            {
                keys.push((bytes, head.has_namespace()));
            }
        }
        Ok(keys)
    }

    /// Makes all that was written before invisible.
    pub(in crate::file) fn clear(&self, owner: Owner) -> Result<(), OpError> {
        let _recycler = self.lock_recycler(owner)?;
        let epochs = (0..self.geometry.numbers.segments).map(|segment| self.entry(segment).epoch());
        // A loss of power can leave segments of a later epoch than the header's; damage, of the last.
        let epochs: HashSet<u64> = epochs.chain([self.epoch()]).collect();
        let next = epochs.iter().max().and_then(|latest| latest.checked_add(1));
        let next = next.or_else(|| (1..u64::MAX).find(|epoch| !epochs.contains(epoch)));
        let next = next.expect("there are more numbers than segments");
        self.ground.store(header::EPOCH, next, IN_ORDER);
        crate::file::crash::point("clear.risen");
        if mutant::is_on("clear-leaves-the-lanes") {
            return Ok(());
        }
        for lane in 0..self.geometry.numbers.lanes {
            // What is open is of the old epoch, and nothing is appended to it any more.
            if let Some(mut held) = self.lock_if_free(owner, self.geometry.lane(lane)) {
                held.set_payload(0);
            }
        }
        Ok(())
    }
}
