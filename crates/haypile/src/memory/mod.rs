//! `memory://`: a cache in the process, bounded in bytes.
//!
//! Keys are spread over shards. Each has a lock, a slab of records, an index of their slots by
//! fingerprint, and a policy of its own. Under a policy with
//! [`SHARED_HITS`](crate::policy::Policy::SHARED_HITS), which are `s3fifo`, `sieve`, `clock` and
//! `fifo`, a hit shares the lock with other hits. A write is visible at once.
//!
//! # The bound
//!
//! What the bound counts is [`charge`]d per entry, and the sum never exceeds the size, not even for
//! a moment: room is made before an entry is placed. Shards have no fixed part of the size: they
//! claim bytes from a common pool, and one that lacks room takes them from those that have more,
//! so that an entry that fits the store fits whatever shard its key is in. A value that has left
//! and that a reader still [pins](crate::Store::get_pinned) counts until it is let go.
//!
//! The charge is what the allocator is asked for, and [`OVERHEAD_BYTES`] for the metadata under the
//! default policy, as a test measures it. Not counted are: the buffer of a write that goes on, what
//! the allocator itself wastes, 16 bytes per entry once any entry had a TTL, and what policies with
//! long memories take beyond (`lirs`, and `ghost=` above 120). When entries get fewer, slots and
//! tables shrink with them. Ghosts, of some 23 bytes each, stay until others take their place: after
//! many small entries made room for a few large ones, for a while there are more ghosts than
//! entries.
//!
//! # What leaves
//!
//! The cache may forget. A policy can decline a new entry: the write is accepted and not retained,
//! and [`Stats::declined`](crate::Stats::declined) counts it. An entry whose new value is larger
//! can be the one that leaves to make room for it; then it is simply gone, and counts as evicted.
//!
//! Expired entries leave when they are met, first when room is needed, and a few with each write,
//! found by a timer wheel within about a millisecond of their expiry.

mod builder;
mod contents;
mod expiry;
mod opener;
mod operations;
mod persist;
mod pool;
mod read;
mod record;
mod room;
mod slab;
pub mod snapshot;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::error::{Error, MAX_KEY_BYTES, Result};
use crate::policy::Policy;
use crate::store::{Store, check_key};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::table::spread;

use builder::{KeyHasher, Name};
pub use builder::{MAX_SHARDS, MAX_SIZE_BYTES, MIN_SIZE_BYTES, MemoryBuilder};
use contents::{Contents, Key};
pub(crate) use opener::MemoryOpener;
pub use persist::PersistOptions;
use persist::Persistence;
use pool::Pool;
pub(crate) use record::prefetch;

/// What an entry counts beside its record, in bytes: the metadata of the store and of the default
/// policy, as a test measures them.
///
/// That is 64 on average, and up to 80 where tables have just doubled. With the store's own part,
/// `fifo` and `lru` take some 26, `clock` and `sieve` 27, `slru4` 36, `slru` 40, `wtinylfu` 56, `arc` 44 to 68 (the more it reads twice, the more ghosts it has), and `lirs` 110.
pub const OVERHEAD_BYTES: u64 = 72;

/// What a record has before its key and value, in bytes.
const HEADER_BYTES: u64 = 40;

/// The bytes that an entry counts in a memory store: its record, which is the key, the value and a
/// header, as large as common allocators make it, and [`OVERHEAD_BYTES`].
///
/// The simulator charges the same where it predicts this store.
pub const fn charge(key_bytes: u64, value_bytes: u64) -> u64 {
    // An allocator puts a word before what it gives, and gives multiples of 16 bytes.
    let asked = key_bytes.saturating_add(value_bytes).saturating_add(HEADER_BYTES + 8);
    (asked.saturating_add(15) & !15).saturating_add(OVERHEAD_BYTES)
}

/// The longest value that [`charge`] lets an entry of `limit_bytes` have, if any.
const fn longest_value(key_bytes: u64, limit_bytes: u64) -> Option<u64> {
    let Some(record_bytes) = limit_bytes.checked_sub(OVERHEAD_BYTES) else { return None };
    (record_bytes & !15).checked_sub(HEADER_BYTES + 8 + key_bytes)
}

