//! Writing a record to the end of an open segment.

use std::sync::atomic::Ordering;

use crate::file::area::now::Now;
use crate::file::area::{Area, Key, OpError, Owner};
use crate::file::crash;
use crate::file::format::record::{Head, encode_expiry};
use crate::file::format::segment::{Origin, SMALL, SegmentKind};
use crate::file::format::slot::Slot;
use crate::file::index::bucket::Bucket;
use crate::file::platform::ground::{Ground, IN_ORDER};
use crate::mutant;

/// The part of the next record that is prefetched.
const PREFETCHED_BYTES: u64 = 512;

/// A record to be.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct Draft<'a> {
    pub(in crate::file) key: Key<'a>,
    pub(in crate::file) value: &'a [u8],
    /// In ms since 1970, `u64::MAX` for never.
    pub(in crate::file) expires_ms: u64,
    pub(in crate::file) head: Head,
    /// Computed before others have to wait. That of a copy is its original's: a value that is damaged must
    /// not become a sound one.
    pub(in crate::file) checksum: u64,
}

/// A record that no slot points to yet. Its segment is not recycled while this lives.
#[derive(Debug)]
pub(in crate::file) struct Appended<'a, G: Ground> {
    area: &'a Area<G>,
    owner_slot: u32,
    pub(in crate::file) segment: u32,
    /// Where it is in the segments.
    pub(in crate::file) offset: u64,
    pub(in crate::file) head: Head,
    /// Its second word, if it has been written with a wrong checksum: a slot that a loss of power
    /// left may point to it, and must not make it an entry before its writer does.
    withheld: Option<u64>,
}

impl<G: Ground> Drop for Appended<'_, G> {
    #[inline]
    fn drop(&mut self) {
        self.area.set_hazard(self.owner_slot, None);
    }
}

impl<G: Ground> Appended<'_, G> {
    /// Empties slots that lead to it already, which a loss of power left, with what they hide. Under
    /// the lock of its bucket, and before other slots are looked for.
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

    /// The slot that makes it an entry. Under the lock of its bucket, without aliases.
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

    /// Changes the expiry, where there is a word for it.
    pub(in crate::file) fn set_expiry(&self, expires_ms: u64) {
        if self.head.has_expiry() {
            self.area.entry(self.segment).raise_expiry(expires_ms);
            let at = self.area.geometry.segments + self.offset + Head::EXPIRY_AT;
            let word = expiry_word(expires_ms, self.head.version());
            self.area.ground.store(at, word, IN_ORDER);
        }
    }
}

/// The word for an expiry, `u64::MAX` standing for never.
pub(in crate::file) fn expiry_word(expires_ms: u64, version: u64) -> u64 {
    encode_expiry((expires_ms != u64::MAX).then_some(expires_ms), version)
}

impl<'a> Draft<'a> {
    /// A record of this version, which has a word for the expiry if it expires, or if `has_expiry`.
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
        Self { key, value, expires_ms, head, checksum: head.checksum(key.hash, value) }
    }
}

impl<G: Ground> Area<G> {
    /// The queue of new entries with this time to live.
    pub(in crate::file) fn small_queue(&self, expires_ms: u64, now: &Now<'_>) -> u32 {
        if expires_ms == u64::MAX || !self.geometry.has_classes() {
            return SMALL;
        }
        match expires_ms.saturating_sub(now.ms()) / 1000 {
            0..60 => SMALL + 1,
            60..3_600 => SMALL + 2,
            3_600..86_400 => SMALL + 3,
            _ => SMALL + 4,
        }
    }

    pub(in crate::file) fn segment_named(&self, payload: u32) -> Option<u32> {
        payload.checked_sub(1).filter(|segment| *segment < self.geometry.numbers.segments)
    }

    pub(in crate::file) fn has_room(&self, queue: u32, segment: u32, bytes: u64) -> bool {
        self.room_in(queue, segment, bytes).is_some()
    }

    /// The offset in a segment at which a record of this length can begin for a queue, if there is
    /// room for it. A lane's word alone does not say it: a death or a loss of power can leave it
    /// behind. A writer uses this offset, and does not read it again: damage may come in between.
    #[expect(clippy::inline_always, reason = "writers of other processes wait for it")]
    #[inline(always)]
    pub(in crate::file) fn room_in(&self, queue: u32, segment: u32, bytes: u64) -> Option<u64> {
        let entry = self.entry(segment);
        let (state, used) = (entry.state(), entry.used());
        let has_room = (state.kind == SegmentKind::Open
            || mutant::is_on("sealed-segments-have-room"))
            && state.queue == queue
            && self.origin(segment) != Origin::Earlier
            && entry.epoch() == self.epoch()
            && used.is_multiple_of(8)
            && used.saturating_add(bytes) <= self.geometry.segment_bytes();
        has_room.then_some(used)
    }

