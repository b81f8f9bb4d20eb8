//! Verification: which slots and records are believed.
//!
//! After a loss of power every word of the file is as it was at some moment, each for itself. So is
//! every word of a copy that somebody made while the file was in use. Until the index has been swept under
//! the current stamp, a slot may lead anywhere: into the middle of a record, to a record of another
//! key, into a segment that has been filled again since. So what leads to a segment in doubt is
//! verified.
//!
//! A segment that is refilled keeps the bytes that were not written again, whole records among them.
//! So a checksum is mixed with a salt, another one each time that its segment is filled.
//!
//! A slot that leads to no record of its own hides the slots behind it that have the same tag: it may
//! have led to the newest value of their key, and an older one must not come back. Whatever empties
//! such a slot empties what it hides as well, from the last to the first.

use std::sync::atomic::Ordering;

use crate::file::area::{Area, Key, OpError, Record};
use crate::file::format::header;
use crate::file::format::record::Head;
use crate::file::format::segment::Origin;
use crate::file::format::slot::Slot;
use crate::file::format::stamp;
use crate::file::platform::ground::Ground;
use crate::mutant;

/// Long values are read in pieces of this size.
const PIECE_BYTES: usize = 64 << 10;

/// The meaning of an index slot with the tag (stored bits of the hash) of a key: an entry of the
/// key, a cleared entry, or damage.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) enum Meaning {
    /// The slot points to a record of the key.
    Entry(Record),
    /// The slot points into a segment of an earlier epoch, and counts as empty.
    Cleared,
    /// The slot points to no record that it can belong to.
    Astray,
}

impl<G: Ground> Area<G> {
    /// Returns whether the whole index of the cache file was verified since the last reboot, so
    /// that no slot left by a loss of power remains.
    pub(in crate::file) fn is_swept(&self) -> bool {
        self.ground.load(header::SWEPT, Ordering::Relaxed) == self.stamp
    }

    /// Returns whether the whole index was verified under the boot stamp of the processes that
    /// write to the cache file now.
    pub(in crate::file) fn is_swept_for_all(&self) -> bool {
        let word = |at| self.ground.load(at, Ordering::Relaxed);
        word(header::SWEPT) == word(header::STAMP)
    }

    /// Returns the boot stamp to write into segments that are filled from now on: its doubtful form
    /// until the whole index was verified after the reboot.
    pub(in crate::file) fn filling_stamp(&self) -> u64 {
        if self.is_swept() { self.stamp } else { stamp::doubtful(self.stamp) }
    }

    #[inline]
    pub(in crate::file) fn origin(&self, segment: u32) -> Origin {
        self.entry(segment).origin(self.stamp)
    }

    /// Returns whether reads have to verify the records of a segment, and the index slots that
    /// point to it. To be called before a slot is read, unless its bucket is locked: the sweep may
    /// remove a slot that was read before it.
    #[inline]
    pub(in crate::file) fn is_in_doubt(&self, segment: u32) -> bool {
        self.verifies_all || self.origin(segment) != Origin::Sure
    }

    /// Returns the meaning of an index slot with the tag (stored bits of the hash) of a key; `None`
    /// for an entry of another key. Without the bucket's lock, the segment's generation has to be
    /// the same before and after.
    #[inline]
    pub(in crate::file) fn meaning(
        &self,
        slot: Slot,
        key: &Key<'_>,
        epoch: u64,
    ) -> Result<Option<Meaning>, OpError> {
        let Some(segment) = self.segment_of(slot) else {
            return Ok(Some(Meaning::Cleared));
        };
        if self.entry(segment).epoch() != epoch {
            return Ok(Some(Meaning::Cleared));
        }
        match self.record(slot, segment).filter(|record| self.is_of(record, key)) {
            Some(record) => Ok(Some(Meaning::Entry(record))),
            None if self.is_in_doubt(segment) && self.is_astray(slot, segment, key.hash)? => {
                Ok(Some(Meaning::Astray))
            }
            None => Ok(None),
        }
    }

