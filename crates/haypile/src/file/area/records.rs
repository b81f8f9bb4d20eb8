//! Records, found by the slots that point to them.

use std::sync::atomic::Ordering;

use super::{Area, Key, OpError, Record};
use crate::file::format::header;
use crate::file::format::record::{Expiration, Head, MAX_VERSION};
use crate::file::format::segment::Origin;
use crate::file::format::slot::Slot;
use crate::file::platform::ground::Ground;

/// The limit from which on the version of a stored entry is taken for damage, and does not raise
/// the counter of versions.
pub(in crate::file) const VERSIONS_END: u64 = MAX_VERSION / 2;

/// The part of a record that is prefetched before its length is known.
const PREFETCHED_BYTES: u64 = 192;

impl<G: Ground> Area<G> {
    /// Returns the record (a stored key and value) that an index slot points to; `None` if the slot
    /// cannot point to one.
    #[expect(clippy::inline_always, reason = "what it returns stays in registers")]
    #[inline(always)]
    pub(in crate::file) fn record(&self, slot: Slot, segment: u32) -> Option<Record> {
        self.record_at(segment, slot.offset() & (self.geometry.segment_bytes() - 1))
    }

    /// Returns the record (a stored key and value) at an offset in a segment; `None` if the lengths
    /// in its header do not fit there. These lengths are read once, because damage may change them.
    #[expect(clippy::inline_always, reason = "what it returns stays in registers")]
    #[inline(always)]
    pub(in crate::file) fn record_at(&self, segment: u32, offset: u64) -> Option<Record> {
        let segment_bytes = self.geometry.segment_bytes();
        if offset + Head::EXPIRY_AT > segment_bytes {
            return None;
        }
        let at = self.geometry.segment_start(segment) + offset;
        let first = self.ground.load(at, Ordering::Relaxed);
        let second = self.ground.load(at + 8, Ordering::Relaxed);
        let (head, salted) = Head::decode(first, second);
        let end = offset + head.bytes();
        if end > segment_bytes && end > self.run_bytes(segment) {
            return None;
        }
        Some(Record { at, segment, head, salted })
    }

    /// Returns the bytes from the start of a segment to the end of its run.
    #[cold]
    fn run_bytes(&self, segment: u32) -> u64 {
        let run = self.run_from(segment, self.entry(segment).state());
        u64::from(run) << self.geometry.numbers.segment_log2
    }

    /// Returns whether a stored record has this key.
    #[inline]
    pub(in crate::file) fn is_of(&self, record: &Record, key: &Key<'_>) -> bool {
        record.head.key_bytes() == key.bytes.len() as u64
            && record.head.has_namespace() == key.has_namespace
            && self.ground.is_equal(record.at + record.head.key_at(), key.bytes)
    }

    /// Returns the expiry of a stored record, in ms since 1970, `u64::MAX` for never; zero if the
    /// expiry is damaged, or a group of the record was invalidated.
    #[inline]
    pub(in crate::file) fn expires_ms(&self, record: &Record) -> u64 {
        self.validity(record).ms
    }

    /// Returns the expiry of a stored record in ms since 1970 (zero if it is damaged or
    /// invalidated), and whether the record belongs to groups of entries.
    #[inline]
    pub(in crate::file) fn validity(&self, record: &Record) -> Expiration {
        if !record.head.has_expiry() {
            return Expiration { ms: u64::MAX, has_groups: false };
        }
        self.validity_of_expiring(record)
    }

    /// Continues with a record that can become invalid. Not in line: others should not pay for what it needs.
    #[inline(never)]
    fn validity_of_expiring(&self, record: &Record) -> Expiration {
        let expiration = self.expiration(record);
        if expiration.has_groups && self.is_invalid(record) {
            return Expiration { ms: 0, ..expiration };
        }
        expiration
    }

