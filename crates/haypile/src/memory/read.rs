//! Reads: copies and pins.

use super::contents::{HashedKey, Look, charge_of_lengths};
use super::pool::Pool;
use super::record::{Pin, Record};
use super::{MemoryStore, Policy};
use crate::error::Result;
use crate::mutant;
use crate::pinned::Pinned;
use crate::store::Hit;
use crate::write::Version;

/// Values longer than this are copied outside of the lock.
const COPIED_UNDER_LOCK_BYTES: usize = 8 << 10;

/// The part of a read that is done under the lock.
enum Copy {
    Whole,
    Later(Pin),
    OutOfMemory,
}

impl<P: Policy> MemoryStore<P> {
    /// Finds an entry, counts the hit or miss, reports it to the policy, and returns the result of
    /// `read`.
    #[inline]
    fn find<T>(
        &self,
        key: HashedKey<'_>,
        read: impl FnOnce(&Record, Hit) -> T,
    ) -> Result<Option<T>> {
        let shard = self.shard_of(key.fingerprint);
        if P::SHARED_HITS {
            let contents = self.shards[shard].0.read_often();
            if contents.is_closed() {
                return Err(self.closed());
            }
            match contents.look(key, &*self.clock) {
                Look::Hit(slot, hit) => {
                    if !contents.hit() {
                        contents.count_hit();
                    }
                    contents.hit_shared(slot);
                    return Ok(Some(read(contents.record(slot), hit)));
                }
                Look::Miss => {
                    if !contents.missed() {
                        contents.count_miss();
                    }
                    return Ok(None);
                }
                Look::Expired => {}
            }
        }
        Ok(self.write(shard)?.read(key, &*self.clock, &self.pool, read))
    }

    #[inline]
    pub(super) fn copy_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        buffer.clear();
        self.copy_hashed(self.key(key)?, buffer)
    }

    /// Copies the value of a key, given with its hash, into an empty buffer, and returns the
    /// entry's properties; `None` for a miss.
    #[inline]
    pub(super) fn copy_hashed(
        &self,
        key: HashedKey<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Hit>> {
        let copy = |record: &Record, hit| {
            let value = record.value();
            if value.len() > COPIED_UNDER_LOCK_BYTES {
                return (Copy::Later(record.pin()), hit);
            }
            if buffer.try_reserve(value.len()).is_err() {
                return (Copy::OutOfMemory, hit);
            }
            buffer.extend_from_slice(value);
            (Copy::Whole, hit)
        };
        let Some((copy, hit)) = self.find(key, copy)? else { return Ok(None) };
        match copy {
            Copy::Whole => Ok(Some(hit)),
            Copy::OutOfMemory => Err(self.out_of_memory(COPIED_UNDER_LOCK_BYTES)),
            Copy::Later(pin) => {
                self.copy_pinned(pin, buffer)?;
                Ok(Some(hit))
            }
        }
    }

    /// Copies the value of a key into a buffer, unless its entry still has this version, and
    /// returns the entry's properties; `None` for a miss.
    pub(super) fn copy_if_changed(
        &self,
        key: &[u8],
        version: Version,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Hit>> {
        buffer.clear();
        let pin =
            |record: &Record, hit: Hit| ((hit.version != Some(version)).then(|| record.pin()), hit);
        let Some((pin, hit)) = self.find(self.key(key)?, pin)? else { return Ok(None) };
        if let Some(pin) = pin {
            self.copy_pinned(pin, buffer)?;
        }
        Ok(Some(hit))
    }

    /// Copies a value that is held into an empty buffer.
    fn copy_pinned(&self, pin: Pin, buffer: &mut Vec<u8>) -> Result<()> {
        let pinned = PinnedRecord::new(pin, &self.pool);
        let value: &[u8] = pinned.as_ref();
        if buffer.try_reserve_exact(value.len()).is_err() {
            return Err(self.out_of_memory(value.len()));
        }
        buffer.extend_from_slice(value);
        Ok(())
    }

    pub(super) fn pin(&self, key: &[u8]) -> Result<Option<Pinned<'_>>> {
        let found = self.find(self.key(key)?, |record, hit| (record.pin(), hit))?;
        Ok(found.map(|(pin, hit)| Pinned::in_place(PinnedRecord::new(pin, &self.pool), hit)))
    }
}

/// A reader's hold on a record (key and value); the bytes of a record that was removed in the
/// meantime return to the store's pool when the hold is dropped.
pub(super) struct PinnedRecord<'a> {
    /// The pin of the record; `None` only during drop.
    pin: Option<Pin>,
    pool: &'a Pool,
}

impl<'a> PinnedRecord<'a> {
    pub(super) fn new(pin: Pin, pool: &'a Pool) -> Self {
        Self { pin: Some(pin), pool }
    }

    pub(super) fn pin(&self) -> &Pin {
        self.pin.as_ref().expect("taken only in drop")
    }
}

impl AsRef<[u8]> for PinnedRecord<'_> {
    fn as_ref(&self) -> &[u8] {
        self.pin().value()
    }
}

impl Drop for PinnedRecord<'_> {
    fn drop(&mut self) {
        let Some(pin) = self.pin.take() else { return };
        let charge = charge_of_lengths(pin.lengths());
        if pin.release() && !mutant::is_on("last-reader-keeps-the-bytes") {
            self.pool.give(charge);
        }
    }
}
