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
use crate::file::index::chain::slots_of_line;
use crate::file::platform::ground::{Ground, IN_ORDER};
use crate::mutant;

/// Records that one write walks over at most.
const RECORDS_AT_ONCE: u32 = 16_384;
/// Buckets that one write reads at most.
const BUCKETS_AT_ONCE: u32 = 2_048;
/// A process that has not gone on with a sweep while another opened this many segments is relieved
/// of it.
const PATIENCE: u32 = 64;
/// Places in a segment from which walking can begin again.
const ANCHORS: u64 = 1_024;

impl<G: Ground> Area<G> {
    /// Does a part of the sweep, if this process should. What fails is tried again later.
    pub(in crate::file) fn sweep_on(&self, owner: Owner) {
        let Some(mut state) = self.sweep.try_lock() else {
            return;
        };
        if self.is_swept() {
            *state = SweepState::default();
        } else if self.may_sweep(owner, &mut state) {
            let _ = self.sweep_part(owner, &mut state);
        }
    }

    /// Whether this process sweeps, or takes that over now.
    fn may_sweep(&self, owner: Owner, state: &mut SweepState) -> bool {
        let word = LockWord(self.ground.load(header::SWEEPER, Ordering::Relaxed));
        if state.owner == Some(word.token()) {
            let next = LockWord::new(word.token(), word.payload().wrapping_add(1));
            return self.ground.exchange(header::SWEEPER, word.0, next.0).is_ok();
        }
        if state.owner.is_some() {
            // Another process has taken it over.
            *state = SweepState::default();
        }
        if self.is_alive(word.token()) {
            state.times = if state.seen == word.0 { state.times + 1 } else { 0 };
            state.seen = word.0;
            if state.times < PATIENCE {
                return false;
            }
        }
        let own = LockWord::new(owner.token, 0);
        let is_taken = self.ground.exchange(header::SWEEPER, word.0, own.0).is_ok();
        *state = SweepState { owner: is_taken.then_some(owner.token), ..SweepState::default() };
        is_taken
    }

    fn sweep_part(&self, owner: Owner, state: &mut SweepState) -> Result<(), OpError> {
        match state.phase {
            Phase::Begin => {
                self.seal_earlier(owner)?;
                let segments = self.geometry.numbers.segments as usize;
                state.chains.resize_with(segments, || None);
                state.phase = Phase::Walk { segment: 0, at: 0 };
            }
            Phase::Walk { segment, at } => {
                state.phase = self.walk_on(&mut state.chains, segment, at);
            }
            Phase::Read { bucket } => {
                let end = self.geometry.numbers.buckets.min(bucket.saturating_add(BUCKETS_AT_ONCE));
                for bucket in bucket..end {
                    self.sweep_bucket(owner, bucket, &state.chains)?;
                    state.phase = Phase::Read { bucket: bucket + 1 };
                }
                if end == self.geometry.numbers.buckets {
                    self.end_sweep(owner)?;
                    *state = SweepState::default();
                }
            }
        }
        Ok(())
    }

    /// Seals what an earlier stamp left open: its records are those that it has now.
    fn seal_earlier(&self, owner: Owner) -> Result<(), OpError> {
        let _recycler = self.lock_recycler(owner)?;
        for lane in 0..self.geometry.numbers.lanes {
            let Some(mut held) = self.lock_if_free(owner, self.geometry.lane(lane)) else {
                return Err(OpError::Busy(Holder::Running));
            };
            let named = self.segment_named(held.payload());
            if named.is_some_and(|segment| self.origin(segment) == Origin::Earlier) {
                self.empty_lane(&mut held);
            }
        }
        // A spare one that a process left when it died.
        let all = 0..self.geometry.numbers.segments;
        all.filter(|it| self.origin(*it) == Origin::Earlier).for_each(|it| self.seal(it));
        crash::point("sweep.sealed");
        Ok(())
    }

