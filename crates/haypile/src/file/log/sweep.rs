//! Sweeping the index once under a new stamp: afterwards no slot leads anywhere by accident, and what
//! is written from then on need not be verified when it is read.
//!
//! A write that opens a segment does a small part of it, so that no operation waits for all of it.
//! One process sweeps at a time, and keeps what it knows in its own memory: if it ends, or does
//! nothing for a while, another one starts again. A file that is never swept is right as well, and
//! slower to read.
//!
//! First every segment of an earlier stamp is walked, record by record, as recycling will walk it.
//! Then every slot of the index is read: one that leads to such a segment has to lead to a record
//! that walking finds, and that is of its bucket and tag; one that leads to a segment that was
//! filled in the meantime, to a whole record. Others are emptied, with what they hide. So when a
//! segment is recycled later, walking finds every slot that leads there.

use std::sync::atomic::Ordering;

use crate::file::area::sweep::{Chain, Phase, SweepState};
use crate::file::area::{Area, Holder, OpError, Owner, Record};
use crate::file::crash;
use crate::file::format::header;
use crate::file::format::segment::{Origin, SegmentKind};
use crate::file::format::slot::{LockWord, Slot};
use crate::file::index::bucket::Bucket;
use crate::file::index::chain::slots_of_line;
use crate::file::log::lane::{Lanes, LockedLane};
use crate::file::log::recycler::Recycler;
use crate::file::platform::ground::{Ground, IN_ORDER};
use crate::mutant;
use crate::sync::MutexGuard;

/// Records that one write walks over at most.
const RECORDS_AT_ONCE: u32 = 16_384;
/// Buckets that one write reads at most.
const BUCKETS_AT_ONCE: u32 = 2_048;
/// A process that has not gone on with a sweep while another opened this many segments is relieved
/// of it.
const PATIENCE: u32 = 64;
/// Places in a segment from which walking can begin again.
const ANCHORS: u64 = 1_024;

/// The right of one thread to do this process's part of the sweep, the pass that verifies the index
/// of a cache file after a reboot.
#[derive(Debug)]
pub(in crate::file) struct Sweeper<'a, G> {
    area: &'a Area<G>,
    owner: Owner,
    state: MutexGuard<'a, SweepState>,
}

impl<'a, G: Ground> Sweeper<'a, G> {
    /// Returns the right to do this process's part of verifying the index after a reboot; `None` if
    /// another of its threads has that right.
    pub(in crate::file) fn of(area: &'a Area<G>, owner: Owner) -> Option<Self> {
        Some(Self { area, owner, state: area.sweep.try_lock()? })
    }

    /// Verifies some more segments or index buckets after a reboot, if no other process is doing
    /// so. Failures are retried later.
    pub(in crate::file) fn sweep_on(mut self) {
        if self.area.is_swept() {
            *self.state = SweepState::default();
        } else if self.may_sweep() {
            let _ = self.sweep_part();
        }
    }

    /// Returns whether this process sweeps, or takes that over now.
    fn may_sweep(&mut self) -> bool {
        let Self { area, owner, state } = self;
        let word = LockWord(area.ground.load(header::SWEEPER, Ordering::Relaxed));
        if state.owner == Some(word.token()) {
            let next = LockWord::new(word.token(), word.payload().wrapping_add(1));
            return area.ground.exchange(header::SWEEPER, word.0, next.0).is_ok();
        }
        if state.owner.is_some() {
            // Another process has taken it over.
            **state = SweepState::default();
        }
        if area.is_alive(word.token()) {
            state.times = if state.seen == word.0 { state.times + 1 } else { 0 };
            state.seen = word.0;
            if state.times < PATIENCE {
                return false;
            }
        }
        let own = LockWord::new(owner.token, 0);
        let is_taken = area.ground.exchange(header::SWEEPER, word.0, own.0).is_ok();
        **state = SweepState { owner: is_taken.then_some(owner.token), ..SweepState::default() };
        is_taken
    }

    fn sweep_part(&mut self) -> Result<(), OpError> {
        match self.state.phase {
            Phase::Begin => {
                self.seal_earlier()?;
                let segments = self.area.geometry.numbers.segments as usize;
                self.state.chains.resize_with(segments, || None);
                self.state.phase = Phase::Walk { segment: 0, at: 0 };
            }
            Phase::Walk { segment, at } => {
                self.state.phase = self.walk_on(segment, at);
            }
            Phase::Read { bucket } => {
                let end =
                    self.area.geometry.numbers.buckets.min(bucket.saturating_add(BUCKETS_AT_ONCE));
                for bucket in bucket..end {
                    self.sweep_bucket(bucket)?;
                    self.state.phase = Phase::Read { bucket: bucket + 1 };
                }
                if end == self.area.geometry.numbers.buckets {
                    self.end()?;
                    *self.state = SweepState::default();
                }
            }
        }
        Ok(())
    }

    /// Seals what an earlier stamp left open: its records are those that it has now.
    fn seal_earlier(&self) -> Result<(), OpError> {
        let _recycler = Recycler::lock(self.area, self.owner)?;
        for lane in Lanes::of(self.area).numbers() {
            let Some(mut lane) = LockedLane::lock_if_free(self.area, self.owner, lane) else {
                return Err(OpError::Busy(Holder::Running));
            };
            if lane.segment().is_some_and(|it| self.area.origin(it) == Origin::Earlier) {
                lane.empty();
            }
        }
        // A spare one that a process left when it died.
        let all = 0..self.area.geometry.numbers.segments;
        all.filter(|it| self.area.origin(*it) == Origin::Earlier)
            .for_each(|it| self.area.entry(it).seal());
        crash::point("sweep.sealed");
        Ok(())
    }

