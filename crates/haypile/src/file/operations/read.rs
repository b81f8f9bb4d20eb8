//! Reads, which take no lock and wait for no other process.

use crate::file::area::{Area, Key, OpError};
use crate::file::format::record::Expiration;
use crate::file::format::slot::{MAX_FREQUENCY, Slot};
use crate::file::index::chain::{MOST_LINES, link_in, slot_in, slots_of_line};
use crate::file::platform::ground::Ground;
use crate::groups::Marks;
use crate::mutant;

/// The number of times that a read begins again before it is a miss.
const ATTEMPTS: u32 = 64;
/// The state of an entry that a lookup of its key found: version, expiry, and position in the cache
/// file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) struct Seen {
    pub(in crate::file) version: u64,
    /// The time at which the found entry expires, in ms since 1970; `u64::MAX` for never.
    pub(in crate::file) expires_ms: u64,
    /// Whether the record of the found entry has a word for an expiry.
    pub(in crate::file) has_expiry: bool,
    /// Whether the found entry belongs to groups, which invalidate entries together.
    pub(in crate::file) has_groups: bool,
    pub(in crate::file) segment: u32,
    pub(in crate::file) slot: Slot,
    pub(in crate::file) slot_at: u64,
}

impl Seen {
    /// Counts a use of the found entry in its index slot; a concurrent change may lose the count.
    pub(in crate::file) fn note_use(&self, ground: &impl Ground) {
        if self.slot.frequency() < MAX_FREQUENCY {
            let _ = ground.exchange(self.slot_at, self.slot.0, self.slot.used().0);
        }
    }
}

/// Takes the marks of groups from the end of what was read.
#[cold]
#[inline(never)]
fn cut_marks(value: &mut Vec<u8>) {
    let marks = Marks::at_end_of(value).map_or(0, |marks| marks.bytes);
    value.truncate(value.len() - marks);
}

/// The outcome of reading one slot.
enum Look {
    Found(Seen),
    /// The slot is of another key, or of no use.
    Other,
    /// The slot changed while it was read.
    Changed,
    /// The slot leads astray, or to bytes that are not those that were written.
    Damaged,
}

/// The outcome of searching for a key in a cache file: found, missing, damaged, or changed each
/// time that it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Search {
    Found(Seen),
    Nothing,
    Damaged,
    /// The entry changed each time that it was read.
    Contended,
}

/// A lookup of a key in a cache file, without a lock.
#[derive(Debug)]
pub(in crate::file) struct Lookup<'a, 'k, G> {
    pub(in crate::file) area: &'a Area<G>,
    pub(in crate::file) key: &'k Key<'k>,
    /// Whether values are returned with the marks of their groups.
    keeps_marks: bool,
}

impl<G> Clone for Lookup<'_, '_, G> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<G> Copy for Lookup<'_, '_, G> {}

impl<'a, 'k, G: Ground> Lookup<'a, 'k, G> {
    #[inline]
    pub(in crate::file) fn new(area: &'a Area<G>, key: &'k Key<'k>) -> Self {
        Self { area, key, keeps_marks: false }
    }

    /// Makes this lookup of a key return the value with the hashes of its groups at the end.
    pub(in crate::file) fn with_marks(self) -> Self {
        Self { keeps_marks: true, ..self }
    }

    /// Searches for the key like [`search`](Self::search), inlined into its caller; with
    /// `verifies`, the value's checksum is compared even if its segment is trusted.
    #[expect(clippy::inline_always, reason = "the hottest path of all")]
    #[inline(always)]
    pub(in crate::file) fn search_inline(
        self,
        mut value: Option<&mut Vec<u8>>,
        verifies: bool,
    ) -> Result<Search, OpError> {
        let Self { area, key, .. } = self;
        let bucket = area.geometry.bucket_of(key.hash);
        let first = area.geometry.bucket(bucket);
        let tag = Slot::tag_of(key.hash);
        'again: for _ in 0..ATTEMPTS {
            let (mut at, mut line) = (first, area.ground.line(first));
            let mut next = link_in(line);
            for _ in 0..MOST_LINES {
                for word in slots_of_line(0) {
                    let slot = slot_in(line, word);
                    if !slot.has_tag(tag) {
                        continue;
                    }
                    let place = (line, word, at + word);
                    match self.look(place, slot, value.as_deref_mut(), verifies)? {
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
                let Some((follower, word)) = area.follow(bucket, next) else {
                    // Unlinked concurrently; or garbage, and then this ends with the attempts.
                    continue 'again;
                };
                (at, line, next) = (follower, area.ground.line(follower), word.payload());
            }
            // An entry that was there all the time was not missed: its slot stays where it is, and only an
            // empty last line is unlinked.
            return Ok(Search::Nothing);
        }
        Ok(Search::Contended)
    }

    /// Finds the entry of a key in a cache file, copies its value into `value`, if given, and
    /// returns the entry's state (version, expiry, position). The caller decides whether the entry
    /// has expired.
    pub(in crate::file) fn search(self, value: Option<&mut Vec<u8>>) -> Result<Search, OpError> {
        self.search_inline(value, false)
    }

    /// Searches for the key like [`search`](Self::search), and always compares the checksum of the
    /// value that it finds.
    #[cold]
    pub(in crate::file) fn search_verified(self, value: &mut Vec<u8>) -> Result<Search, OpError> {
        self.search_inline(Some(value), true)
    }

    #[expect(clippy::inline_always, reason = "the hottest path of all")]
    #[inline(always)]
    fn look(
        self,
        (line, word, at): (G::Line<'_>, u64, u64),
        slot: Slot,
        value: Option<&mut Vec<u8>>,
        verifies: bool,
    ) -> Result<Look, OpError> {
        let Self { area, key, keeps_marks } = self;
        let Some(segment) = area.segment_of(slot) else {
            return Ok(Look::Other);
        };
        area.prefetch_record(slot);
        let entry = area.entry(segment);
        let generation = entry.generation();
        let is_in_doubt = area.is_in_doubt(segment) || verifies;
        // At this moment the slot points to the record: in this generation, or in a later one, which
        // the check at the end finds.
        let slot = match slot_in(line, word) {
            _ if mutant::is_on("slot-not-read-again") => slot,
            again if again.is_same(slot) => again,
            _ => return Ok(Look::Changed),
        };
        let is_current = entry.epoch() == area.epoch() || mutant::is_on("reader-ignores-epochs");
        let record = area.record(slot, segment).filter(|_| is_current);
        let Some(record) = record.filter(|record| area.is_of(record, key)) else {
            let is_astray = is_current && is_in_doubt && area.is_astray(slot, segment, key.hash)?;
            if entry.generation_after() != generation {
                return Ok(Look::Changed);
            }
            return Ok(if is_astray { Look::Damaged } else { Look::Other });
        };
        let Expiration { ms: expires_ms, has_groups } = area.validity(&record);
        let is_right = match value {
            Some(value) => {
                area.copy_value(&record, value)?;
                let is_right = !is_in_doubt || area.is_right(key.hash, &record, value);
                if has_groups && !keeps_marks {
                    cut_marks(value);
                }
                is_right
            }
            None => !is_in_doubt || area.is_whole(key.hash, &record)?,
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
            has_groups,
            segment,
            slot,
            slot_at: at,
        }))
    }
}
