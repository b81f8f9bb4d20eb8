//! Writing a record to the end of an open segment.

use std::sync::atomic::Ordering;

use crate::file::area::now::Now;
use crate::file::area::{Area, Key, OpError, Owner};
use crate::file::crash;
use crate::file::format::record::{Expiration, Head};
use crate::file::format::segment::Origin;
use crate::file::format::slot::Slot;
use crate::file::index::bucket::Bucket;
use crate::file::platform::ground::{Ground, IN_ORDER};
use crate::mutant;

/// The part of the next record that is prefetched.
const PREFETCHED_BYTES: u64 = 512;

/// A record (key, value and metadata) that is about to be appended to a segment of the cache file.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct Draft<'a> {
    pub(in crate::file) key: Key<'a>,
    /// The value of the record, followed by the hashes of its groups of entries, if it has any.
    pub(in crate::file) value: &'a [u8],
    /// The time at which the appended record expires, in ms since 1970; `u64::MAX` for never.
    pub(in crate::file) expires_ms: u64,
    pub(in crate::file) has_groups: bool,
    pub(in crate::file) head: Head,
    /// The checksum of the record, computed before any lock is taken. A copied record keeps the
    /// checksum of its original, so that a damaged value does not become a valid one.
    pub(in crate::file) checksum: u64,
}

/// A record that was appended to a segment, but that no index slot points to yet. The segment is
/// not recycled while this guard lives.
#[derive(Debug)]
pub(in crate::file) struct Appended<'a, G: Ground> {
    area: &'a Area<G>,
    owner_slot: u32,
    pub(in crate::file) segment: u32,
    /// The offset of the appended record, counted in bytes from the first segment.
    pub(in crate::file) offset: u64,
    pub(in crate::file) head: Head,
    /// The second word of the record, if it has been written with a wrong checksum: a slot that a
    /// loss of power left may point to the record, and must not make it an entry before its writer
    /// does.
    withheld: Option<u64>,
}

impl<G: Ground> Drop for Appended<'_, G> {
    #[inline]
    fn drop(&mut self) {
        self.area.owner_slot(self.owner_slot).set_hazard(None);
    }
}

impl<G: Ground> Appended<'_, G> {
    /// Empties index slots that a loss of power left behind and that happen to point to the new
    /// record, and slots of older entries that they hide. To be called under the lock of the
    /// record's bucket, and before its slots are searched.
    #[inline]
    pub(in crate::file) fn drop_aliases(
        &self,
        bucket: &mut Bucket<'_, G>,
        hash: u64,
    ) -> Result<(), OpError> {
        if self.withheld.is_some() && !mutant::is_on("aliases-stay") {
            let dropped = bucket.drop_slots(Slot::new(hash, 0, self.offset))?;
            if dropped {
                // They may have been counted since the record was written.
                self.area.invalidate_counts();
            }
        }
        Ok(())
    }

    /// Returns the index slot that makes the appended record an entry that readers find, and gives
    /// the record its valid checksum. To be called under the lock of its bucket, after
    /// [`drop_aliases`](Self::drop_aliases).
    #[inline]
    pub(in crate::file) fn publishable(&self, hash: u64, frequency: u64) -> Slot {
        let slot = Slot::new(hash, frequency, self.offset);
        if let Some(second) = self.withheld {
            let at = self.area.geometry.segments + self.offset + 8;
            self.area.ground.store(at, second, Ordering::Relaxed);
            crash::point("append.released");
        }
        slot
    }

    /// Writes the key, value and expiry of a record into its segment, after the record's first two
    /// words.
    #[expect(clippy::inline_always, reason = "what it writes stays in registers")]
    #[inline(always)]
    pub(in crate::file) fn fill(&self, draft: &Draft<'_>) {
        let Self { area, head, .. } = self;
        let at = area.geometry.segments + self.offset;
        if head.has_expiry() {
            let word = draft.expiration().encode(head.version());
            area.ground.store(at + Head::EXPIRY_AT, word, Ordering::Relaxed);
        }
        area.ground.copy_in(at + head.key_at(), draft.key.bytes);
        crash::point("append.half-filled");
        area.ground.copy_in(at + head.value_at(), draft.value);
        crash::point("append.filled");
    }

    /// Changes the expiry of an appended record in place, if the record has a word for an expiry.
    pub(in crate::file) fn set_expiration(&self, expiration: Expiration) {
        if self.head.has_expiry() {
            self.area.entry(self.segment).raise_expiry(expiration.ms);
            let at = self.area.geometry.segments + self.offset + Head::EXPIRY_AT;
            let word = expiration.encode(self.head.version());
            self.area.ground.store(at, word, IN_ORDER);
        }
    }
}

impl<'a> Draft<'a> {
    /// Returns the draft of a record of this version, with a word for the expiry if the record
    /// expires or if `has_expiry`.
    #[inline]
    pub(in crate::file) fn new(
        key: Key<'a>,
        value: &'a [u8],
        version: u64,
        expires_ms: u64,
        has_expiry: bool,
    ) -> Self {
        let head = Head::new(
            version,
            key.bytes.len() as u64,
            value.len() as u64,
            has_expiry || expires_ms != u64::MAX,
            key.has_namespace,
        );
        let checksum = head.checksum(key.hash, value);
        Self { key, value, expires_ms, has_groups: false, head, checksum }
    }

