//! Changes of entries.

use haypile_policy::rules::file::{Queue, queue_of_write};

use crate::file::area::now::Now;
use crate::file::area::wait::Wait;
use crate::file::area::{Area, Holder, Key, OpError, Owner, Record};
use crate::file::crash;
use crate::file::format::counter::Counter;
use crate::file::format::layout::Geometry;
use crate::file::format::record::{Expiration, Head};
use crate::file::format::segment::{MAIN, Origin, SMALL};
use crate::file::format::slot::Slot;
use crate::file::index::bucket::{Bucket, Matches};
use crate::file::index::doubt::Meaning;
use crate::file::log::append::{Appended, Appender, Draft};
use crate::file::log::ghosts::Ghosts;
use crate::file::log::survey::queue_of;
use crate::file::operations::leases::{KnownEntry, LeasedKey};
use crate::file::operations::prefetch::{guess, prefetch_write};
use crate::file::operations::read::{Lookup, Search};
use crate::file::platform::ground::{Ground, IN_ORDER};
use crate::groups::Hashes;
use crate::mutant;
use crate::removals::Since;
use crate::stats::Event;
use crate::write::{WriteMode, Written};

/// The expiry of an entry that is written: a time, or the expiry of the entry that it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Expiry {
    /// The entry expires at this time, in ms since 1970; `u64::MAX` for never.
    At(u64),
    /// The entry expires when the one that it replaces does.
    Kept,
}

/// The arguments of a write of one entry to the cache file: key, value, condition, expiry, version.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct Write<'a> {
    pub(in crate::file) key: Key<'a>,
    /// The value to write, followed by the hashes of its groups, if it has any.
    pub(in crate::file) value: &'a [u8],
    pub(in crate::file) has_groups: bool,
    /// The groups of the value to write, if the write is to be refused when one of them was
    /// invalidated after its lease was granted.
    pub(in crate::file) groups: Option<&'a Hashes>,
    pub(in crate::file) mode: WriteMode,
    /// The hash of the namespace of the key to write, which only writes under a lease need.
    pub(in crate::file) namespace: Option<u64>,
    pub(in crate::file) expiry: Expiry,
    /// The version of the entry to write; if only the expiry changes, the version of the entry that
    /// it replaces.
    pub(in crate::file) version: u64,
    pub(in crate::file) now: &'a Now<'a>,
}

/// The outcome of writing an entry to the cache file: that of the write's condition, or that the
/// entry has the version to be written, or a higher one, already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum WriteOutcome {
    Written(Written),
    /// Nothing was written: the entry has this version already, or a higher one from before a loss
    /// of power.
    Outrun,
}

/// A writer: a user of the cache file that writes, deletes and touches entries.
#[derive(Debug)]
pub(in crate::file) struct Writer<'a, G> {
    appender: Appender<'a, G>,
}

impl<'a, G: Ground> Writer<'a, G> {
    #[inline]
    pub(in crate::file) fn new(area: &'a Area<G>, owner: Owner) -> Self {
        Self { appender: Appender::new(area, owner) }
    }

