//! The records of a segment that is emptied, and the fate of each.

use haypile_policy::rules::file::MAX_FREQUENCY;

use crate::file::area::{Key, OpError, Record};
use crate::file::crash;
use crate::file::format::layout::LINE_BYTES;
use crate::file::format::record::Expiration;
use crate::file::format::segment::{Live, Origin, State};
use crate::file::format::slot::Slot;
use crate::file::index::bucket::Bucket;
use crate::file::log::append::{Appended, Draft};
use crate::file::log::recycler::Recycler;
use crate::file::log::reserve::Reserve;
use crate::file::platform::ground::Ground;
use crate::mutant;

/// The number of records ahead for which the recycler, which empties segments, prefetches the
/// buckets of the index.
pub(in crate::file) const AHEAD: usize = 8;
/// The prefetch distance of a walk over the records of a segment.
const NEAR_BYTES: u64 = 2048;
/// The number of records after which the recycler, which empties segments, shows waiting processes
/// its progress: each record may cost a read from a slow disk.
pub(in crate::file) const RECORDS_PER_PROGRESS: usize = 16;

/// The reason why a record is not copied when its segment is emptied: it is evicted, has expired,
/// was removed before, or got a new expiry in the meantime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Dropped {
    Evicted,
    Expired,
    /// The record had left before: it was overwritten, deleted or cleared.
    Before,
    /// The record was left alone: it has expired for the recycler, and was touched since.
    Touched,
}

/// The outcome of trying to copy a record out of a segment that is being emptied: copied, not
/// copied because it is damaged or cleared, or no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Kept {
    Yes,
    /// The record is damaged, or was cleared.
    No,
    /// No segment has room for the record.
    NoRoom,
}

/// A live record of a segment that is being emptied, to be kept or evicted.
#[derive(Debug)]
pub(in crate::file) struct Candidate {
    pub(in crate::file) record: Record,
    pub(in crate::file) hash: u64,
    /// The index slot that points to the live record of a segment that is being emptied.
    pub(in crate::file) slot: Slot,
    pub(in crate::file) expires_ms: u64,
}

impl Candidate {
    pub(in crate::file) fn bytes(&self) -> u64 {
        self.record.head.bytes()
    }

    pub(in crate::file) fn frequency(&self) -> u8 {
        u8::try_from(self.slot.frequency()).map_or(MAX_FREQUENCY, |times| times.min(MAX_FREQUENCY))
    }
}

impl<G: Ground> Recycler<'_, G> {
    /// Returns the live records of a segment (those that index slots point to), each of which is to
    /// be kept or evicted. The counter of versions is raised above their versions, whether they are
    /// kept or not.
    pub(in crate::file) fn candidates(
        &self,
        segment: u32,
        state: State,
    ) -> Result<Vec<Candidate>, OpError> {
        let mut key = Vec::new();
        let mut records = Vec::new();
        for (number, (offset, record)) in self.walk(segment, state).enumerate() {
            self.note_progress_of(number);
            let hash = self.key_of(&record, &mut key)?.hash;
            records.push((hash, offset, record));
        }
        let mut candidates = Vec::new();
        for (number, (hash, offset, record)) in records.iter().enumerate() {
            self.note_progress_of(number);
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

    /// Shows processes that wait for the recycler that it makes progress, if `number`, the count of
    /// records read so far, is a multiple of 16.
    pub(in crate::file) fn note_progress_of(&self, number: usize) {
        if number.is_multiple_of(RECORDS_PER_PROGRESS) {
            self.note_progress();
        }
    }

    /// Corrects a segment's stored count of live entries, which was `sum` before the search, to the
    /// number that was found. A count that changes concurrently is left to the next recycler.
    pub(in crate::file) fn correct_count(
        &self,
        segment: u32,
        sum: u64,
        candidates: &[Candidate],
    ) -> Result<(), OpError> {
        let mut live = Live::default();
        for (number, candidate) in candidates.iter().enumerate() {
            self.note_progress_of(number);
            self.entry(segment).raise_expiry(candidate.expires_ms);
            // The holder of the lock may have counted a slot that it has not written yet.
            let bucket = Bucket::lock(self, self.owner, candidate.hash)?;
            if bucket.find_slot(candidate.slot).is_some() {
                live.count(candidate.bytes());
            }
        }
        if self.live_sum(segment) == sum && Live::decode(sum) != live {
            self.correct_live(self.owner.slot, segment, sum, live);
        }
        Ok(())
    }

    /// Returns the slot that points to a record, if there is one. No new one can come: nobody appends.
    fn find_slot_unlocked(&self, hash: u64, of: Slot) -> Option<Slot> {
        let bucket = self.geometry.bucket_of(hash);
        let same = |_, slot: Slot| slot.is_same(of).then_some(slot);
        self.scan(bucket, self.link_of(bucket), same)
    }

    /// Returns the records of a segment, from its start to the first that cannot be one, and their offsets in
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

    /// Appends a copy of a record to a segment of a queue, and makes the record's index slot point
    /// to the copy.
    pub(in crate::file) fn keep(
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
        let Expiration { ms, has_groups } = self.validity(record);
        let draft = Draft { key, value, expires_ms: ms, has_groups, head, checksum };
        let Some(appended) = self.append_copy(reserve, queue, &draft, now_ms)? else {
            return Ok(Kept::NoRoom);
        };
        crash::point("recycle.copied");
        self.publish_copy(candidate, &appended, frequency.into())
    }

    /// Makes the index slot of a record point to the record's copy in another segment, unless all
    /// entries were cleared since; returns whether the copy counts as kept.
    pub(in crate::file) fn publish_copy(
        &self,
        candidate: &Candidate,
        appended: &Appended<'_, G>,
        frequency: u64,
    ) -> Result<Kept, OpError> {
        let record = &candidate.record;
        let mut bucket = Bucket::lock(self, self.owner, candidate.hash)?;
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
            appended.set_expiration(self.validity(record));
        }
        let copy = appended.publishable(candidate.hash, frequency);
        self.add_live(self.owner.slot, appended.segment, record.head.bytes());
        self.remove_live(self.owner.slot, record.segment, record.head.bytes());
        crash::point("recycle.counted");
        bucket.put(at, copy);
        crash::point("recycle.moved");
        Ok(Kept::Yes)
    }

    /// Empties the index slots of a record that is not kept, and those of older entries that they
    /// hide.
    pub(in crate::file) fn drop_entry(
        &self,
        candidate: &Candidate,
        is_current: bool,
        now_ms: u64,
    ) -> Result<Dropped, OpError> {
        let record = &candidate.record;
        let mut bucket = Bucket::lock(self, self.owner, candidate.hash)?;
        let is_expired = self.expires_ms(record) <= now_ms;
        let seemed_expired = candidate.expires_ms <= now_ms;
        if is_current && seemed_expired && !is_expired && !mutant::is_on("drop-misses-a-touch") {
            let is_there = bucket.find_slot(candidate.slot).is_some();
            return Ok(if is_there { Dropped::Touched } else { Dropped::Before });
        }
        let Some((at, _)) = bucket.find_slot(candidate.slot) else {
            return Ok(Dropped::Before);
        };
        if is_current && !mutant::is_on("recycler-notes-no-removal") {
            bucket.note_removal(candidate.hash);
        }
        bucket.drop_slot(at, candidate.slot)?;
        self.remove_live(self.owner.slot, record.segment, record.head.bytes());
        crash::point("recycle.dropped");
        bucket.shrink();
        Ok(match is_expired {
            _ if !is_current => Dropped::Before,
            true => Dropped::Expired,
            false => Dropped::Evicted,
        })
    }
}