    /// Appends a record to a queue, and opens segments as needed.
    #[expect(clippy::inline_always, reason = "what it returns stays in registers")]
    #[inline(always)]
    pub(in crate::file) fn append(
        &self,
        owner: Owner,
        queue: u32,
        draft: &Draft<'_>,
        now: &Now<'_>,
    ) -> Result<Appended<'_, G>, OpError> {
        if draft.head.bytes() <= self.geometry.segment_bytes()
            && let Some(appended) = self.append_to_open(owner, queue, draft)?
        {
            return Ok(appended);
        }
        // As in `lock`.
        let appended = self.append_anyhow(owner, queue, draft, now)?;
        Ok(appended)
    }

    /// Appends what has no room in the open segment.
    #[cold]
    fn append_anyhow(
        &self,
        owner: Owner,
        queue: u32,
        draft: &Draft<'_>,
        now: &Now<'_>,
    ) -> Result<Appended<'_, G>, OpError> {
        self.upkeep.set_due();
        if draft.head.bytes() > self.geometry.segment_bytes() {
            return self.append_run(owner, queue, draft, now.ms());
        }
        self.append_to_new(owner, queue, draft, now.ms())
    }

    /// Appends a record to the segment that is open in the lane of this owner for a queue, if there is
    /// room in it.
    #[expect(clippy::inline_always, reason = "what it returns stays in registers")]
    #[inline(always)]
    pub(in crate::file) fn append_to_open(
        &self,
        owner: Owner,
        queue: u32,
        draft: &Draft<'_>,
    ) -> Result<Option<Appended<'_, G>>, OpError> {
        let bytes = draft.head.bytes();
        let lane = self.lock_lane(owner, queue)?;
        crash::point("append.locked");
        let Some(segment) = self.segment_named(lane.payload()) else {
            return Ok(None);
        };
        let Some(used) = self.room_in(queue, segment, bytes) else {
            return Ok(None);
        };
        let appended = self.extend(owner, (segment, used), draft);
        drop(lane);
        // The next record begins there.
        let next = self.geometry.segment_start(segment) + used + bytes;
        self.ground.prefetch_to_write(next, bytes.min(PREFETCHED_BYTES));
        self.fill(&appended, draft);
        Ok(Some(appended))
    }

    /// Makes the end of what is used of a segment a record, which is to be filled. There has to be
    /// room, and nobody else who does so concurrently.
    #[expect(clippy::inline_always, reason = "writers of other processes wait for it")]
    #[inline(always)]
    pub(in crate::file) fn extend(
        &self,
        owner: Owner,
        (segment, used): (u32, u64),
        draft: &Draft<'_>,
    ) -> Appended<'_, G> {
        let entry = self.entry(segment);
        let appended = self.begin_record(owner.slot, segment, used, draft.head, draft.checksum);
        crash::point("append.lengths-written");
        self.set_hazard(owner.slot, Some(segment));
        entry.raise_expiry(draft.expires_ms);
        entry.set_used(used + draft.head.bytes());
        crash::point("append.reserved");
        appended
    }

    /// Writes a record's first two words, which say how long it is.
    #[inline]
    pub(in crate::file) fn begin_record(
        &self,
        owner_slot: u32,
        segment: u32,
        used: u64,
        head: Head,
        checksum: u64,
    ) -> Appended<'_, G> {
        let (origin, salt) = self.entry(segment).origin_and_salt(self.stamp);
        let (first, second) = head.encode(checksum ^ salt);
        let is_doubtful = origin != Origin::Sure;
        let withheld = (is_doubtful && !mutant::is_on("records-not-withheld")).then_some(second);
        let at = self.geometry.segment_start(segment) + used;
        // Who reads these bytes sees that the generation was raised before, by whoever that was.
        self.ground.fence(mutant::order("fence-before-a-record", Ordering::Release));
        self.ground.store(at, first, Ordering::Relaxed);
        self.ground.store(at + 8, withheld.map_or(second, Head::withhold), Ordering::Relaxed);
        let offset = at - self.geometry.segments;
        Appended { area: self, owner_slot, segment, offset, head, withheld }
    }

    /// Writes what follows a record's first two words.
    #[inline]
    pub(in crate::file) fn fill(&self, appended: &Appended<'_, G>, draft: &Draft<'_>) {
        let (at, head) = (self.geometry.segments + appended.offset, appended.head);
        if head.has_expiry() {
            let word = expiry_word(draft.expires_ms, head.version());
            self.ground.store(at + Head::EXPIRY_AT, word, Ordering::Relaxed);
        }
        self.ground.copy_in(at + head.key_at(), draft.key.bytes);
        crash::point("append.half-filled");
        self.ground.copy_in(at + head.value_at(), draft.value);
        crash::point("append.filled");
    }
}