    #[inline]
    fn area(&self) -> &'a Area<G> {
        self.appender.area
    }

    /// Writes an entry to the cache file, if the condition of the write holds.
    pub(in crate::file) fn write(&self, write: &Write<'_>) -> Result<WriteOutcome, OpError> {
        let area = self.area();
        let now = write.now;
        prefetch_write(area, write.key.hash);
        // What is not unconditional is judged before: a hopeless write costs no room.
        let is_plain = write.mode == WriteMode::Set && write.expiry != Expiry::Kept;
        let (mut expires_ms, mut has_expiry) = (u64::MAX, false);
        let found = if is_plain {
            None
        } else {
            let search = Lookup::new(area, &write.key).search(None)?;
            if let WriteMode::Leased(lease) = write.mode {
                let since = self.leased(write).look(lease)?;
                if self.is_revoked(since) {
                    return Ok(WriteOutcome::Written(Written::Revoked));
                }
            }
            let valid = match search {
                Search::Found(seen) => Some(seen).filter(|seen| now.is_before(seen.expires_ms)),
                Search::Nothing | Search::Damaged | Search::Contended => None,
            };
            let written = judge(write.mode, valid.map(|seen| seen.version));
            if written != Written::Stored && search != Search::Contended {
                return Ok(WriteOutcome::Written(written));
            }
            if let Some(seen) = valid {
                (expires_ms, has_expiry) = (seen.expires_ms, seen.has_expiry);
            }
            valid.map(|seen| seen.slot)
        };
        if let Expiry::At(at) = write.expiry {
            (expires_ms, has_expiry) = (at, false);
        }
        let (key, value, version) = (write.key, write.value, write.version);
        let has_expiry = has_expiry || write.has_groups;
        let draft =
            Draft::new(key, value, version, expires_ms, has_expiry).with_groups(write.has_groups);
        // After the checksum was computed, which takes as long as the bucket takes to come.
        let old = if is_plain { guess(area, key.hash) } else { found };
        let queue = self.queue_for(&key, old, expires_ms, now);
        let (appended, mut bucket, epoch) = self.append_in_epoch(queue, &draft, now)?;
        appended.drop_aliases(&mut bucket, key.hash)?;
        let simple = bucket.find_simply(&key, epoch);
        let (found, readable) = if let Some(simple) = simple {
            (Matches::default(), simple.entry)
        } else {
            bucket.find_readable(&key, epoch)?
        };
        if let WriteMode::Leased(lease) = write.mode {
            let entry = match &readable {
                Some(found) => KnownEntry::Version(found.record.head.version()),
                None if found.hides_something() => KnownEntry::Unreadable,
                None => KnownEntry::None,
            };
            if self.is_revoked(self.leased(write).since(lease, epoch, entry)) {
                return Ok(WriteOutcome::Written(Written::Revoked));
            }
        }
        if let Some(found) = &readable
            && self.is_outrun(&found.record, version)
            && !write.keeps_version()
        {
            return Ok(WriteOutcome::Outrun);
        }
        let valid = readable.filter(|found| now.is_before(area.expires_ms(&found.record)));
        let written = judge(write.mode, valid.map(|found| found.record.head.version()));
        if written != Written::Stored {
            return Ok(WriteOutcome::Written(written));
        }
        if let (Expiry::Kept, Some(found)) = (write.expiry, valid) {
            let kept = area.expires_ms(&found.record);
            if kept != u64::MAX && !draft.head.has_expiry() {
                // It was touched concurrently and has no room for that: as if the write came
                // before.
                return Ok(WriteOutcome::Written(Written::Changed));
            }
            appended.set_expiration(Expiration { ms: kept, has_groups: write.has_groups });
        }
        let frequency = valid.map_or(0, |found| found.slot.frequency());
        let at = if let Some(simple) = simple {
            // Before the slot changes: as long as it points there, the segment is not refilled.
            if let Some(old) = &simple.entry {
                area.remove_live(
                    self.appender.owner.slot,
                    old.record.segment,
                    old.record.head.bytes(),
                );
            }
            simple.at
        } else {
            self.slot_for(&mut bucket, &found)?
        };
        let slot = appended.publishable(key.hash, frequency);
        area.add_live(self.appender.owner.slot, appended.segment, appended.head.bytes());
        crash::point("set.counted");
        bucket.put(at, slot);
        if simple.is_none() && !mutant::is_on("write-leaves-other-slots") {
            bucket.empty(found.others.iter());
        }
        crash::point("set.published");
        drop(bucket);
        Ok(WriteOutcome::Written(Written::Stored))
    }

    /// Returns whether what came of a key revokes a lease on it. Counts where that is not known.
    #[cold]
    fn is_revoked(&self, since: Since) -> bool {
        if since == Since::Unsure {
            self.area().count(self.appender.owner.counting(), Counter::Unsure, 1);
        }
        since != Since::Nothing
    }

    fn leased(&self, write: &Write<'a>) -> LeasedKey<'a, G> {
        let Write { key, namespace, groups, .. } = *write;
        LeasedKey { area: self.area(), key, namespace, groups }
    }

    /// Returns whether a version is not above that of a record which was written under an earlier stamp, or
    /// is the same. Notes the version of such a record.
    #[inline]
    fn is_outrun(&self, record: &Record, version: u64) -> bool {
        self.area().note_version(record);
        let found = record.head.version();
        version == found
            || (version < found && self.area().origin(record.segment) == Origin::Earlier)
    }

    /// Appends a record, and locks its bucket: both in one epoch. What is published in a later one would
    /// undo what was cleared; in an earlier one, hide what was set since. Busy if everything is cleared
    /// again and again in between.
    #[expect(clippy::inline_always, reason = "what it returns stays in registers")]
    #[inline(always)]
    fn append_in_epoch(
        &self,
        queue: u32,
        draft: &Draft<'_>,
        now: &Now<'_>,
    ) -> Result<(Appended<'a, G>, Bucket<'a, G>, u64), OpError> {
        let appended = self.appender.append(queue, draft, now)?;
        let bucket = Bucket::lock(self.area(), self.appender.owner, draft.key.hash)?;
        let epoch = self.area().epoch();
        if self.is_of_epoch(&appended, epoch) {
            return Ok((appended, bucket, epoch));
        }
        drop((appended, bucket));
        // As in `lock`.
        let again = self.append_again(queue, draft, now)?;
        Ok(again)
    }

    /// Tries again, as the first attempt did: a step that both call, which returns an `Option` of all this, makes an
    /// overwrite of a hot key 5 % slower.
    #[cold]
    fn append_again(
        &self,
        queue: u32,
        draft: &Draft<'_>,
        now: &Now<'_>,
    ) -> Result<(Appended<'a, G>, Bucket<'a, G>, u64), OpError> {
        let mut wait = Wait::default();
        loop {
            wait.again(&self.area().ground, Holder::Running)?;
            let appended = self.appender.append(queue, draft, now)?;
            let bucket = Bucket::lock(self.area(), self.appender.owner, draft.key.hash)?;
            let epoch = self.area().epoch();
            if self.is_of_epoch(&appended, epoch) {
                return Ok((appended, bucket, epoch));
            }
        }
    }

    fn is_of_epoch(&self, appended: &Appended<'_, G>, epoch: u64) -> bool {
        self.area().entry(appended.segment).epoch() == epoch
            || mutant::is_on("epoch-not-compared-under-the-lock")
    }

    /// Returns where the slot of a new entry goes: where the key was found, or an empty slot, or that of an
    /// entry that leaves for it. Takes the entry that was there off the counts.
    fn slot_for(&self, bucket: &mut Bucket<'_, G>, found: &Matches) -> Result<u64, OpError> {
        if let Some(first) = &found.first {
            // Before the slot changes: as long as it points there, the segment is not refilled.
            if let Meaning::Entry(record) = first.meaning {
                self.area().remove_live(
                    self.appender.owner.slot,
                    record.segment,
                    record.head.bytes(),
                );
            }
            return Ok(first.at);
        }
        if let Some(at) = bucket.vacancy() {
            return Ok(at);
        }
        let (at, coldest) = bucket.coldest().ok_or(OpError::Full)?;
        if let Some(hash) = self.area().hash_at(coldest)? {
            bucket.note_removal(hash);
        }
        bucket.drop_hidden(at, coldest)?;
        match self.area().live_record(coldest, self.area().epoch()) {
            Some(record) if !self.area().is_in_doubt(record.segment) => {
                self.area().remove_live(
                    self.appender.owner.slot,
                    record.segment,
                    record.head.bytes(),
                );
            }
            _ => self.area().invalidate_counts(),
        }
        self.area().count(self.appender.owner.counting(), Event::Eviction, 1);
        self.area().count(self.appender.owner.counting(), Counter::Crowded, 1);
        Ok(at)
    }

    fn queue_for(&self, key: &Key<'_>, old: Option<Slot>, expires_ms: u64, now: &Now<'_>) -> u32 {
        let old = old.and_then(|slot| self.area().segment_of(slot));
        let old = old.map(|segment| queue_of(self.area().entry(segment).state()));
        match queue_of_write(old, || Ghosts::of(self.area()).recall(key.hash)) {
            Queue::Main => MAIN,
            Queue::Small => small_queue(&self.area().geometry, expires_ms, now),
        }
    }

    /// Deletes the entry of a key, if it has the given version or none is given; returns whether it
    /// was deleted.
    pub(in crate::file) fn delete(
        &self,
        key: &Key<'_>,
        version: Option<u64>,
        now: &Now<'_>,
    ) -> Result<bool, OpError> {
        let area = self.area();
        // Somebody may be computing the value of an absent key: only its bucket's lock orders the two.
        let may_stay = version.is_some() || mutant::is_on("absent-keys-are-not-removed");
        if may_stay && Lookup::new(area, key).search(None)? == Search::Nothing {
            return Ok(false);
        }
        let mut bucket = Bucket::lock(area, self.appender.owner, key.hash)?;
        let found = bucket.find(key, area.epoch())?;
        let entry = bucket.readable(key, &found)?;
        let was_there = entry.is_some_and(|found| now.is_before(area.expires_ms(&found.record)));
        let found_version = entry.map(|found| found.record.head.version());
        if version.is_some_and(|version| found_version != Some(version) || !was_there) {
            return Ok(false);
        }
        if let Some(found) = &entry {
            area.note_version(&found.record);
        }
        if mutant::is_on("removal-noted-after-the-slot") {
            bucket.empty(found.all());
        }
        bucket.note_removal(key.hash);
        bucket.empty(found.all());
        crash::point("delete.emptied");
        bucket.shrink();
        Ok(was_there)
    }

    /// Removes the entries of an index bucket that `is_chosen` selects, by their keys and by
    /// whether these begin with a namespace. Expired ones are removed as well, because a clock may
    /// be set back. It takes the lock even of an empty bucket, which orders a concurrent write
    /// before the removal or after it.
    pub(in crate::file) fn clear_bucket(
        &self,
        number: u32,
        is_chosen: impl Fn(&[u8], bool) -> bool,
    ) -> Result<(), OpError> {
        let area = self.area();
        let mut bucket = Bucket::lock_number(area, self.appender.owner, number)?;
        let epoch = area.epoch();
        let mut bytes = Vec::new();
        for slot in area.slots_of(number) {
            let Some(record) = area.live_record(slot, epoch) else { continue };
            let key = area.key_of(&record, &mut bytes)?;
            // What a slot in doubt shows may be of another bucket.
            let is_at_home = area.geometry.bucket_of(key.hash) == number;
            if !is_at_home || !is_chosen(key.bytes, key.has_namespace) {
                continue;
            }
            let found = bucket.find(&key, epoch)?;
            bucket.note_removal(key.hash);
            bucket.empty(found.all());
            crash::point("clear.emptied");
        }
        bucket.shrink();
        Ok(())
    }

    /// Changes the expiry of an entry in place; returns `None` if its record has no word for an
    /// expiry, so that the entry has to be written again.
    pub(in crate::file) fn touch(
        &self,
        key: &Key<'_>,
        expires_ms: u64,
        now: &Now<'_>,
    ) -> Result<Option<bool>, OpError> {
        let area = self.area();
        let bucket = Bucket::lock(area, self.appender.owner, key.hash)?;
        let found = bucket.find(key, area.epoch())?;
        let found = bucket.readable(key, &found)?;
        let Some(found) = found.filter(|found| now.is_before(area.expires_ms(&found.record)))
        else {
            return Ok(Some(false));
        };
        if !found.record.head.has_expiry() {
            return Ok((expires_ms == u64::MAX).then_some(true));
        }
        if !mutant::is_on("touch-does-not-raise-the-segment") {
            area.entry(found.record.segment).raise_expiry(expires_ms);
        }
        crash::point("touch.raised");
        let has_groups =
            area.expiration(&found.record).has_groups && !mutant::is_on("touch-forgets-the-groups");
        let word = Expiration { ms: expires_ms, has_groups }.encode(found.record.head.version());
        let at = found.record.at + Head::EXPIRY_AT;
        area.ground.store(at, word, IN_ORDER);
        Ok(Some(true))
    }
}