/// Hashes a key. It has to give the same for the same key, and should be hard to foresee for
/// whoever chooses keys.
pub type Fingerprint = dyn Fn(&[u8]) -> u64 + Send + Sync;

/// A cache in the process; see the [module documentation](self). It is made by a
/// [`MemoryBuilder`].
///
/// Its TTLs have the resolution of the clock, nanoseconds. Touching an entry counts as a use. A
/// pinned value stays in place.
pub struct MemoryStore<P: Policy> {
    shards: Box<[Shard<P>]>,
    pool: Pool,
    /// Whoever takes bytes from several shards. Only its holder may hold the locks of two shards.
    reclaiming: Mutex<()>,
    capacity_bytes: AtomicU64,
    hasher: KeyHasher,
    clock: Arc<dyn Clock>,
    ttl: Option<Duration>,
    compute_wait: Duration,
    name: Name,
    persistence: Option<Persistence>,
}

/// On cache lines of its own: a lock is written by whoever takes it.
#[derive(Debug)]
#[repr(align(128))]
struct Shard<P>(RwLock<Contents<P>>);

impl<P: Policy> MemoryStore<P> {
    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes.load(Ordering::Relaxed)
    }

    #[inline]
    fn shard_of(&self, fingerprint: u64) -> usize {
        // The index looks at the highest bits and at those from 16 to 23.
        let bits = usize::try_from(spread(fingerprint) >> 40 & 0xFFFF).expect("16 bits");
        bits & (self.shards.len() - 1)
    }

    /// The shared lock on an open shard.
    #[inline]
    fn read(&self, shard: usize) -> Result<RwLockReadGuard<'_, Contents<P>>> {
        let contents = self.shards[shard].0.read();
        if contents.is_closed() { Err(self.closed()) } else { Ok(contents) }
    }

    /// The exclusive lock on an open shard.
    fn write(&self, shard: usize) -> Result<RwLockWriteGuard<'_, Contents<P>>> {
        let contents = self.shards[shard].0.write();
        if contents.is_closed() { Err(self.closed()) } else { Ok(contents) }
    }

    #[cold]
    fn closed(&self) -> Error {
        Error::Closed { store: self.describe() }
    }

    #[inline]
    fn key<'a>(&self, key: &'a [u8]) -> Result<Key<'a>> {
        check_key(self, key, MAX_KEY_BYTES)?;
        Ok(Key { bytes: key, fingerprint: self.hasher.fingerprint(key) })
    }

    /// Refuses what is larger than the store takes.
    fn check_sizes(&self, key: &[u8], value_bytes: usize) -> Result<()> {
        check_key(self, key, self.max_key_bytes())?;
        let value_bytes = value_bytes as u64;
        match longest_value(key.len() as u64, self.capacity_bytes()) {
            Some(limit_bytes) if value_bytes <= limit_bytes => Ok(()),
            _ => Err(self.too_large(key, value_bytes)),
        }
    }

    fn max_key_bytes(&self) -> usize {
        let max = longest_value(0, self.capacity_bytes()).unwrap_or(0);
        usize::try_from(max).map_or(MAX_KEY_BYTES, |max| max.min(MAX_KEY_BYTES))
    }

    #[cold]
    fn too_large(&self, key: &[u8], value_bytes: u64) -> Error {
        let limit_bytes = longest_value(key.len() as u64, self.capacity_bytes()).unwrap_or(0);
        Error::ValueTooLarge { value_bytes, limit_bytes, store: self.describe() }
    }

    #[cold]
    fn out_of_memory(&self, bytes: usize) -> Error {
        Error::OutOfMemory { bytes, store: self.describe() }
    }
}

impl<P: Policy> Drop for MemoryStore<P> {
    /// Saves what a store holds that was not closed, unless it has not loaded all that it will.
    fn drop(&mut self) {
        if self.persistence.as_ref().is_some_and(|persistence| !persistence.is_part())
            && let Err(error) = self.close()
        {
            log::warn!("{error}");
        }
    }
}

impl<P: Policy> fmt::Debug for MemoryStore<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size_bytes = self.capacity_bytes.load(Ordering::Relaxed);
        f.debug_tuple("MemoryStore").field(&self.name.url(size_bytes)).finish()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests;