    /// Walks over some records.
    fn walk_on(&mut self, mut segment: u32, mut at: u64) -> Phase {
        let grain = self.grain_bytes();
        let mut left = RECORDS_AT_ONCE;
        while segment < self.area.geometry.numbers.segments {
            let entry = self.area.entry(segment);
            let state = entry.state();
            let is_walked = self.area.origin(segment) == Origin::Earlier
                && matches!(state.kind, SegmentKind::Sealed | SegmentKind::Recycling);
            // Of a run, the first record is the only one.
            let end = if state.run > 1 {
                1
            } else {
                entry.used().min(self.area.geometry.segment_bytes())
            };
            if is_walked {
                let chain = self.state.chains[segment as usize].get_or_insert_with(|| Chain {
                    generation: entry.generation(),
                    end,
                    anchors: vec![u32::MAX; usize::try_from(ANCHORS).expect("few")],
                });
                while at < end {
                    if left == 0 {
                        return Phase::Walk { segment, at };
                    }
                    let Some(record) = self.area.record_at(segment, at) else {
                        break;
                    };
                    let part = usize::try_from(at / grain).expect("fewer than anchors");
                    let unit = u32::try_from(at / 8).expect("segments are below 32 GiB");
                    let anchor = &mut chain.anchors[part];
                    *anchor = (*anchor).min(unit);
                    at += record.head.bytes();
                    left -= 1;
                }
            }
            (segment, at) = (segment + 1, 0);
            left = left.saturating_sub(16);
            if left == 0 {
                return Phase::Walk { segment, at };
            }
        }
        Phase::Read { bucket: 0 }
    }

    fn grain_bytes(&self) -> u64 {
        (self.area.geometry.segment_bytes() / ANCHORS).max(8)
    }

    /// Empties slots of a bucket that lead nowhere, with what they hide.
    fn sweep_bucket(&self, bucket: u32) -> Result<(), OpError> {
        let mut has_strays = false;
        for slot in self.area.slots_of(bucket) {
            has_strays |= self.is_stray(bucket, slot)?;
        }
        if !has_strays || mutant::is_on("nothing-is-swept") {
            return Ok(());
        }
        let number = bucket;
        let mut bucket = Bucket::lock_number(self.area, self.owner, number)?;
        let slots: Vec<u64> = bucket.lines().flat_map(slots_of_line).collect();
        for at in slots.into_iter().rev() {
            let slot = self.area.slot(at);
            if !slot.is_empty() && self.is_stray(number, slot)? {
                bucket.drop_hidden(at, slot)?;
                bucket.put(at, Slot::EMPTY);
                crash::point("sweep.emptied");
            }
        }
        bucket.shrink();
        drop(bucket);
        self.area.invalidate_counts();
        Ok(())
    }

    /// Returns whether a slot leads to no record that is found when its segment is recycled.
    fn is_stray(&self, bucket: u32, slot: Slot) -> Result<bool, OpError> {
        let Some(segment) = self.area.segment_of(slot) else {
            return Ok(true);
        };
        let entry = self.area.entry(segment);
        if entry.epoch() != self.area.epoch() {
            return Ok(true);
        }
        if self.area.holds_nothing(segment) {
            return Ok(true);
        }
        match (self.area.origin(segment), &self.state.chains[segment as usize]) {
            (Origin::Sure, _) => Ok(false),
            (Origin::Doubtful, _) => Ok(!self.area.is_at_home(bucket, slot, segment)?),
            // What has another generation was freed since it was walked.
            (Origin::Earlier, Some(chain)) if entry.generation() == chain.generation => {
                match self.area.record(slot, segment).filter(|record| self.is_on(chain, record)) {
                    Some(record) => Ok(!self.area.is_key_at_home(bucket, slot, &record)?),
                    None => Ok(true),
                }
            }
            (Origin::Earlier, _) => Ok(true),
        }
    }

    /// Returns whether walking comes to a record.
    fn is_on(&self, chain: &Chain, record: &Record) -> bool {
        let offset = record.at - self.area.geometry.segment_start(record.segment);
        if offset >= chain.end {
            return false;
        }
        let part = usize::try_from(offset / self.grain_bytes()).expect("fewer than anchors");
        let mut at = u64::from(chain.anchors[part]) * 8;
        while at < offset {
            let Some(before) = self.area.record_at(record.segment, at) else {
                return false;
            };
            at += before.head.bytes();
        }
        at == offset
    }

    /// From here on, what is written is not in doubt.
    fn end(&self) -> Result<(), OpError> {
        let _recycler = Recycler::lock(self.area, self.owner)?;
        for segment in 0..self.area.geometry.numbers.segments {
            if self.area.origin(segment) == Origin::Doubtful {
                self.area.entry(segment).set_sure(self.area.stamp);
            }
        }
        crash::point("sweep.sure");
        // A stamp that was installed since is not swept.
        if self.area.ground.load(header::STAMP, Ordering::Relaxed) == self.area.stamp {
            self.area.ground.store(header::SWEPT, self.area.stamp, IN_ORDER);
        }
        self.area.ground.store(header::SWEEPER, 0, IN_ORDER);
        Ok(())
    }
}
