//! A locked bucket, with its overflow lines.

use std::sync::atomic::Ordering;

use crate::file::area::lock::Held;
use crate::file::area::{Area, Key, OpError, Owner, Record};
use crate::file::crash;
use crate::file::format::segment::Origin;
use crate::file::format::slot::{LockWord, Slot, Token};
use crate::file::index::chain::{MOST_LINES, slots_of_line};
use crate::file::index::doubt::Meaning;
use crate::file::index::removals::Removals;
use crate::file::platform::ground::{Ground, IN_ORDER};
use crate::mutant;

/// The number of overflow lines that are searched for a free one.
const LINES_TRIED: usize = 64;

/// An index slot that was found to have the tag (stored bits of the hash) of a key, and the slot's
/// offset in the cache file.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct Found {
    pub(in crate::file) at: u64,
    pub(in crate::file) slot: Slot,
    pub(in crate::file) meaning: Meaning,
}

/// The entry that readers find for a key: its index slot and its record.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct FoundEntry {
    pub(in crate::file) slot: Slot,
    pub(in crate::file) record: Record,
}

/// The index slot to use for a key in a bucket that no clearing and no loss of power has affected:
/// the one that points to the key's record, or an empty one.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct Simple {
    pub(in crate::file) at: u64,
    pub(in crate::file) entry: Option<FoundEntry>,
}

/// The index slots that may belong to a key, in the order in which readers read them. Slots of
/// cleared entries come last, and damaged ones are included, because a write replaces them.
#[derive(Debug, Default)]
pub(in crate::file) struct Matches {
    /// The index slot where readers find the key; a new entry goes there, so that it is never
    /// missed.
    pub(in crate::file) first: Option<Found>,
    /// The other index slots with the key's tag, which a clearing or a loss of power left behind;
    /// some point to no record.
    pub(in crate::file) others: Vec<Found>,
}

impl Matches {
    fn add(&mut self, found: Found) {
        let is_cleared = |found: &Found| matches!(found.meaning, Meaning::Cleared);
        let (first, other) = match self.first {
            None => (found, None),
            Some(first)
                if is_cleared(&first)
                    && !is_cleared(&found)
                    && !mutant::is_on("new-slots-before-the-key") =>
            {
                (found, Some(first))
            }
            Some(first) => (first, Some(found)),
        };
        self.first = Some(first);
        self.others.extend(other);
    }

    /// Returns whether the key has an index slot that was written since the last clearing. If
    /// readers find no entry, the slot points to one that they cannot read.
    pub(in crate::file) fn hides_something(&self) -> bool {
        self.all().any(|found| !matches!(found.meaning, Meaning::Cleared))
    }

    pub(in crate::file) fn all(&self) -> impl DoubleEndedIterator<Item = &Found> {
        self.first.iter().chain(&self.others)
    }
}

/// A locked bucket (lines of slots for some of the keys) of the cache file's index. While it is
/// locked, other threads and processes change only the numbers of uses in its slots.
#[derive(Debug)]
pub(in crate::file) struct Bucket<'a, G: Ground> {
    area: &'a Area<G>,
    /// The slot of the owner that has the lock, which counts entries.
    owner_slot: u32,
    number: u32,
    held: Held<'a, G>,
}

/// Cuts the link of a locked bucket to a line that is not of it: what a loss of power or garbage left.
/// Nobody else changes links at the same time, so that it would stay so. Returns whether the first
/// link is such a one; it is left to the caller.
#[cold]
fn mend<G: Ground>(area: &Area<G>, number: u32, link: u32) -> bool {
    // Nearly all of those that go on have one more line.
    let next = area.follow(number, link);
    if next.is_some_and(|(_, word)| word.payload() == 0) {
        return false;
    }
    let (count, last) = count_lines(area.lines(number, link));
    if count > 1 && LockWord(area.ground.load(last, Ordering::Relaxed)).payload() != 0 {
        let word = LockWord::new(Token(number + 1), 0);
        area.ground.store(last, word.0, IN_ORDER);
    }
    count == 1
}

/// Returns the number of lines, and where the last begins.
fn count_lines(lines: impl Iterator<Item = u64>) -> (usize, u64) {
    lines.fold((0, 0), |(count, _), line| (count + 1, line))
}

impl<'a, G: Ground> Bucket<'a, G> {
    /// Locks the bucket of the index that the key with this hash belongs to.
    #[expect(clippy::inline_always, reason = "what it returns stays in registers")]
    #[inline(always)]
    pub(in crate::file) fn lock(
        area: &'a Area<G>,
        owner: Owner,
        hash: u64,
    ) -> Result<Self, OpError> {
        Self::lock_number(area, owner, area.geometry.bucket_of(hash))
    }