impl Write<'_> {
    /// Returns whether only the expiry of an entry changes, and its version stays.
    fn keeps_version(&self) -> bool {
        matches!(self.mode, WriteMode::Cas(wanted) if wanted.raw() == self.version)
    }
}

/// Returns the outcome of a write, where there is an entry of this version or none.
fn judge(mode: WriteMode, version: Option<u64>) -> Written {
    match (mode, version) {
        (WriteMode::Add, Some(_)) => Written::Exists,
        (WriteMode::Replace | WriteMode::Cas(_), None) => Written::Absent,
        (WriteMode::Cas(wanted), Some(version)) if wanted.raw() != version => Written::Changed,
        // A lease is judged by what its holder knew of the key.
        (WriteMode::Set | WriteMode::Replace | WriteMode::Cas(_) | WriteMode::Leased(_), _)
        | (WriteMode::Add, None) => Written::Stored,
    }
}

/// Returns the queue of new entries with this time to live.
fn small_queue(geometry: &Geometry, expires_ms: u64, now: &Now<'_>) -> u32 {
    if expires_ms == u64::MAX || !geometry.has_classes() {
        return SMALL;
    }
    match expires_ms.saturating_sub(now.ms()) / 1000 {
        0..60 => SMALL + 1,
        60..3_600 => SMALL + 2,
        3_600..86_400 => SMALL + 3,
        _ => SMALL + 4,
    }
}