    /// Returns the expiry that is stored in a record, even if a group of the record was
    /// invalidated; a record without an expiry never expires.
    #[inline]
    pub(in crate::file) fn expiration(&self, record: &Record) -> Expiration {
        if !record.head.has_expiry() {
            return Expiration { ms: u64::MAX, has_groups: false };
        }
        let word = self.ground.load(record.at + Head::EXPIRY_AT, Ordering::Relaxed);
        let damaged = Expiration { ms: 0, has_groups: false };
        Expiration::decode(word, record.head.version()).unwrap_or(damaged)
    }

    /// Replaces the content of the buffer `key` by the key of a stored record.
    pub(in crate::file) fn copy_key(
        &self,
        record: &Record,
        key: &mut Vec<u8>,
    ) -> Result<(), OpError> {
        self.copy_bytes(record.at + record.head.key_at(), record.head.key_bytes(), key)
    }

    /// Replaces the content of the buffer `bytes` by the key of a stored record, and returns the
    /// key with its hash.
    pub(in crate::file) fn key_of<'k>(
        &self,
        record: &Record,
        bytes: &'k mut Vec<u8>,
    ) -> Result<Key<'k>, OpError> {
        self.copy_key(record, bytes)?;
        Ok(self.key(bytes, record.head.has_namespace()))
    }

    /// Replaces the content of the buffer `value` by the value of a stored record.
    #[inline]
    pub(in crate::file) fn copy_value(
        &self,
        record: &Record,
        value: &mut Vec<u8>,
    ) -> Result<(), OpError> {
        self.copy_bytes(record.at + record.head.value_at(), record.head.value_bytes(), value)
    }

    #[inline]
    pub(in crate::file) fn copy_bytes(
        &self,
        at: u64,
        bytes: u64,
        into: &mut Vec<u8>,
    ) -> Result<(), OpError> {
        into.clear();
        let bytes = usize::try_from(bytes).map_err(|_| OpError::OutOfMemory(usize::MAX))?;
        into.try_reserve_exact(bytes).map_err(|_| OpError::OutOfMemory(bytes))?;
        self.ground.copy_out_to(at, bytes, into);
        Ok(())
    }

    /// Prefetches into the processor's cache the beginning of the record that an index slot points
    /// to.
    #[inline]
    pub(in crate::file) fn prefetch_record(&self, slot: Slot) {
        let at = self.geometry.segments + slot.offset();
        self.ground.prefetch_bytes(at, PREFETCHED_BYTES);
    }

    /// Returns the hash of the key of the record that an index slot points to; `None` if the slot
    /// cannot point to a record.
    #[cold]
    pub(in crate::file) fn hash_at(&self, slot: Slot) -> Result<Option<u64>, OpError> {
        let record = self.segment_of(slot).and_then(|segment| self.record(slot, segment));
        let Some(record) = record else { return Ok(None) };
        Ok(Some(self.key_of(&record, &mut Vec::new())?.hash))
    }

    /// Returns the record that an index slot points to, if it was written in this clearing epoch,
    /// that is, since the last `clear`.
    pub(in crate::file) fn live_record(&self, slot: Slot, epoch: u64) -> Option<Record> {
        if slot.is_empty() {
            return None;
        }
        let segment = self.segment_of(slot)?;
        if self.entry(segment).epoch() != epoch {
            return None;
        }
        self.record(slot, segment)
    }

    /// Raises the cache file's counter of entry versions above the version of a record from before
    /// a reboot that a loss of power may have taken back. An impossibly high version is ignored as
    /// damage.
    #[inline]
    pub(in crate::file) fn note_version(&self, record: &Record) {
        let version = record.head.version();
        if self.origin(record.segment) == Origin::Earlier && version < VERSIONS_END {
            self.skip_versions_to(version);
        }
    }

    /// Ensures that entries written later to the cache file get versions above this one.
    #[cold]
    pub(in crate::file) fn skip_versions_to(&self, version: u64) {
        if self.ground.load(header::SKIPPED_VERSIONS, Ordering::Relaxed) < version {
            self.ground.raise(header::NEXT_VERSION, version + 1);
            self.ground.raise(header::SKIPPED_VERSIONS, version);
        }
    }
}
