//! Reading, which takes no lock and waits for nobody.

use crate::file::area::{Area, Key, OpError};
use crate::file::format::slot::{MAX_FREQUENCY, Slot};
use crate::file::index::chain::{MOST_LINES, link_in, slot_in, slots_of_line};
use crate::file::platform::ground::Ground;
use crate::mutant;

/// The number of times that a read begins again before it is a miss.
const ATTEMPTS: u32 = 64;
/// The state of an entry that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) struct Seen {
    pub(in crate::file) version: u64,
    /// In ms since 1970, `u64::MAX` for never.
    pub(in crate::file) expires_ms: u64,
    /// Whether it has room for an expiry.
    pub(in crate::file) has_expiry: bool,
    pub(in crate::file) segment: u32,
    pub(in crate::file) slot: Slot,
    pub(in crate::file) slot_at: u64,
}

/// The outcome of reading one slot.
enum Look {
    Found(Seen),
    /// It is of another key, or of no use.
    Other,
    /// It changed while it was read.
    Changed,
    /// It leads astray, or to bytes that are not those that were written.
    Damaged,
}

/// The outcome of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Search {
    Found(Seen),
    Nothing,
    Damaged,
    /// It changed each time that it was read.
    Contended,
}

impl<G: Ground> Area<G> {
    /// As [`search`](Self::search), in line; with `verifies`, the checksum is compared even if the record is
    /// not in doubt.
    #[expect(clippy::inline_always, reason = "the hottest path of all")]
    #[inline(always)]
    pub(in crate::file) fn search_inline(
        &self,
        key: &Key<'_>,
        mut value: Option<&mut Vec<u8>>,
        verifies: bool,
    ) -> Result<Search, OpError> {
        let bucket = self.geometry.bucket_of(key.hash);
        let first = self.geometry.bucket(bucket);
        let tag = Slot::tag_of(key.hash);
        'again: for _ in 0..ATTEMPTS {
            let (mut at, mut line) = (first, self.ground.line(first));
            let mut next = link_in(line);
            for _ in 0..MOST_LINES {
                for word in slots_of_line(0) {
                    let slot = slot_in(line, word);
                    if !slot.has_tag(tag) {
                        continue;
                    }
                    let place = (line, word, at + word);
                    match self.look(key, place, slot, value.as_deref_mut(), verifies)? {
                        Look::Found(seen) => return Ok(Search::Found(seen)),
                        Look::Other => {}
                        Look::Changed => continue 'again,
                        // What comes after it may be older.
                        Look::Damaged => return Ok(Search::Damaged),
                    }
                }
                if next == 0 {
                    break;
                }
                let Some((follower, word)) = self.follow(bucket, next) else {
                    // Unlinked concurrently; or garbage, and then this ends with the attempts.
                    continue 'again;
                };
                (at, line, next) = (follower, self.ground.line(follower), word.payload());
            }
            // An entry that was there all the time was not missed: its slot stays where it is, and only an
            // empty last line is unlinked.
            return Ok(Search::Nothing);
        }
        Ok(Search::Contended)
    }

    /// Finds a key, and puts its value into `value` where there is one. Whether the entry has
    /// expired is left to the caller.
    pub(in crate::file) fn search(
        &self,
        key: &Key<'_>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<Search, OpError> {
        self.search_inline(key, value, false)
    }

    /// As [`search`](Self::search), and compares the checksum of what it finds.
    #[cold]
    pub(in crate::file) fn search_verified(
        &self,
        key: &Key<'_>,
        value: &mut Vec<u8>,
    ) -> Result<Search, OpError> {
        self.search_inline(key, Some(value), true)
    }

    #[expect(clippy::inline_always, reason = "the hottest path of all")]
    #[inline(always)]
    fn look(
        &self,
        key: &Key<'_>,
        (line, word, at): (G::Line<'_>, u64, u64),
        slot: Slot,
        value: Option<&mut Vec<u8>>,
        verifies: bool,
    ) -> Result<Look, OpError> {
        let Some(segment) = self.segment_of(slot) else {
            return Ok(Look::Other);
        };
        self.prefetch_record(slot);
        let entry = self.entry(segment);
        let generation = entry.generation();
        let is_in_doubt = self.is_in_doubt(segment) || verifies;
        // At this moment the slot points to the record: in this generation, or in a later one, which
        // the check at the end finds.
        let slot = match slot_in(line, word) {
            _ if mutant::is_on("slot-not-read-again") => slot,
            again if again.is_same(slot) => again,
            _ => return Ok(Look::Changed),
        };
        let is_current = entry.epoch() == self.epoch() || mutant::is_on("reader-ignores-epochs");
        let record = self.record(slot, segment).filter(|_| is_current);
        let Some(record) = record.filter(|record| self.is_of(record, key)) else {
            let is_astray = is_current && is_in_doubt && self.is_astray(slot, segment, key.hash)?;
            if entry.generation_after() != generation {
                return Ok(Look::Changed);
            }
            return Ok(if is_astray { Look::Damaged } else { Look::Other });
        };
        let expires_ms = self.expires_ms(&record);
        let is_right = match value {
            Some(value) => {
                self.copy_value(&record, value)?;
                !is_in_doubt || self.is_right(key.hash, &record, value)
            }
            None => !is_in_doubt || self.is_whole(key.hash, &record)?,
        };
        if entry.generation_after() != generation
            && !mutant::is_on("generation-not-compared-after-the-copy")
        {
            return Ok(Look::Changed);
        }
        if !is_right {
            return Ok(Look::Damaged);
        }
        Ok(Look::Found(Seen {
            version: record.head.version(),
            expires_ms,
            has_expiry: record.head.has_expiry(),
            segment,
            slot,
            slot_at: at,
        }))
    }

    /// Prefetches what a write of a key reads first.
    #[inline]
    pub(in crate::file) fn prefetch_write(&self, hash: u64) {
        let bucket = self.geometry.bucket(self.geometry.bucket_of(hash));
        self.ground.prefetch_to_write(bucket, 8);
        self.prefetch_ghosts(hash);
    }

    /// The likely slot of a key, by its tag alone; prefetches its record.
    #[inline]
    pub(in crate::file) fn guess(&self, hash: u64) -> Option<Slot> {
        let bucket = self.geometry.bucket_of(hash);
        let tagged = |_, slot: Slot| slot.is_tagged(hash).then_some(slot);
        let slot = self.scan(bucket, self.link_of(bucket), tagged)?;
        self.prefetch_record(slot);
        Some(slot)
    }

    /// Prefetches what operations on keys with these hashes read, so that they wait for memory together
    /// and not one after the other.
    pub(in crate::file) fn prefetch_keys(&self, hashes: &[u64]) {
        for hash in hashes {
            self.ground.prefetch(self.geometry.bucket(self.geometry.bucket_of(*hash)));
        }
        for hash in hashes {
            if let Some(segment) = self.guess(*hash).and_then(|slot| self.segment_of(slot)) {
                self.ground.prefetch(self.geometry.segment_entry(segment));
            }
        }
    }

    /// Notes a use. It may be lost.
    pub(in crate::file) fn note_use(&self, seen: &Seen) {
        if seen.slot.frequency() < MAX_FREQUENCY {
            let _ = self.ground.exchange(seen.slot_at, seen.slot.0, seen.slot.used().0);
        }
    }
}