    /// Returns this draft of a record, marked as having or not having hashes of groups at the end
    /// of its value. With marks, the record needs an expiry word.
    #[inline]
    pub(in crate::file) fn with_groups(self, has_groups: bool) -> Self {
        Self { has_groups, ..self }
    }

    fn expiration(&self) -> Expiration {
        Expiration { ms: self.expires_ms, has_groups: self.has_groups }
    }
}

/// A user of the cache file that appends records: it announces the segment that it appends to, so
/// that no other user recycles it.
#[derive(Debug)]
pub(in crate::file) struct Appender<'a, G> {
    pub(in crate::file) area: &'a Area<G>,
    pub(in crate::file) owner: Owner,
}

impl<'a, G: Ground> Appender<'a, G> {
    #[inline]
    pub(in crate::file) fn new(area: &'a Area<G>, owner: Owner) -> Self {
        Self { area, owner }
    }

    /// Announces in the cache file the segment that this user appends to, so that no process
    /// recycles it; `None` clears the announcement.
    #[inline]
    pub(in crate::file) fn set_hazard(&self, segment: Option<u32>) {
        self.area.owner_slot(self.owner.slot).set_hazard(segment);
    }

    /// Appends a record to a segment of one of the queues of segments, and opens new segments as
    /// needed.
    #[expect(clippy::inline_always, reason = "what it returns stays in registers")]
    #[inline(always)]
    pub(in crate::file) fn append(
        &self,
        queue: u32,
        draft: &Draft<'_>,
        now: &Now<'_>,
    ) -> Result<Appended<'a, G>, OpError> {
        if draft.head.bytes() <= self.area.geometry.segment_bytes()
            && let Some(appended) = self.append_to_open(queue, draft)?
        {
            return Ok(appended);
        }
        // As in `lock`.
        let appended = self.append_anyhow(queue, draft, now)?;
        Ok(appended)
    }

    /// Appends what has no room in the open segment.
    #[cold]
    fn append_anyhow(
        &self,
        queue: u32,
        draft: &Draft<'_>,
        now: &Now<'_>,
    ) -> Result<Appended<'a, G>, OpError> {
        self.area.upkeep.set_due();
        if draft.head.bytes() > self.area.geometry.segment_bytes() {
            return self.append_run(queue, draft, now.ms());
        }
        self.append_to_new(queue, draft, now.ms())
    }

    /// Appends a record to the open segment that this user of the cache file uses for a queue, if
    /// there is room in it.
    #[expect(clippy::inline_always, reason = "what it returns stays in registers")]
    #[inline(always)]
    pub(in crate::file) fn append_to_open(
        &self,
        queue: u32,
        draft: &Draft<'_>,
    ) -> Result<Option<Appended<'a, G>>, OpError> {
        let bytes = draft.head.bytes();
        let lane = self.lock_lane(queue)?;
        crash::point("append.locked");
        let Some(segment) = lane.segment() else {
            return Ok(None);
        };
        let Some(used) = self.area.room_in(queue, segment, bytes) else {
            return Ok(None);
        };
        let appended = self.extend((segment, used), draft);
        drop(lane);
        // The next record begins there.
        let next = self.area.geometry.segment_start(segment) + used + bytes;
        self.area.ground.prefetch_to_write(next, bytes.min(PREFETCHED_BYTES));
        appended.fill(draft);
        Ok(Some(appended))
    }

    /// Reserves space for a new record after the last record of a segment, and returns the record,
    /// which the caller fills with `fill` and makes an entry. There has to be room, and no
    /// concurrent call for the same segment.
    #[expect(clippy::inline_always, reason = "writers of other processes wait for it")]
    #[inline(always)]
    pub(in crate::file) fn extend(
        &self,
        (segment, used): (u32, u64),
        draft: &Draft<'_>,
    ) -> Appended<'a, G> {
        let entry = self.area.entry(segment);
        let appended = self.begin_record(segment, used, draft.head, draft.checksum);
        crash::point("append.lengths-written");
        self.set_hazard(Some(segment));
        entry.raise_expiry(draft.expires_ms);
        entry.set_used(used + draft.head.bytes());
        crash::point("append.reserved");
        appended
    }

    /// Writes the first two words (with the lengths) of a new record into its segment, and returns
    /// the record, whose key and value are still to be written.
    #[inline]
    pub(in crate::file) fn begin_record(
        &self,
        segment: u32,
        used: u64,
        head: Head,
        checksum: u64,
    ) -> Appended<'a, G> {
        let (origin, salt) = self.area.entry(segment).origin_and_salt(self.area.stamp);
        let (first, second) = head.encode(checksum ^ salt);
        let is_doubtful = origin != Origin::Sure;
        let withheld = (is_doubtful && !mutant::is_on("records-not-withheld")).then_some(second);
        let at = self.area.geometry.segment_start(segment) + used;
        // Who reads these bytes sees that the generation was raised before, by whoever that was.
        self.area.ground.fence(mutant::order("fence-before-a-record", Ordering::Release));
        self.area.ground.store(at, first, Ordering::Relaxed);
        self.area.ground.store(at + 8, withheld.map_or(second, Head::withhold), Ordering::Relaxed);
        let offset = at - self.area.geometry.segments;
        Appended { area: self.area, owner_slot: self.owner.slot, segment, offset, head, withheld }
    }
}
