//! Emptying segments, so that they can be refilled. All under the recycler's lock.

use std::sync::atomic::Ordering;

use crate::file::area::{Key, OpError, Record};
use crate::file::crash;
use crate::file::format::counter::Counter;
use crate::file::format::layout::LINE_BYTES;
use crate::file::format::owner_slot::HAZARD;
use crate::file::format::segment::{MAIN, Origin, SegmentKind, State};
use crate::file::format::slot::Slot;
use crate::file::log::append::{Appended, Draft};
use crate::file::log::recycler::Recycler;
use crate::file::log::reserve::Reserve;
use crate::file::log::survey::{Cause, queue_of};
use crate::file::platform::ground::Ground;
use crate::file::rules::{BytesByFrequency, Keeping, MAX_FREQUENCY};
use crate::mutant;
use crate::stats::Event;

/// The distance at which buckets are prefetched.
const AHEAD: usize = 8;
/// The prefetch distance of a walk over the records of a segment.
const NEAR_BYTES: u64 = 2048;

/// The outcome of recycling a segment, or a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Recycled {
    /// It is free.
    Emptied,
    /// It is a run, and stays where it is as the youngest of its queue.
    Renewed,
    /// A process uses it.
    InUse,
    /// The records that it has to keep do not fit elsewhere.
    NoRoom,
}

/// Why an entry left.
pub(in crate::file) enum Left {
    Evicted,
    Expired,
}

/// The outcome of keeping a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Kept {
    Yes,
    /// It is damaged, or was cleared.
    No,
    /// No segment has room for it.
    NoRoom,
}

/// A record of a segment that is emptied.
#[derive(Debug)]
pub(in crate::file) struct Candidate {
    pub(in crate::file) record: Record,
    pub(in crate::file) hash: u64,
    /// The slot that points to it.
    pub(in crate::file) slot: Slot,
    pub(in crate::file) expires_ms: u64,
}

impl Candidate {
    fn frequency(&self) -> u8 {
        u8::try_from(self.slot.frequency()).map_or(MAX_FREQUENCY, |times| times.min(MAX_FREQUENCY))
    }
}