    /// Locks the bucket of the index with this number.
    #[expect(clippy::inline_always, reason = "what it returns stays in registers")]
    #[inline(always)]
    pub(in crate::file) fn lock_number(
        area: &'a Area<G>,
        owner: Owner,
        number: u32,
    ) -> Result<Self, OpError> {
        let mut held = area.lock(owner, area.geometry.bucket(number))?;
        crash::point("bucket.locked");
        if held.payload() != 0 && mend(area, number, held.payload()) {
            held.set_payload(0);
        }
        Ok(Self { area, owner_slot: owner.slot, number, held })
    }

    /// Returns the offset of each 64-byte line of an index bucket: its own line first, then its
    /// overflow lines.
    pub(in crate::file) fn lines(&self) -> impl Iterator<Item = u64> + use<'a, G> {
        self.area.lines(self.number, self.held.payload())
    }

    /// Visits every slot, with its offset, until one yields an answer.
    #[inline]
    fn scan<T>(&self, look: impl FnMut(u64, Slot) -> Option<T>) -> Option<T> {
        self.area.scan(self.number, self.held.payload(), look)
    }

    /// Searches for the only index slot of a key, or for an empty one, in a bucket that neither a
    /// clearing nor a loss of power has affected: the common case of [`find`](Self::find). `None`
    /// means that `find` is needed.
    #[inline]
    pub(in crate::file) fn find_simply(&self, key: &Key<'_>, epoch: u64) -> Option<Simple> {
        let tag = Slot::tag_of(key.hash);
        let (mut tagged, mut empty) = (None, None);
        let several = self.scan(|at, slot| {
            if slot.has_tag(tag) {
                return tagged.replace((at, slot)).map(drop);
            }
            if slot.is_empty() && empty.is_none() {
                empty = Some(at);
            }
            None
        });
        if several.is_some() {
            return None;
        }
        let Some((at, slot)) = tagged else {
            return empty.map(|at| Simple { at, entry: None });
        };
        let segment = self.area.segment_of(slot)?;
        if self.area.is_in_doubt(segment) || self.area.entry(segment).epoch() != epoch {
            return None;
        }
        let record = self.area.record(slot, segment)?;
        let is_it = self.area.is_of(&record, key);
        is_it.then_some(Simple { at, entry: Some(FoundEntry { slot, record }) })
    }

    /// Returns all index slots that may belong to a key, and the entry that readers find, which is
    /// `None` for a miss.
    #[cold]
    pub(in crate::file) fn find_readable(
        &self,
        key: &Key<'_>,
        epoch: u64,
    ) -> Result<(Matches, Option<FoundEntry>), OpError> {
        let found = self.find(key, epoch)?;
        let readable = self.readable(key, &found)?;
        Ok((found, readable))
    }

    /// Returns all index slots that may belong to a key. There are several only after a clearing or
    /// a loss of power.
    pub(in crate::file) fn find(&self, key: &Key<'_>, epoch: u64) -> Result<Matches, OpError> {
        let mut matches = Matches::default();
        let stop = self.scan(|at, slot| {
            if !slot.is_tagged(key.hash) {
                return None;
            }
            match self.area.meaning(slot, key, epoch) {
                Ok(None) => None,
                Ok(Some(meaning)) => {
                    matches.add(Found { at, slot, meaning });
                    None
                }
                Err(stop) => Some(stop),
            }
        });
        stop.map_or(Ok(matches), Err)
    }

    /// Returns the entry that readers find for a key among these index slots; `None` if they find
    /// none.
    pub(in crate::file) fn readable(
        &self,
        key: &Key<'_>,
        matches: &Matches,
    ) -> Result<Option<FoundEntry>, OpError> {
        for found in matches.all() {
            match found.meaning {
                Meaning::Cleared => {}
                Meaning::Entry(record) if self.area.is_trusted(key.hash, &record)? => {
                    return Ok(Some(FoundEntry { slot: found.slot, record }));
                }
                Meaning::Entry(_) | Meaning::Astray => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Empties these index slots, from the last to the first, so that readers never find an older
    /// entry that one of them hides.
    pub(in crate::file) fn empty<'f>(&mut self, all: impl DoubleEndedIterator<Item = &'f Found>) {
        for found in all.rev() {
            if let Meaning::Entry(record) = found.meaning {
                self.area.remove_live(self.owner_slot, record.segment, record.head.bytes());
            }
            self.put(found.at, Slot::EMPTY);
            crash::point("bucket.emptied");
        }
    }

    /// Records in the cache file that a key of this bucket is about to be removed, which revokes
    /// leases on the key; to be called before its index slot changes.
    #[inline]
    pub(in crate::file) fn note_removal(&mut self, hash: u64) {
        if !mutant::is_on("removals-are-not-noted") {
            Removals::of(self.area, hash).note();
        }
    }

    /// Returns the slot of this index bucket that points to the same record as the slot `of`, with
    /// its offset in the cache file; `None` if none does.
    pub(in crate::file) fn find_slot(&self, of: Slot) -> Option<(u64, Slot)> {
        self.scan(|at, slot| slot.is_same(of).then_some((at, slot)))
    }

    /// Empties all other index slots that point to the same record as this one, and those of older
    /// entries that it hides, before the slot is set to a copy of the record.
    pub(in crate::file) fn free_of_others(&mut self, at: u64, of: Slot) -> Result<(), OpError> {
        if self.is_sure(of) { Ok(()) } else { self.drop_behind(at, of) }
    }

    /// Empties the index slots that point to the record of this one, and those of older entries
    /// that they hide; returns whether there were any.
    pub(in crate::file) fn drop_slots(&mut self, of: Slot) -> Result<bool, OpError> {
        let Some((at, _)) = self.find_slot(of) else {
            return Ok(false);
        };
        self.drop_slot(at, of)?;
        Ok(true)
    }

    /// Empties the index slot at this offset, all others that point to the same record, and those
    /// of older entries that they hide.
    pub(in crate::file) fn drop_slot(&mut self, at: u64, of: Slot) -> Result<(), OpError> {
        self.free_of_others(at, of)?;
        self.put(at, Slot::EMPTY);
        Ok(())
    }

    /// Returns whether a slot leads to what was written when no slot led there by accident: then it is the
    /// only one that leads there, and hides nothing.
    #[inline]
    fn is_sure(&self, slot: Slot) -> bool {
        let segment = self.area.segment_of(slot);
        segment.is_some_and(|segment| self.area.origin(segment) == Origin::Sure)
    }

    /// Empties what the first slot of a record hides, and others that point to the record.
    #[cold]
    fn drop_behind(&mut self, first: u64, of: Slot) -> Result<(), OpError> {
        self.drop_hidden(first, of)?;
        if mutant::is_on("other-slots-of-a-moved-record-stay") {
            return Ok(());
        }
        let other = |at, slot: Slot| (at != first && slot.is_same(of)).then_some(at);
        while let Some(at) = self.scan(other) {
            self.put(at, Slot::EMPTY);
            // It was counted as well, perhaps.
            self.area.invalidate_counts();
        }
        Ok(())
    }

    /// Empties the index slots of older entries that an index slot hides from readers, before that
    /// slot is emptied, reused or set to another record.
    pub(in crate::file) fn drop_hidden(&mut self, at: u64, slot: Slot) -> Result<(), OpError> {
        if self.is_sure(slot) {
            return Ok(());
        }
        let hidden = self.hidden_by(at, slot)?;
        if !hidden.is_empty() {
            self.empty(hidden.iter());
            // Some of it was counted, perhaps.
            self.area.invalidate_counts();
        }
        Ok(())
    }

    /// Returns the slots behind one that would come to light if it were emptied alone: other values of its
    /// key; of one that leads astray, all that have its tag.
    fn hidden_by(&self, at: u64, slot: Slot) -> Result<Vec<Found>, OpError> {
        let mut hidden = Vec::new();
        if mutant::is_on("hidden-slots-stay") {
            return Ok(hidden);
        }
        let mut behind = Vec::new();
        let mut is_behind = false;
        let _: Option<()> = self.scan(|other_at, other| {
            if is_behind && other.is_same_tag(slot) {
                behind.push((other_at, other));
            }
            is_behind |= other_at == at;
            None
        });
        let Some(segment) = self.area.segment_of(slot).filter(|_| !behind.is_empty()) else {
            return Ok(hidden);
        };
        let epoch = self.area.epoch();
        if self.area.entry(segment).epoch() != epoch {
            return Ok(hidden);
        }
        let own = self.area.record(slot, segment);
        let is_at_home = self.area.is_at_home(self.number, slot, segment)?;
        let mut bytes = Vec::new();
        for (at, slot) in behind {
            let Some(own) = own.filter(|_| is_at_home) else {
                // It has the tag, and so perhaps the key.
                hidden.push(Found { at, slot, meaning: Meaning::Astray });
                continue;
            };
            let key = self.area.key_of(&own, &mut bytes)?;
            // A copy has the version of its original, and the same value.
            if let Some(Meaning::Entry(record)) = self.area.meaning(slot, &key, epoch)?
                && record.head.version() != own.head.version()
            {
                hidden.push(Found { at, slot, meaning: Meaning::Entry(record) });
            }
        }
        Ok(hidden)
    }

    /// Stores an index slot at an offset in this bucket, so that the slot points to another record,
    /// or to none.
    pub(in crate::file) fn put(&mut self, at: u64, slot: Slot) {
        let order = mutant::order("slot-written", Ordering::Release);
        self.area.ground.store(at, slot.0, order);
    }

    /// Returns the offset of an index slot for a new entry: an empty one, one whose record is not
    /// needed any more, or one of a new overflow line. Returns `None` if there is no room for
    /// another line.
    pub(in crate::file) fn vacancy(&mut self) -> Option<u64> {
        if let Some(at) = self.scan(|at, slot| slot.is_empty().then_some(at)) {
            return Some(at);
        }
        // Of an earlier epoch. Records are not looked at: each would be a line from memory.
        let epoch = self.area.epoch();
        let is_stale = |slot: Slot| {
            let segment = self.area.segment_of(slot);
            segment.is_none_or(|segment| self.area.entry(segment).epoch() != epoch)
        };
        let stale = self.scan(|at, slot| is_stale(slot).then_some(at));
        stale.or_else(|| self.extend())
    }

    /// Returns the index slot of the least often used entry of this bucket, to be evicted because
    /// the bucket is full, and the slot's offset in the cache file.
    pub(in crate::file) fn coldest(&self) -> Option<(u64, Slot)> {
        let mut coldest: Option<(u64, Slot)> = None;
        let _: Option<()> = self.scan(|at, slot| {
            if coldest.is_none_or(|(_, coldest)| slot.frequency() < coldest.frequency()) {
                coldest = Some((at, slot));
            }
            None
        });
        coldest
    }

    /// Links one more line; says where its first slot is.
    fn extend(&mut self) -> Option<u64> {
        let (count, last) = count_lines(self.lines());
        if count >= MOST_LINES {
            return None;
        }
        let line = self.take_line()?;
        crash::point("bucket.line-taken");
        let to_line = line + 1;
        if count == 1 {
            self.held.set_payload(to_line);
        } else {
            let word = LockWord::new(Token(self.number + 1), to_line);
            let order = mutant::order("link-written", Ordering::Release);
            self.area.ground.store(last, word.0, order);
        }
        crash::point("bucket.line-linked");
        Some(self.area.geometry.overflow_line(line) + 8)
    }

    /// Takes an overflow line for this bucket. They are tried from a place that depends on the
    /// bucket, so that few look at the same ones.
    fn take_line(&self) -> Option<u32> {
        let area = self.area;
        let count = area.geometry.numbers.overflows;
        let spread = u64::from(self.number) * u64::from(count);
        let from = spread / u64::from(area.geometry.numbers.buckets.max(1));
        let from = u32::try_from(from).ok()?;
        let own = Token(self.number + 1);
        (from..count).chain(0..from.min(count)).take(LINES_TRIED).find(|line| {
            let at = area.geometry.overflow_line(*line);
            let word = LockWord(area.ground.load(at, Ordering::Relaxed));
            // One of its own that is not linked was left by a death in between.
            let free = word.token() == Token::NOBODY || (word.token() == own && !self.has(at));
            let taken = LockWord::new(own, 0);
            let taken = free && area.ground.exchange(at, word.0, taken.0).is_ok();
            if taken && !mutant::is_on("taken-line-not-emptied") {
                // What a death or a loss of power left in it.
                for slot in slots_of_line(at) {
                    area.ground.store(slot, 0, IN_ORDER);
                }
            }
            taken
        })
    }

    fn has(&self, line: u64) -> bool {
        self.lines().any(|at| at == line)
    }

    /// Frees the last overflow line of an index bucket if the line is empty.
    pub(in crate::file) fn shrink(&mut self) {
        if self.held.payload() == 0 {
            return;
        }
        let lines: Vec<u64> = self.lines().collect();
        let &[.., before, last] = lines.as_slice() else {
            return;
        };
        let area = self.area;
        if slots_of_line(last).any(|at| !area.slot(at).is_empty()) {
            return;
        }
        if lines.len() == 2 {
            self.held.set_payload(0);
        } else {
            let word = LockWord::new(Token(self.number + 1), 0);
            area.ground.store(before, word.0, IN_ORDER);
        }
        crash::point("bucket.line-unlinked");
        area.ground.store(last, 0, mutant::order("line-given-back", Ordering::Release));
    }
}
