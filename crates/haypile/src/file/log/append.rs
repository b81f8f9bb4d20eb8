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

/// A record (key, value and metadata) that is about to be appended to a segment.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct Draft<'a> {
    pub(in crate::file) key: Key<'a>,
    /// The value, followed by the marks of its groups, if it has any.
    pub(in crate::file) value: &'a [u8],
    /// The time at which the record expires, in ms since 1970; `u64::MAX` for never.
    pub(in crate::file) expires_ms: u64,
    pub(in crate::file) has_groups: bool,
    pub(in crate::file) head: Head,
    /// The record's checksum, computed before any lock is taken. A copied record keeps the checksum
    /// of its original, so that a damaged value does not become a valid one.
    pub(in crate::file) checksum: u64,
}

/// A record that was appended but that no index slot points to yet. Its segment is not recycled
/// while this guard lives.
#[derive(Debug)]
pub(in crate::file) struct Appended<'a, G: Ground> {
    area: &'a Area<G>,
    owner_slot: u32,
    pub(in crate::file) segment: u32,
    /// The offset of the record in the segments.
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
    /// Empties index slots left by a loss of power that already point to the new record, with the
    /// entries that they hide. To be called under the lock of the record's bucket, and before its
    /// slots are searched.
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

    /// Returns the index slot that makes the appended record an entry. To be called under the lock
    /// of its bucket, after [`drop_aliases`](Self::drop_aliases).
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

    /// Writes the parts of the record after its first two words.
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

    /// Changes the expiry of the record in place, if the record has a word for one.
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
    /// Returns the draft of a record of this version, with an expiry word if it expires or if
    /// `has_expiry`.
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

    /// Returns this draft, marked as having or not having marks of groups at the end of its value.
    /// With marks, the record needs an expiry word.
    #[inline]
    pub(in crate::file) fn with_groups(self, has_groups: bool) -> Self {
        Self { has_groups, ..self }
    }

    fn expiration(&self) -> Expiration {
        Expiration { ms: self.expires_ms, has_groups: self.has_groups }
    }
}

/// An owner (a user of the file) that appends records: it announces the segment that it appends to,
/// and nobody else opens the segments that it has taken.
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

    /// Announces the segment that the owner appends to (its hazard), so that nobody recycles it;
    /// `None` clears it.
    #[inline]
    pub(in crate::file) fn set_hazard(&self, segment: Option<u32>) {
        self.area.owner_slot(self.owner.slot).set_hazard(segment);
    }

    /// Appends a record to one of the queues of segments, and opens new segments as needed.
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

    /// Appends a record to the open segment that this owner uses for a queue, if there is room in
    /// it.
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

    /// Reserves the space of a new record behind the last record of a segment; the caller fills it.
    /// There has to be room, and no concurrent call for the same segment.
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

    /// Writes a record's first two words, which state its lengths.
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
