//! Emptying segments, so that they can be filled anew. All under the recycler's lock.

use std::sync::atomic::{Ordering, fence};

use super::append::{Draft, HAZARD};
use super::area::{Area, Counter, Key, Me, Record, Stop};
use super::bucket::Bucket;
use super::crash;
use super::ground::Ground;
use super::segment::{Kind, MAIN, State};
use super::slot::Slot;
use super::spare::Spares;
use super::survey::{Cause, queue_of};
use crate::policy::segment::rules::{BytesByFrequency, Keeping, MAX_FREQUENCY};

/// How far ahead buckets are brought near.
const AHEAD: usize = 8;

/// Why an entry left.
enum Left {
    Evicted,
    Expired,
}

/// A record of a segment that is emptied.
struct Candidate {
    record: Record,
    hash: u64,
    /// What points to it.
    slot: Slot,
    expires_ms: u64,
}

impl Candidate {
    fn frequency(&self) -> u8 {
        u8::try_from(self.slot.frequency()).map_or(MAX_FREQUENCY, |times| times.min(MAX_FREQUENCY))
    }
}

impl<G: Ground> Area<G> {
    /// Empties a segment; of what should be kept, at most `allowed_bytes` are. `false`: it is in use.
    pub(super) fn recycle(
        &self,
        me: Me,
        segment: u32,
        cause: Cause,
        allowed_bytes: u64,
        spares: &mut Spares,
        now_ms: u64,
    ) -> Result<bool, Stop> {
        // It was chosen before that, perhaps.
        if spares.contains(segment) || self.is_open(segment) {
            return Ok(false);
        }
        let Some(state) = self.begin_recycling(segment) else {
            return Ok(false);
        };
        let emptied = self.move_or_drop(me, segment, cause, allowed_bytes, spares, now_ms);
        match emptied {
            Ok(true) => self.free_recycled(segment),
            Ok(false) => self.renew_run(segment, state),
            Err(_) => self.entry(segment).set_state(State { kind: Kind::Sealed, ..state }),
        }
        emptied.map(|_| true)
    }

    /// Keeps the record of a run if it was used, which is paid for by that; says whether it did.
    fn keep_run(
        &self,
        me: Me,
        state: State,
        candidates: &[Candidate],
        now_ms: u64,
    ) -> Result<bool, Stop> {
        let [candidate] = candidates else {
            return Ok(false);
        };
        let kept = self.rules().kept_frequency(queue_of(state), candidate.frequency());
        let Some(frequency) = kept.filter(|_| candidate.expires_ms > now_ms) else {
            return Ok(false);
        };
        let mut bucket = self.lock_bucket(me, candidate.hash)?;
        let Some((at, slot)) = bucket.find_slot(candidate.slot) else {
            return Ok(false);
        };
        bucket.put(at, Slot::new(candidate.hash, frequency.into(), slot.offset()));
        Ok(true)
    }

    /// Makes a run the youngest of the main queue, where it is: what has segments of its own need not
    /// be copied to go round again.
    fn renew_run(&self, segment: u32, state: State) {
        let sequence = self.next_sequence();
        self.entry(segment).set_state(State { kind: Kind::Sealed, queue: MAIN, sequence, ..state });
    }

    /// Empties a segment, or the run that it is part of; where little of it is of use, that is kept as
    /// far as there is room. `false`: it is in use.
    pub(super) fn empty(
        &self,
        me: Me,
        segment: u32,
        cause: Cause,
        spares: &mut Spares,
        now_ms: u64,
    ) -> Result<bool, Stop> {
        let state = self.entry(segment).state();
        let head = if state.kind == Kind::Member { segment - state.run } else { segment };
        self.recycle(me, head, cause, 0, spares, now_ms)
    }

    /// Marks a segment, unless somebody appends to it or reads in place.
    fn begin_recycling(&self, segment: u32) -> Option<State> {
        let entry = self.entry(segment);
        let state = entry.state();
        entry.set_state(State { kind: Kind::Recycling, ..state });
        crash::point("recycle.marked");
        // Who pins looks at the state after it has the lock; who recycles, at the lock after it has
        // set the state.
        fence(Ordering::SeqCst);
        if self.is_appended_to(segment) || self.ground.is_pinned(segment) {
            entry.set_state(State { kind: Kind::Sealed, ..state });
            return None;
        }
        Some(state)
    }