    /// Walks over some records.
    fn walk_on(&self, chains: &mut [Option<Chain>], mut segment: u32, mut at: u64) -> Phase {
        let grain = self.grain_bytes();
        let mut left = RECORDS_AT_ONCE;
        while segment < self.geometry.numbers.segments {
            let entry = self.entry(segment);
            let state = entry.state();
            let is_walked = self.origin(segment) == Origin::Earlier
                && matches!(state.kind, SegmentKind::Sealed | SegmentKind::Recycling);
            // Of a run, the first record is the only one.
            let end =
                if state.run > 1 { 1 } else { entry.used().min(self.geometry.segment_bytes()) };
            if is_walked {
                let chain = chains[segment as usize].get_or_insert_with(|| Chain {
                    generation: entry.generation(),
                    end,
                    anchors: vec![u32::MAX; usize::try_from(ANCHORS).expect("few")],
                });
                while at < end {
                    if left == 0 {
                        return Phase::Walk { segment, at };
                    }
                    let Some(record) = self.record_at(segment, at) else {
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
        (self.geometry.segment_bytes() / ANCHORS).max(8)
    }

    /// Empties slots of a bucket that lead nowhere, with what they hide.
    fn sweep_bucket(
        &self,
        owner: Owner,
        bucket: u32,
        chains: &[Option<Chain>],
    ) -> Result<(), OpError> {
        let mut has_strays = false;
        for slot in self.slots_of(bucket) {
            has_strays |= self.is_stray(bucket, slot, chains)?;
        }
        if !has_strays || mutant::is_on("nothing-is-swept") {
            return Ok(());
        }
        let number = bucket;
        let mut bucket = self.lock_bucket_number(owner, number)?;
        let slots: Vec<u64> = bucket.lines().flat_map(slots_of_line).collect();
        for at in slots.into_iter().rev() {
            let slot = self.slot(at);
            if !slot.is_empty() && self.is_stray(number, slot, chains)? {
                bucket.drop_hidden(at, slot)?;
                bucket.put(at, Slot::EMPTY);
                crash::point("sweep.emptied");
            }
        }
        bucket.shrink();
        drop(bucket);
        self.invalidate_counts();
        Ok(())
    }

    /// Whether a slot leads to no record that is found when its segment is recycled.
    fn is_stray(&self, bucket: u32, slot: Slot, chains: &[Option<Chain>]) -> Result<bool, OpError> {
        let Some(segment) = self.segment_of(slot) else {
            return Ok(true);
        };
        let entry = self.entry(segment);
        if entry.epoch() != self.epoch() {
            return Ok(true);
        }
        if self.holds_nothing(segment) {
            return Ok(true);
        }
        match (self.origin(segment), &chains[segment as usize]) {
            (Origin::Sure, _) => Ok(false),
            (Origin::Doubtful, _) => Ok(!self.is_at_home(bucket, slot, segment)?),
            // What has another generation was freed since it was walked.
            (Origin::Earlier, Some(chain)) if entry.generation() == chain.generation => {
                match self.record(slot, segment).filter(|record| self.is_on(chain, record)) {
                    Some(record) => Ok(!self.is_key_at_home(bucket, slot, &record)?),
                    None => Ok(true),
                }
            }
            (Origin::Earlier, _) => Ok(true),
        }
    }

    /// Whether walking comes to a record.
    fn is_on(&self, chain: &Chain, record: &Record) -> bool {
        let offset = record.at - self.geometry.segment_start(record.segment);
        if offset >= chain.end {
            return false;
        }
        let part = usize::try_from(offset / self.grain_bytes()).expect("fewer than anchors");
        let mut at = u64::from(chain.anchors[part]) * 8;
        while at < offset {
            let Some(before) = self.record_at(record.segment, at) else {
                return false;
            };
            at += before.head.bytes();
        }
        at == offset
    }

    /// From here on, what is written is not in doubt.
    fn end_sweep(&self, owner: Owner) -> Result<(), OpError> {
        let _recycler = self.lock_recycler(owner)?;
        for segment in 0..self.geometry.numbers.segments {
            if self.origin(segment) == Origin::Doubtful {
                self.entry(segment).set_sure(self.stamp);
            }
        }
        crash::point("sweep.sure");
        // A stamp that was installed since is not swept.
        if self.ground.load(header::STAMP, Ordering::Relaxed) == self.stamp {
            self.ground.store(header::SWEPT, self.stamp, IN_ORDER);
        }
        self.ground.store(header::SWEEPER, 0, IN_ORDER);
        Ok(())
    }
}