    /// Returns whether an unverified index slot does not point to an intact record that belongs to
    /// the slot and the bucket of this hash.
    #[cold]
    pub(in crate::file) fn is_astray(
        &self,
        slot: Slot,
        segment: u32,
        hash: u64,
    ) -> Result<bool, OpError> {
        if mutant::is_on("slots-astray-hide-nothing") {
            return Ok(false);
        }
        Ok(!self.is_at_home(self.geometry.bucket_of(hash), slot, segment)?)
    }

    /// Returns whether a slot of an index bucket points to an intact record whose key has a hash
    /// that belongs to that bucket and to the bits in the slot.
    pub(in crate::file) fn is_at_home(
        &self,
        bucket: u32,
        slot: Slot,
        segment: u32,
    ) -> Result<bool, OpError> {
        let Some(record) = self.record(slot, segment) else {
            return Ok(false);
        };
        let Some(hash) = self.hash_at_home(bucket, slot, &record)? else {
            return Ok(false);
        };
        Ok(self.sum(hash, &record)? == self.checksum_of(&record))
    }

    /// Returns whether the hash of a record's key belongs to an index bucket and to the bits of a
    /// hash in a slot; the record's value is not verified.
    pub(in crate::file) fn is_key_at_home(
        &self,
        bucket: u32,
        slot: Slot,
        record: &Record,
    ) -> Result<bool, OpError> {
        Ok(self.hash_at_home(bucket, slot, record)?.is_some())
    }

    fn hash_at_home(
        &self,
        bucket: u32,
        slot: Slot,
        record: &Record,
    ) -> Result<Option<u64>, OpError> {
        let hash = self.key_of(record, &mut Vec::new())?.hash;
        let is_at_home = slot.is_tagged(hash) && self.geometry.bucket_of(hash) == bucket;
        Ok(is_at_home.then_some(hash))
    }

    /// Returns whether a copy of a stored record's value matches the record's checksum.
    pub(in crate::file) fn is_right(&self, hash: u64, record: &Record, value: &[u8]) -> bool {
        mutant::is_on("checksums-not-compared")
            || record.head.checksum(hash, value) == self.checksum_of(record)
    }

    /// Returns whether a stored record, whose key has this hash, matches its checksum.
    pub(in crate::file) fn is_whole(&self, hash: u64, record: &Record) -> Result<bool, OpError> {
        let is_whole = mutant::is_on("checksums-not-compared")
            || self.sum(hash, record)? == self.checksum_of(record);
        Ok(is_whole)
    }

    /// Returns whether a stored record is intact; its checksum is verified only if a loss of power
    /// may have damaged its segment. To be called under the lock of its bucket, or of the recycler.
    #[inline]
    pub(in crate::file) fn is_trusted(&self, hash: u64, record: &Record) -> Result<bool, OpError> {
        Ok(!self.is_in_doubt(record.segment) || self.is_whole(hash, record)?)
    }

    /// Returns the stored checksum of a record without the salt of its segment; it is right only if
    /// the segment has not been refilled since.
    pub(in crate::file) fn checksum_of(&self, record: &Record) -> u64 {
        record.salted ^ self.entry(record.segment).salt()
    }

    /// Returns the checksum of a record as it stands in the file, read in pieces.
    fn sum(&self, hash: u64, record: &Record) -> Result<u64, OpError> {
        let mut sum = record.head.start_checksum(hash);
        let (start, bytes) = (record.at + record.head.value_at(), record.head.value_bytes());
        let mut piece = Vec::new();
        for at in (0..bytes).step_by(PIECE_BYTES) {
            self.copy_bytes(start + at, (PIECE_BYTES as u64).min(bytes - at), &mut piece)?;
            sum.update(&piece);
        }
        Ok(Head::end_checksum(&sum))
    }
}
