//! `memory://`: a cache in the process, bounded in bytes.
//!
//! One mutex protects a slab of entries, an index of their slots by fingerprint, and the policy.
//! What the bound counts is [`charge`]d, and that sum never exceeds the size, not even for a
//! moment: room is made before an entry is placed.
//!
//! # What the bound does not count
//!
//! The bound counts a fixed overhead per entry, [`OVERHEAD_BYTES`], which was measured for the
//! default policy, and not what the allocator was really asked for. Slab, index and the ghosts of
//! the policy keep their high-water mark when entries leave. So the memory of the process can
//! exceed the bound. The live heap of a full store was measured at 1.15 times the bound with values
//! of one byte under `s3fifo`, at up to 2.09 times after a change from such values to large ones,
//! and at 4.75 times with `ghost=1000`. This is to change in the next version of the store.
//!
//! # What leaves
//!
//! The cache may forget. A policy can decline a new entry: the write is accepted and not retained,
//! and [`Stats::declined`](crate::Stats::declined) counts it. An entry whose new value is larger
//! can be the one that leaves to make room for it; then it is simply gone, and counts as evicted.
//!
//! Expired entries leave when they are met, first when room is needed, and a few with each write.

mod contents;
mod opener;
mod slab;
pub mod snapshot;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::clock::Clock;
use crate::error::{Error, MAX_KEY_BYTES, Result};
use crate::policy::Policy;
use crate::stats::Stats;
use crate::store::{Cursor, Durability, Hit, Limits, Page, Store, allocate, check_key};
use crate::ttl::{Ttl, expiry_ns};
use crate::write::{Reservation, SetOptions, Written};

use contents::{Contents, Key, Record, Uncounted};
pub(crate) use opener::MemoryOpener;
pub use opener::{MAX_SIZE_BYTES, MIN_SIZE_BYTES, MemoryBuilder};

/// What an entry counts beside its key and its value, in bytes.
///
/// It is the memory that an entry takes on average under the default policy, as a test measures
/// it: some 52 in the slab, 9 in the index, 16 for the allocation of the record, 36 for the
/// policy's queues and 53 for its ghosts. Other policies take less, `fifo` half as much; `lirs`
/// with its ghosts takes some 100 more. An entry with a TTL takes some 24 more.
pub const OVERHEAD_BYTES: u64 = 168;

/// The bytes that an entry counts in a memory store: its key, its value and [`OVERHEAD_BYTES`].
///
/// The simulator charges the same where it predicts this store.
pub const fn charge(key_bytes: u64, value_bytes: u64) -> u64 {
    key_bytes.saturating_add(value_bytes).saturating_add(OVERHEAD_BYTES)
}

/// Hashes a key. It has to give the same for the same key, and should be hard to foresee for
/// whoever chooses keys.
pub type Fingerprint = dyn Fn(&[u8]) -> u64 + Send + Sync;

/// A cache in the process; see the [module documentation](self). It is made by a
/// [`MemoryBuilder`].
///
/// Its TTLs have the resolution of the clock, nanoseconds. Touching an entry counts as a use. A
/// pinned value is a copy. The buffer of a reservation does not count into the bound before it is
/// committed.
pub struct MemoryStore<P> {
    contents: Mutex<Contents<P>>,
    fingerprint: Arc<Fingerprint>,
    clock: Arc<dyn Clock>,
    capacity_bytes: u64,
    ttl: Option<Duration>,
    url: String,
}

impl<P: Policy> MemoryStore<P> {
    /// The lock on an open store.
    fn lock(&self) -> Result<MutexGuard<'_, Contents<P>>> {
        let contents = self.contents.lock();
        if contents.is_closed() {
            return Err(Error::Closed { store: self.url.clone() });
        }
        Ok(contents)
    }

    fn key<'a>(&self, key: &'a [u8]) -> Result<Key<'a>> {
        check_key(self, key, MAX_KEY_BYTES)?;
        Ok(Key { bytes: key, fingerprint: (self.fingerprint)(key) })
    }

    /// Refuses what is larger than the store takes.
    fn check_sizes(&self, key: &[u8], value_bytes: usize) -> Result<()> {
        check_key(self, key, self.limits().max_key_bytes)?;
        let value_bytes = value_bytes as u64;
        if value_bytes > self.limit_bytes(key) {
            return Err(self.too_large(key, value_bytes));
        }
        Ok(())
    }

    /// The largest value under this key.
    fn limit_bytes(&self, key: &[u8]) -> u64 {
        self.capacity_bytes.saturating_sub(charge(key.len() as u64, 0))
    }

    fn too_large(&self, key: &[u8], value_bytes: u64) -> Error {
        let limit_bytes = self.limit_bytes(key);
        Error::ValueTooLarge { value_bytes, limit_bytes, store: self.url.clone() }
    }

    /// Writes a record that [`check_sizes`](Self::check_sizes) let pass.
    fn write(&self, bytes: Box<[u8]>, key_bytes: usize, options: &SetOptions) -> Result<Written> {
        let ttl = options.ttl.resolve(self.ttl)?;
        let fingerprint = (self.fingerprint)(&bytes[..key_bytes]);
        let key_bytes = u16::try_from(key_bytes).expect("a key of at most 65,535 bytes");
        let mut contents = self.lock()?;
        let now_ns = self.clock.now_ns();
        let expires_ns = expiry_ns(now_ns, ttl);
        let record = Record { bytes, key_bytes, fingerprint, expires_ns };
        Ok(contents.write(record, options.mode, now_ns))
    }

    fn count(
        &self,
        operation: &'static str,
        key: &[u8],
        count: impl FnOnce(u64) -> u64,
    ) -> Result<Option<u64>> {
        let key = self.key(key)?;
        let result = self.lock()?.count(key, self.clock.now_ns(), count);
        result.map_err(|uncounted| match uncounted {
            Uncounted::NotACounter => Error::NotACounter { operation, store: self.url.clone() },
            Uncounted::TooLarge(value_bytes) => self.too_large(key.bytes, value_bytes),
        })
    }
}

