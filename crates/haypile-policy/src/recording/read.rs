//! Reading the records of a block.

use std::ops::Range;

use super::{HAS_SIZE, HAS_TTL, HASH_BYTES, KIND_BITS, KNOWN_KEY, Kind, NO_EFFECT, varint};

/// The error of a recording's block that is damaged: it contains bytes that no recorder writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a block of recorded cache operations is damaged; copy the recording again, or record again"
)]
pub struct Damaged;

/// One cache operation as a recording contains it: its kind (such as a hit), time, key, and the size and TTL of the
/// value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The kind of the recorded operation, such as a hit, a miss or a set.
    pub kind: Kind,
    /// Whether the operation changed something in the cache (a deletion of a missing key does not); always true for
    /// reads.
    pub effect: bool,
    /// The time of the operation, in nanoseconds since the recording's origin.
    pub time_ns: u64,
    /// The size of the value that was read or written, in bytes; `None` if it was not recorded.
    pub size_bytes: Option<u64>,
    /// The TTL of the written value, in microseconds; 0 for "never expires", and `None` if it was not recorded.
    pub ttl_us: Option<u64>,
    /// The range of bytes in the block's records that contains the key of the operation, or its hash.
    pub key: Range<usize>,
    /// The length of the operation's key in bytes, before it was hashed.
    pub key_bytes: usize,
}

/// An iterator over the records in a recording's block. Each call takes the block's bytes, so that a caller can keep
/// both together.
#[derive(Debug)]
pub struct RecordReader {
    at: usize,
    left: u32,
    time_ns: u64,
    hashed_keys: bool,
    /// The keys so far: their positions, and their lengths before hashing.
    keys: Vec<(Range<usize>, usize)>,
}

impl RecordReader {
    /// Creates an iterator over a block of `records` records, the first of which counts its time from `first_ns`.
    pub fn new(records: u32, first_ns: u64, hashed_keys: bool) -> Self {
        Self { at: 0, left: records, time_ns: first_ns, hashed_keys, keys: Vec::new() }
    }

    /// Returns the next record of the block; `None` after the last.
    ///
    /// # Errors
    ///
    /// [`Damaged`] for bytes that no recorder writes.
    pub fn next(&mut self, payload: &[u8]) -> Result<Option<Record>, Damaged> {
        if self.left == 0 {
            return if self.at == payload.len() { Ok(None) } else { Err(Damaged) };
        }
        self.left -= 1;
        self.record(payload).ok_or(Damaged).map(Some)
    }

    fn record(&mut self, payload: &[u8]) -> Option<Record> {
        let tag = *payload.get(self.at)?;
        let kind = Kind::from_number(tag & KIND_BITS)?;
        let (delta_ns, mut at) = varint::get(payload, self.at + 1)?;
        self.time_ns = self.time_ns.checked_add(delta_ns)?;
        let mut optional = |flag| {
            if tag & flag == 0 {
                return Some(None);
            }
            let (value, end) = varint::get(payload, at)?;
            at = end;
            Some(Some(value))
        };
        let size_bytes = optional(HAS_SIZE)?;
        let ttl_us = optional(HAS_TTL)?;
        let (number, end) = varint::get(payload, at)?;
        let (key, key_bytes) = if tag & KNOWN_KEY == 0 {
            let key_bytes = usize::from(u16::try_from(number).ok()?);
            let written = if self.hashed_keys { HASH_BYTES } else { key_bytes };
            let key = end..end + written;
            payload.get(key.clone())?;
            self.at = key.end;
            self.keys.push((key.clone(), key_bytes));
            (key, key_bytes)
        } else {
            self.at = end;
            self.keys.get(usize::try_from(number).ok()?)?.clone()
        };
        Some(Record {
            kind,
            effect: tag & NO_EFFECT == 0,
            time_ns: self.time_ns,
            size_bytes,
            ttl_us,
            key,
            key_bytes,
        })
    }
}