impl<G: Ground> Recycler<'_, G> {
    /// Empties a segment; of what should be kept, at most `allowed_bytes` are.
    pub(in crate::file) fn recycle(
        &self,
        segment: u32,
        cause: Cause,
        allowed_bytes: u64,
        reserve: &mut Reserve,
        now_ms: u64,
    ) -> Result<Recycled, OpError> {
        // It may have been chosen before.
        if reserve.contains(segment) || self.is_open(segment) {
            return Ok(Recycled::InUse);
        }
        let Some(state) = self.begin_recycling(segment) else {
            return Ok(Recycled::InUse);
        };
        let recycled = self.move_or_drop(segment, cause, allowed_bytes, reserve, now_ms);
        match recycled {
            Ok(Recycled::Emptied) => self.free_recycled(segment),
            Ok(Recycled::Renewed) => self.renew_run(segment, state),
            Ok(Recycled::InUse | Recycled::NoRoom) | Err(_) => self.end_recycling(segment, state),
        }
        recycled
    }

    /// Keeps the record of a run if it was used, which is paid for by that; says whether it did.
    fn keep_run(
        &self,
        state: State,
        candidates: &[Candidate],
        now_ms: u64,
    ) -> Result<bool, OpError> {
        let [candidate] = candidates else {
            return Ok(false);
        };
        let kept = self.rules().kept_frequency(queue_of(state), candidate.frequency());
        let Some(frequency) = kept.filter(|_| candidate.expires_ms > now_ms) else {
            return Ok(false);
        };
        let mut bucket = self.lock_bucket(self.me, candidate.hash)?;
        let Some((at, _)) = bucket.find_slot(candidate.slot) else {
            return Ok(false);
        };
        bucket.put(at, Slot::new(candidate.hash, frequency.into(), candidate.slot.offset()));
        Ok(true)
    }

    /// Makes a run the youngest of the main queue, where it is: what has segments of its own need not
    /// be copied to go round again.
    fn renew_run(&self, segment: u32, state: State) {
        let sequence = self.next_sequence();
        self.entry(segment).set_state(State {
            kind: SegmentKind::Sealed,
            queue: MAIN,
            sequence,
            ..state
        });
    }

    /// Empties a segment, or the run that it is part of.
    pub(in crate::file) fn empty(
        &self,
        segment: u32,
        cause: Cause,
        reserve: &mut Reserve,
        now_ms: u64,
    ) -> Result<Recycled, OpError> {
        let state = self.entry(segment).state();
        let is_member = state.kind == SegmentKind::Member;
        let head = if is_member { state.head_of(segment) } else { Some(segment) };
        let Some(head) = head else {
            // Something garbled the file since this segment was chosen.
            return Ok(Recycled::InUse);
        };
        self.recycle(head, cause, 0, reserve, now_ms)
    }

    /// Marks a segment, unless somebody appends to it or reads in place. Others may be opening or
    /// sealing it: of them and this one, one gets its state.
    pub(in crate::file) fn begin_recycling(&self, segment: u32) -> Option<State> {
        let entry = self.entry(segment);
        let word = entry.state_word();
        let state = State::decode(word);
        if !matches!(state.kind, SegmentKind::Open | SegmentKind::Sealed | SegmentKind::Recycling) {
            return None;
        }
        // Whoever sees the word that was read before does not exchange this one.
        let marked =
            State { kind: SegmentKind::Recycling, sequence: self.next_sequence(), ..state };
        if !entry.exchange_state(word, marked) {
            return None;
        }
        crash::point("recycle.marked");
        // A process that pins reads the state after it has the lock; this one asks for the lock
        // after it has set the state.
        self.ground.fence(mutant::order("fence-before-pins-are-asked-for", Ordering::SeqCst));
        let is_pinned = self.ground.is_pinned(segment) && !mutant::is_on("pins-ignored");
        // In this order: what was opened has a hazard until a lane names it.
        let is_appended_to = self.is_appended_to(segment);
        let is_named = state.kind == SegmentKind::Open && self.is_named(segment);
        if is_appended_to || is_named || is_pinned {
            entry.exchange_state(marked.encode(), state);
            return None;
        }
        Some(state)
    }

    /// Leaves a segment as it was before.
    pub(in crate::file) fn end_recycling(&self, segment: u32, state: State) {
        self.entry(segment).set_state(State { kind: SegmentKind::Sealed, ..state });
    }

    pub(in crate::file) fn free_recycled(&self, segment: u32) {
        crash::point("recycle.emptied");
        // The members of a run are free as soon as its head is not a run.
        self.entry(segment).free();
        crash::point("recycle.freed");
    }

    /// Whether a process that is there appends to a segment.
    pub(in crate::file) fn is_appended_to(&self, segment: u32) -> bool {
        self.used_places().any(|place| self.hazard_of(place) == Some(segment))
    }

    /// The segments that processes append to at this moment.
    pub(in crate::file) fn hazards(&self) -> Vec<u32> {
        self.used_places().filter_map(|place| self.hazard_of(place)).collect()
    }

    /// The segment that the owner of a place appends to, if it is alive.
    fn hazard_of(&self, place: u32) -> Option<u32> {
        let at = self.geometry.place(place) + HAZARD;
        let order = mutant::order("hazard-read", Ordering::Acquire);
        let hazard = || self.ground.load(at, order);
        let before = hazard();
        if before == 0 || mutant::is_on("hazards-ignored") {
            return None;
        }
        let is_set = self.ground.is_taken(place) && hazard() == before;
        is_set.then(|| u32::try_from(before - 1).ok()).flatten()
    }

    /// Moves or drops every record of a segment.
    fn move_or_drop(
        &self,
        segment: u32,
        cause: Cause,
        allowed_bytes: u64,
        reserve: &mut Reserve,
        now_ms: u64,
    ) -> Result<Recycled, OpError> {
        let state = self.entry(segment).state();
        let candidates = self.candidates(segment, state)?;
        let is_current = self.entry(segment).epoch() == self.epoch();
        let is_live = |candidate: &Candidate| is_current && candidate.expires_ms > now_ms;
        if state.run > 1 && candidates.iter().any(is_live) {
            match cause {
                // When it was chosen it held nothing: its writer has published it since.
                Cause::Sparse | Cause::Dead
                    if !mutant::is_on("a-published-run-is-dropped-as-dead") =>
                {
                    return Ok(Recycled::InUse);
                }
                Cause::Room
                    if allowed_bytes > 0 && self.keep_run(state, &candidates, now_ms)? =>
                {
                    return Ok(Recycled::Renewed);
                }
                Cause::Sparse | Cause::Dead | Cause::Room => {}
            }
        }
        if cause == Cause::Dead && candidates.iter().any(is_live) {
            // It was counted wrongly.
            return Ok(Recycled::InUse);
        }
        let is_of_use = |candidate: &Candidate| state.run <= 1 && is_live(candidate);
        let mut bytes = BytesByFrequency::default();
        for candidate in candidates.iter().filter(|candidate| is_of_use(candidate)) {
            bytes[usize::from(candidate.frequency())] += candidate.record.head.bytes();
        }
        let mut keeping = Keeping::new(self.rules(), queue_of(state), &bytes, allowed_bytes);
        let queue = if cause == Cause::Sparse { state.queue } else { MAIN };
        let (mut evicted, mut expired, mut reinserted) = (0, 0, 0);
        let mut recycled = Recycled::Emptied;
        let may_evict_new = cause == Cause::Room && state.queue != MAIN;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for (number, candidate) in candidates.iter().enumerate() {
            if let Some(ahead) = candidates.get(number + AHEAD).filter(|_| may_evict_new) {
                self.prefetch_ghosts(ahead.hash);
            }
            let kept_frequency = match cause {
                _ if !is_of_use(candidate) => None,
                Cause::Sparse | Cause::Dead => Some(candidate.frequency()),
                Cause::Room => keeping.keep(candidate.frequency(), candidate.record.head.bytes()),
            };
            let kept = match kept_frequency {
                Some(frequency) => {
                    self.keep(candidate, queue, frequency, reserve, now_ms, (&mut key, &mut value))?
                }
                None => Kept::No,
            };
            match (kept, cause) {
                (Kept::Yes, _) => {
                    reinserted += 1;
                    continue;
                }
                // What is sparse is not dropped for want of room.
                (Kept::NoRoom, Cause::Sparse) if !mutant::is_on("sparse-dropped-without-room") => {
                    recycled = Recycled::NoRoom;
                    break;
                }
                (Kept::No | Kept::NoRoom, _) => {}
            }
            match self.drop_entry(candidate, is_current, now_ms)? {
                Some(Left::Evicted) => {
                    evicted += 1;
                    if state.queue != MAIN {
                        self.remember(candidate.hash, candidate.record.head.bytes());
                    }
                }
                Some(Left::Expired) => expired += 1,
                None => {}
            }
        }
        self.count(self.me.counting(), Event::Eviction, evicted);
        self.count(self.me.counting(), Event::Expired, expired);
        self.count(self.me.counting(), Counter::Reinserted, reinserted);
        Ok(recycled)
    }

    /// The records of a segment that slots point to. Their versions are noted, whatever becomes of
    /// them.
    pub(in crate::file) fn candidates(
        &self,
        segment: u32,
        state: State,
    ) -> Result<Vec<Candidate>, OpError> {
        let mut key = Vec::new();
        let mut records = Vec::new();
        for (offset, record) in self.walk(segment, state) {
            self.copy_key(&record, &mut key)?;
            let hash = self.key(&key, record.head.has_namespace()).hash;
            records.push((hash, offset, record));
        }
        let mut candidates = Vec::new();
        for (number, (hash, offset, record)) in records.iter().enumerate() {
            if let Some((ahead, ..)) = records.get(number + AHEAD) {
                self.ground.prefetch(self.geometry.bucket(self.geometry.bucket_of(*ahead)));
            }
            if let Some(slot) = self.find_slot_unlocked(*hash, Slot::new(*hash, 0, *offset)) {
                let expires_ms = self.expires_ms(record);
                candidates.push(Candidate { record: *record, hash: *hash, slot, expires_ms });
            }
        }
        if self.origin(segment) == Origin::Earlier {
            for candidate in &candidates {
                self.note_version(&candidate.record);
            }
        }
        Ok(candidates)
    }

    /// The slot that points to a record, if there is one. No new one can come: nobody appends.
    fn find_slot_unlocked(&self, hash: u64, of: Slot) -> Option<Slot> {
        let bucket = self.geometry.bucket_of(hash);
        let same = |_, slot: Slot| slot.is_same(of).then_some(slot);
        self.scan(bucket, self.link_of(bucket), same)
    }

    /// The records of a segment, from its start to the first that cannot be one, and their offsets in
    /// the segments.
    fn walk(&self, segment: u32, state: State) -> impl Iterator<Item = (u64, Record)> + use<'_, G> {
        let entry = self.entry(segment);
        let used = if state.run > 1 { 1 } else { entry.used().min(self.geometry.segment_bytes()) };
        let start = self.geometry.segment_start(segment);
        let (mut at, mut near) = (0, 0);
        std::iter::from_fn(move || {
            if at >= used {
                return None;
            }
            // Each record leads to the next by its length: unless they are prefetched, each step waits
            // for memory.
            near = near.max(at);
            while near < used.min(at + NEAR_BYTES) {
                self.ground.prefetch(start + near);
                near += LINE_BYTES;
            }
            let record = self.record_at(segment, at)?;
            let offset = start - self.geometry.segments + at;
            at += record.head.bytes();
            Some((offset, record))
        })
    }

    /// Appends a copy of a record to a queue, and lets its slot point there.
    fn keep(
        &self,
        candidate: &Candidate,
        queue: u32,
        frequency: u8,
        reserve: &mut Reserve,
        now_ms: u64,
        (key, value): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> Result<Kept, OpError> {
        let (record, head) = (&candidate.record, candidate.record.head);
        self.copy_key(record, key)?;
        self.copy_value(record, value)?;
        let key = Key { bytes: key, has_namespace: head.has_namespace(), hash: candidate.hash };
        let is_right = !self.is_in_doubt(record.segment) || self.is_right(key.hash, record, value);
        if !is_right && !mutant::is_on("damaged-records-copied") {
            return Ok(Kept::No);
        }
        let checksum = self.checksum_of(record);
        let draft = Draft { key, value, expires_ms: candidate.expires_ms, head, checksum };
        let Some(appended) = self.append_copy(reserve, queue, &draft, now_ms)? else {
            return Ok(Kept::NoRoom);
        };
        crash::point("recycle.copied");
        self.publish_copy(candidate, &appended, frequency.into())
    }

    /// Lets the slot of a record point to its copy.
    pub(in crate::file) fn publish_copy(
        &self,
        candidate: &Candidate,
        appended: &Appended<'_, G>,
        frequency: u64,
    ) -> Result<Kept, OpError> {
        let record = &candidate.record;
        let mut bucket = self.lock_bucket(self.me, candidate.hash)?;
        appended.drop_aliases(&mut bucket, candidate.hash)?;
        let mut found = bucket.find_slot(candidate.slot).map(|(at, _)| at);
        if mutant::is_on("copy-published-though-overwritten") {
            found = found.or_else(|| bucket.vacancy());
        }
        let Some(at) = found else {
            // It was overwritten or deleted concurrently.
            return Ok(Kept::Yes);
        };
        if self.entry(appended.segment).epoch() != self.entry(record.segment).epoch() {
            // Everything was cleared since.
            return Ok(Kept::No);
        }
        // Before anything is counted: it can fail.
        bucket.free_of_others(at, candidate.slot)?;
        if !mutant::is_on("copy-misses-a-touch") {
            // It may have been touched since it was copied.
            appended.set_expiry(self.expires_ms(record));
        }
        let copy = appended.publishable(candidate.hash, frequency);
        self.add_live(self.me, appended.segment, record.head.bytes());
        self.remove_live(self.me, record.segment, record.head.bytes());
        crash::point("recycle.counted");
        bucket.put(at, copy);
        crash::point("recycle.moved");
        Ok(Kept::Yes)
    }

    /// Empties the slots of a record, with what they hide; says why, `None` where there were none.
    pub(in crate::file) fn drop_entry(
        &self,
        candidate: &Candidate,
        is_current: bool,
        now_ms: u64,
    ) -> Result<Option<Left>, OpError> {
        let mut bucket = self.lock_bucket(self.me, candidate.hash)?;
        if !bucket.drop_slots(candidate.slot)? {
            return Ok(None);
        }
        self.remove_live(self.me, candidate.record.segment, candidate.record.head.bytes());
        crash::point("recycle.dropped");
        bucket.shrink();
        if !is_current {
            return Ok(None);
        }
        let is_expired = self.expires_ms(&candidate.record) <= now_ms;
        Ok(Some(if is_expired { Left::Expired } else { Left::Evicted }))
    }
}