impl<P> fmt::Debug for MemoryStore<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryStore").field(&self.url).finish()
    }
}

impl<P: Policy> Store for MemoryStore<P> {
    fn describe(&self) -> String {
        self.url.clone()
    }

    fn limits(&self) -> Limits {
        let max_value_bytes = self.capacity_bytes - OVERHEAD_BYTES;
        let max_key_bytes =
            usize::try_from(max_value_bytes).map_or(MAX_KEY_BYTES, |max| max.min(MAX_KEY_BYTES));
        Limits { max_key_bytes, max_value_bytes, capacity_bytes: Some(self.capacity_bytes) }
    }

    fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        buffer.clear();
        let key = self.key(key)?;
        let mut contents = self.lock()?;
        // Read under the lock: an entry must not expire while this call waits for it.
        Ok(contents.read(key, self.clock.now_ns(), buffer))
    }

    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
        self.check_sizes(key, value.len())?;
        let mut record = allocate(self, key.len().saturating_add(value.len()))?;
        record.extend_from_slice(key);
        record.extend_from_slice(value);
        self.write(record.into(), key.len(), options)
    }

    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> Result<Box<dyn Reservation + '_>> {
        self.check_sizes(key, value_bytes)?;
        options.ttl.resolve(self.ttl)?;
        drop(self.lock()?);
        let record_bytes = key.len().saturating_add(value_bytes);
        let mut record = allocate(self, record_bytes)?;
        record.extend_from_slice(key);
        record.resize(record_bytes, 0);
        let (record, options) = (record.into(), *options);
        Ok(Box::new(MemoryReservation { store: self, record, key_bytes: key.len(), options }))
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        let key = self.key(key)?;
        Ok(self.lock()?.delete(key, self.clock.now_ns()))
    }

    fn touch(&self, key: &[u8], ttl: Ttl) -> Result<bool> {
        let ttl = ttl.resolve(self.ttl)?;
        let key = self.key(key)?;
        let mut contents = self.lock()?;
        let now_ns = self.clock.now_ns();
        Ok(contents.touch(key, expiry_ns(now_ns, ttl), now_ns))
    }

    fn incr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.count("incr", key, |number| number.wrapping_add(delta))
    }

    fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.count("decr", key, |number| number.saturating_sub(delta))
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        let key = self.key(key)?;
        Ok(self.lock()?.contains(key, self.clock.now_ns()))
    }

    fn clear(&self) -> Result<()> {
        self.lock()?.clear();
        Ok(())
    }

    fn keys(&self, from: Cursor, limit: usize) -> Result<Page> {
        Ok(self.lock()?.keys(from, limit, self.clock.now_ns()))
    }

    fn len(&self) -> Result<u64> {
        Ok(self.lock()?.stats().entries)
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.lock()?.stats().bytes)
    }

    fn stats(&self) -> Result<Stats> {
        Ok(self.contents.lock().stats().clone())
    }

    fn flush(&self, durability: Durability) -> Result<()> {
        drop(self.lock()?);
        match durability {
            Durability::Visible => Ok(()),
            Durability::Disk => {
                Err(Error::Unsupported { operation: "flush to disk", store: self.url.clone() })
            }
        }
    }

    fn close(&self) -> Result<()> {
        self.contents.lock().close();
        Ok(())
    }
}

struct MemoryReservation<'a, P> {
    store: &'a MemoryStore<P>,
    record: Box<[u8]>,
    key_bytes: usize,
    options: SetOptions,
}

impl<P: Policy> Reservation for MemoryReservation<'_, P> {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.record[self.key_bytes..]
    }

    fn commit(self: Box<Self>) -> Result<Written> {
        self.store.write(self.record, self.key_bytes, &self.options)
    }
}