    fn free_recycled(&self, segment: u32) {
        crash::point("recycle.emptied");
        // The members of a run are free as soon as its head is no run.
        self.entry(segment).free(self.stamp);
        crash::point("recycle.freed");
    }

    /// Whether a process that is there appends to a segment.
    fn is_appended_to(&self, segment: u32) -> bool {
        (0..self.geometry.numbers.places).any(|place| {
            let at = self.geometry.place(place);
            let hazard = || self.ground.load(at + HAZARD, Ordering::Acquire);
            hazard() == u64::from(segment) + 1
                && self.ground.is_taken(place)
                && hazard() == u64::from(segment) + 1
        })
    }

    /// Empties a segment; `false`: it is a run, and stays as it is.
    fn move_or_drop(
        &self,
        me: Me,
        segment: u32,
        cause: Cause,
        allowed_bytes: u64,
        spares: &mut Spares,
        now_ms: u64,
    ) -> Result<bool, Stop> {
        let state = self.entry(segment).state();
        if !self.is_walkable(segment) {
            self.adopt(me, segment)?;
        }
        let candidates = self.candidates(segment, state)?;
        let is_current = self.entry(segment).epoch() == self.epoch();
        let may_stay = state.run > 1 && cause == Cause::Room && allowed_bytes > 0 && is_current;
        if may_stay && self.keep_run(me, state, &candidates, now_ms)? {
            return Ok(false);
        }
        let is_of_use =
            |candidate: &Candidate| is_current && state.run <= 1 && candidate.expires_ms > now_ms;
        let mut bytes = BytesByFrequency::default();
        for candidate in candidates.iter().filter(|candidate| is_of_use(candidate)) {
            bytes[usize::from(candidate.frequency())] += candidate.record.head.bytes();
        }
        let mut keeping = Keeping::new(self.rules(), queue_of(state), &bytes, allowed_bytes);
        let queue = if cause == Cause::Sparse { state.queue } else { MAIN };
        let (mut evicted, mut expired, mut reinserted) = (0, 0, 0);
        for candidate in &candidates {
            let kept_frequency = match cause {
                _ if !is_of_use(candidate) => None,
                // At most half of a segment, or none could be won by it.
                Cause::Sparse => Some(candidate.frequency()),
                Cause::Room => keeping.keep(candidate.frequency(), candidate.record.head.bytes()),
            };
            let is_kept = match kept_frequency {
                Some(frequency) => self.keep(me, candidate, queue, frequency, spares, now_ms)?,
                None => false,
            };
            if is_kept {
                reinserted += 1;
                continue;
            }
            match self.drop_entry(me, candidate, is_current, now_ms)? {
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
        self.count(me.place, Counter::Evictions, evicted);
        self.count(me.place, Counter::Expired, expired);
        self.count(me.place, Counter::Reinserted, reinserted);
        Ok(true)
    }

    /// The records of a segment that slots point to.
    fn candidates(&self, segment: u32, state: State) -> Result<Vec<Candidate>, Stop> {
        let mut key = Vec::new();
        let mut candidates = Vec::new();
        for (offset, record) in self.walk(segment, state) {
            self.copy_key(&record, &mut key)?;
            let hash = self.key(&key, record.head.has_namespace).hash;
            let slot = Slot::new(hash, 0, offset);
            candidates.push(Candidate { record, hash, slot, expires_ms: 0 });
        }
        for number in 0..candidates.len() {
            if let Some(ahead) = candidates.get(number + AHEAD) {
                self.ground.prefetch(self.geometry.bucket(self.geometry.bucket_of(ahead.hash)));
                self.prefetch_ghosts(ahead.hash);
            }
            let candidate = &mut candidates[number];
            let slot = self.find_slot_unlocked(candidate.hash, candidate.slot);
            candidate.slot = slot.unwrap_or(Slot::EMPTY);
            candidate.expires_ms = self.expires_ms(&candidate.record);
        }
        candidates.retain(|candidate| !candidate.slot.is_empty());
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
    pub(super) fn walk(&self, segment: u32, state: State) -> Vec<(u64, Record)> {
        let entry = self.entry(segment);
        let mut records = Vec::new();
        let used = if state.run > 1 { 1 } else { entry.used().min(self.geometry.segment_bytes()) };
        let mut at = 0;
        while at < used {
            let Some(record) = self.record_at(segment, at) else {
                break;
            };
            let start = self.geometry.segment_start(segment) - self.geometry.segments;
            records.push((start + at, record));
            at += record.head.bytes();
        }
        records
    }

    /// Appends a copy of a record to a queue, and lets its slot point there. `false`: there is no room.
    fn keep(
        &self,
        me: Me,
        candidate: &Candidate,
        queue: u32,
        frequency: u8,
        spares: &mut Spares,
        now_ms: u64,
    ) -> Result<bool, Stop> {
        let (record, head) = (&candidate.record, candidate.record.head);
        let (mut key, mut value) = (Vec::new(), Vec::new());
        self.copy_key(record, &mut key)?;
        self.copy_value(record, &mut value)?;
        let key = Key { bytes: &key, has_namespace: head.has_namespace, hash: candidate.hash };
        if !self.is_right(key.hash, record, &value) {
            return Ok(false);
        }
        let draft = Draft {
            key,
            value: &value,
            version: head.version,
            expires_ms: candidate.expires_ms,
            has_expiry: head.has_expiry,
            checksum: Some(record.checksum),
        };
        let Some(appended) = self.append_copy(me, spares, queue, &draft, now_ms)? else {
            return Ok(false);
        };
        let mut bucket = self.lock_bucket(me, candidate.hash)?;
        let Some((at, _)) = bucket.find_slot(candidate.slot) else {
            // It was overwritten or deleted meanwhile.
            return Ok(true);
        };
        if self.entry(appended.segment).epoch() != self.entry(record.segment).epoch() {
            // Everything was cleared since.
            return Ok(false);
        }
        // It may have been touched since it was copied.
        appended.set_expiry(self.expires_ms(record));
        self.entry(appended.segment).add_live(head.bytes());
        self.entry(record.segment).remove_live(head.bytes());
        crash::point("recycle.counted");
        bucket.put(at, Slot::new(candidate.hash, frequency.into(), appended.offset));
        crash::point("recycle.moved");
        Ok(true)
    }

    /// Empties the slot of a record; says why, `None` where there was none.
    fn drop_entry(
        &self,
        me: Me,
        candidate: &Candidate,
        is_current: bool,
        now_ms: u64,
    ) -> Result<Option<Left>, Stop> {
        let mut bucket = self.lock_bucket(me, candidate.hash)?;
        let Some((at, _)) = bucket.find_slot(candidate.slot) else {
            return Ok(None);
        };
        self.entry(candidate.record.segment).remove_live(candidate.record.head.bytes());
        bucket.put(at, Slot::EMPTY);
        crash::point("recycle.dropped");
        if is_current {
            self.drop_others(&mut bucket, candidate.hash, &candidate.record)?;
        }
        bucket.shrink();
        if !is_current {
            return Ok(None);
        }
        let is_expired = self.expires_ms(&candidate.record) <= now_ms;
        Ok(Some(if is_expired { Left::Expired } else { Left::Evicted }))
    }

    /// Empties the slots of a record's key, of which a loss of power can leave several: when one of
    /// them leaves alone, the value of another would come back.
    pub(super) fn drop_others(
        &self,
        bucket: &mut Bucket<'_, G>,
        hash: u64,
        record: &Record,
    ) -> Result<(), Stop> {
        if !bucket.has_tagged(hash) {
            return Ok(());
        }
        let mut key = Vec::new();
        self.copy_key(record, &mut key)?;
        let key = Key { bytes: &key, has_namespace: record.head.has_namespace, hash };
        // Not of a later epoch: that would be an entry that was written since everything was cleared.
        let epoch = self.entry(record.segment).epoch();
        for found in bucket.find(&key, epoch).all() {
            self.entry(found.record.segment).remove_live(found.record.head.bytes());
            bucket.put(found.at, Slot::EMPTY);
        }
        Ok(())
    }
}
