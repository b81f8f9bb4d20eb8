//! Emptying segments, so that they can be filled anew. All under the recycler's lock.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{Ordering, fence};

use super::append::{Appended, Draft, HAZARD};
use super::area::{Area, Counter, Key, Me, Record, Stop};
use super::bucket::Bucket;
use super::chain::slots_of_line;
use super::crash;
use super::ground::Ground;
use super::segment::{Kind, MAIN, SMALL, State};
use super::slot::Slot;
use super::survey::{Cause, queue_of};
use crate::policy::segment::rules::{BytesByFrequency, Keeping, MAX_FREQUENCY};

/// How far ahead buckets are brought near.
const AHEAD: usize = 8;
/// Segments of an earlier boot are made walkable in batches: the whole index is looked at for each.
const ADOPTED_AT_ONCE: usize = 64;

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
        now_ms: u64,
    ) -> Result<bool, Stop> {
        let Some(state) = self.begin_recycling(segment) else {
            return Ok(false);
        };
        let emptied = self.move_or_drop(me, segment, state, cause, allowed_bytes, now_ms);
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
        now_ms: u64,
    ) -> Result<bool, Stop> {
        let state = self.entry(segment).state();
        let head = if state.kind == Kind::Member { segment - state.run } else { segment };
        self.recycle(me, head, cause, 0, now_ms)
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
        state: State,
        cause: Cause,
        allowed_bytes: u64,
        now_ms: u64,
    ) -> Result<bool, Stop> {
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
                Some(frequency) => self.keep(me, candidate, queue, frequency, now_ms)?,
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
    fn walk(&self, segment: u32, state: State) -> Vec<(u64, Record)> {
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
        let appended = match self.append_to_open(me, queue, &draft) {
            // A process that has stopped must not keep all others from making room.
            Err(Stop::Busy) => {
                let Some(appended) = self.append_to_open(me, other(queue), &draft)? else {
                    return Err(Stop::Busy);
                };
                appended
            }
            Err(stop) => return Err(stop),
            Ok(Some(appended)) => appended,
            Ok(None) => match self.append_to_new(me, queue, &draft, now_ms)? {
                Some(appended) => appended,
                None => return Ok(false),
            },
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

    /// Appends to a segment that is opened for it, out of the reserve.
    fn append_to_new(
        &self,
        me: Me,
        queue: u32,
        draft: &Draft<'_>,
        now_ms: u64,
    ) -> Result<Option<Appended<'_, G>>, Stop> {
        // All writers append to the queue's new segment as well, and fill it while this process does
        // not run; few append to the other queue's.
        for queue in [queue, other(queue)] {
            if let Some(segment) = self.find_free() {
                self.install(me, queue, segment, now_ms)?;
            }
            if let Some(appended) = self.append_to_open(me, queue, draft)? {
                return Ok(Some(appended));
            }
        }
        Ok(None)
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
            self.drop_others(&mut bucket, candidate)?;
        }
        bucket.shrink();
        if !is_current {
            return Ok(None);
        }
        let is_expired = self.expires_ms(&candidate.record) <= now_ms;
        Ok(Some(if is_expired { Left::Expired } else { Left::Evicted }))
    }

    /// Whether all slots into a segment are those of the records that walking finds.
    pub(super) fn is_walkable(&self, segment: u32) -> bool {
        let entry = self.entry(segment);
        entry.stamp() == self.stamp || entry.is_adopted(self.stamp)
    }

    /// Empties other slots of the key, which a loss of power can leave: else the value of one of them
    /// would come back.
    fn drop_others(&self, bucket: &mut Bucket<'_, G>, candidate: &Candidate) -> Result<(), Stop> {
        if !bucket.has_tagged(candidate.hash) {
            return Ok(());
        }
        let head = candidate.record.head;
        let mut key = Vec::new();
        self.copy_key(&candidate.record, &mut key)?;
        let key = Key { bytes: &key, has_namespace: head.has_namespace, hash: candidate.hash };
        // Not of a later epoch: that would be an entry that was written since everything was cleared.
        let epoch = self.entry(candidate.record.segment).epoch();
        for found in bucket.find(&key, epoch).all() {
            self.entry(found.record.segment).remove_live(found.record.head.bytes());
            bucket.put(found.at, Slot::EMPTY);
        }
        Ok(())
    }

    /// Makes sure that walking finds every slot into this segment, and into others of an earlier boot:
    /// what a loss of power left may point between records.
    pub(super) fn adopt(&self, me: Me, segment: u32) -> Result<(), Stop> {
        let is_foreign = |segment: &u32| !self.is_walkable(*segment);
        let is_free = |segment: &u32| self.is_free(*segment);
        let others = || {
            let all = 0..self.geometry.numbers.segments;
            all.filter(|other| *other != segment && is_foreign(other))
        };
        // Nothing is to be looked at in free ones.
        let filled = others().filter(|other| !is_free(other)).take(ADOPTED_AT_ONCE);
        let adopted: HashSet<u32> =
            std::iter::once(segment).chain(filled).chain(others().filter(is_free)).collect();
        let mut walkable = HashMap::new();
        let mut key = Vec::new();
        for segment in adopted.iter().filter(|segment| !is_free(segment)) {
            for (offset, record) in self.walk(*segment, self.entry(*segment).state()) {
                self.copy_key(&record, &mut key)?;
                walkable.insert(offset, self.key(&key, record.head.has_namespace).hash);
            }
        }
        // A slot of another key than the record's would not be found when the record leaves.
        let is_lost = |bucket: u32, slot: Slot| match self.segment_of(slot) {
            None => true,
            Some(segment) if !adopted.contains(&segment) => false,
            Some(_) => walkable.get(&slot.offset()).is_none_or(|hash| {
                !slot.is_tagged(*hash) || self.geometry.bucket_of(*hash) != bucket
            }),
        };
        let mut forgotten = false;
        for bucket in 0..self.geometry.numbers.buckets {
            forgotten |= self.forget_lost(me, bucket, |slot| is_lost(bucket, slot))?;
        }
        if forgotten {
            self.distrust_counts();
        }
        // Lines that no bucket links to are emptied when they are taken.
        for segment in adopted {
            self.entry(segment).set_adopted(self.stamp);
        }
        Ok(())
    }

    /// Empties slots of a bucket that lead nowhere; says whether there were any.
    fn forget_lost(
        &self,
        me: Me,
        bucket: u32,
        is_lost: impl Fn(Slot) -> bool,
    ) -> Result<bool, Stop> {
        let slots = self.lines(bucket, self.link_of(bucket)).flat_map(slots_of_line);
        let slots: Vec<u64> = slots.collect();
        let find_lost = || -> Vec<u64> {
            let mut offsets = Vec::new();
            let mut is_lost = |slot: Slot| {
                // Only the first of two that point to one record would be found when it leaves.
                let is_second = offsets.contains(&slot.offset());
                offsets.push(slot.offset());
                is_second || is_lost(slot)
            };
            let filled = slots.iter().map(|at| (*at, self.slot(*at)));
            let filled = filled.filter(|(_, slot)| !slot.is_empty());
            filled.filter(|(_, slot)| is_lost(*slot)).map(|(at, _)| at).collect()
        };
        if find_lost().is_empty() {
            return Ok(false);
        }
        let _held = self.lock(me, self.geometry.bucket(bucket))?;
        for at in find_lost() {
            self.ground.store(at, 0, Ordering::Release);
        }
        Ok(true)
    }
}

/// The queue that is appended to where a queue's own segment cannot be.
fn other(queue: u32) -> u32 {
    if queue == MAIN { SMALL } else { MAIN }
}
