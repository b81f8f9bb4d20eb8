//! Reading, which takes no lock and waits for nobody.

use super::area::{Area, Key, Record, Stop};
use super::chain::{MOST_LINES, slots_of_line};
use super::ground::Ground;
use super::slot::{MAX_FREQUENCY, Slot};
use crate::mutant;

/// The number of times that a read begins again before it is a miss.
const ATTEMPTS: u32 = 64;
/// The part of a record that is prefetched before its length is known.
const PREFETCHED_BYTES: u64 = 192;

/// The state of an entry that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) version: u64,
    /// In ms since 1970, `u64::MAX` for never.
    pub(super) expires_ms: u64,
    /// Whether it has room for an expiry.
    pub(super) has_expiry: bool,
    pub(super) segment: u32,
    pub(super) slot: Slot,
    pub(super) slot_at: u64,
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
pub(super) enum Search {
    Found(Seen),
    Nothing,
    Damaged,
    /// It changed each time that it was read.
    Contended,
}

impl<G: Ground> Area<G> {
    /// Finds a key, and puts its value into `value` where there is one. Whether the entry has
    /// expired is left to the caller.
    pub(super) fn search(
        &self,
        key: &Key<'_>,
        mut value: Option<&mut Vec<u8>>,
    ) -> Result<Search, Stop> {
        let bucket = self.geometry.bucket_of(key.hash);
        'again: for _ in 0..ATTEMPTS {
            let mut line = self.geometry.bucket(bucket);
            let mut next = self.link_of(bucket);
            for _ in 0..MOST_LINES {
                for at in slots_of_line(line) {
                    let slot = self.slot(at);
                    if !slot.is_tagged(key.hash) {
                        continue;
                    }
                    match self.look(key, at, slot, value.as_deref_mut())? {
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
                let Some((at, word)) = self.follow(bucket, next) else {
                    // Unlinked concurrently; or garbage, and then this ends with the attempts.
                    continue 'again;
                };
                (line, next) = (at, word.payload());
            }
            // An entry that was there all the time was not missed: its slot stays where it is, and only an
            // empty last line is unlinked.
            return Ok(Search::Nothing);
        }
        Ok(Search::Contended)
    }

    fn look(
        &self,
        key: &Key<'_>,
        at: u64,
        slot: Slot,
        value: Option<&mut Vec<u8>>,
    ) -> Result<Look, Stop> {
        let Some(segment) = self.segment_of(slot) else {
            return Ok(Look::Other);
        };
        self.prefetch_record(slot);
        let entry = self.entry(segment);
        let generation = entry.generation();
        let is_in_doubt = self.is_in_doubt(segment);
        // At this moment the slot points to the record: in this generation, or in a later one, which
        // the check at the end finds.
        let slot = match self.slot(at) {
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
            version: record.head.version,
            expires_ms,
            has_expiry: record.head.has_expiry,
            segment,
            slot,
            slot_at: at,
        }))
    }

    /// Prefetches the first lines of a record, while other things are read.
    pub(super) fn prefetch_record(&self, slot: Slot) {
        let at = self.geometry.segments + slot.offset();
        for line in (0..PREFETCHED_BYTES).step_by(64) {
            if at + line + 8 <= self.geometry.file_bytes {
                self.ground.prefetch((at + line) & !7);
            }
        }
    }

    /// The likely slot of a key, by its tag alone; prefetches its record.
    pub(super) fn guess(&self, key: &Key<'_>) -> Option<Slot> {
        let bucket = self.geometry.bucket_of(key.hash);
        let tagged = |_, slot: Slot| slot.is_tagged(key.hash).then_some(slot);
        let slot = self.scan(bucket, self.link_of(bucket), tagged)?;
        self.prefetch_record(slot);
        Some(slot)
    }

    /// Replaces what is in `key` by the key of a record.
    pub(super) fn copy_key(&self, record: &Record, key: &mut Vec<u8>) -> Result<(), Stop> {
        self.copy_bytes(record.at + record.head.key_at(), record.head.key_bytes, key)
    }

    /// Replaces what is in `value` by the value of a record.
    pub(super) fn copy_value(&self, record: &Record, value: &mut Vec<u8>) -> Result<(), Stop> {
        self.copy_bytes(record.at + record.head.value_at(), record.head.value_bytes, value)
    }

    pub(super) fn copy_bytes(&self, at: u64, bytes: u64, into: &mut Vec<u8>) -> Result<(), Stop> {
        into.clear();
        let bytes = usize::try_from(bytes).map_err(|_| Stop::OutOfMemory(usize::MAX))?;
        into.try_reserve_exact(bytes).map_err(|_| Stop::OutOfMemory(bytes))?;
        self.ground.copy_out_to(at, bytes, into);
        Ok(())
    }

    /// Notes a use. It may be lost.
    pub(super) fn note_use(&self, seen: &Seen) {
        if seen.slot.frequency() < MAX_FREQUENCY {
            let _ = self.ground.exchange(seen.slot_at, seen.slot.0, seen.slot.used().0);
        }
    }
}
