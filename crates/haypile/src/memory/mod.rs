//! The scheme `memory://`: a cache in the process, bounded in bytes.
//!
//! Keys are spread over shards. Each shard has a lock, a slab of records, an index of their slots
//! by fingerprint, and a policy. Under a policy with
//! [`SHARED_HITS`](haypile_policy::Policy::SHARED_HITS), which are `s3fifo`, `sieve`, `clock` and
//! `fifo`, hits share the lock. A write is visible at once.
//!
//! # The bound
//!
//! Each entry is `charge`d (`haypile_policy::rules::memory::charge`), and the sum of the charges never exceeds the size, not even for a
//! moment: room is made before an entry is inserted. Shards have no fixed part of the size: they
//! claim bytes from a common pool, and a shard that lacks room takes bytes from those that have
//! more, so that an entry that fits the store fits every shard. A removed value that a reader still
//! [pins](crate::Store::get_pinned) counts until it is released.
//!
//! The charge covers the allocation of the entry, and `OVERHEAD_BYTES` for the metadata under the
//! default policy, as a test measures it. Not counted are: the buffer of a write in progress, the
//! allocator's own waste, 16 bytes per entry once any entry had a TTL, and the additional metadata
//! of policies with long memories (`lirs`, and `ghost=` above 120). When entries get fewer, slots
//! and tables shrink with them. Ghosts, of some 23 bytes each, stay until others replace them:
//! after many small entries made room for a few large ones, there are more ghosts than entries for
//! a while.
//!
//! # Eviction and expiry
//!
//! The cache may forget. A policy can decline a new entry if others would have to leave for it: the
//! write is accepted and not retained, and [`Stats::declined`](crate::Stats::declined) counts it.
//! Then nothing leaves: an entry is judged before room is made for it, in its shard and in others. An
//! entry of any size is kept while there is room; bytes that other shards hold and do not use, at most
//! one in sixteen, may not be found for it. An entry that gets a larger value can itself be the victim
//! that makes room for it, unless other shards have made room; then it is gone, and counts as evicted.
//! Values that readers pin are the exception: an entry that does not fit because of them is declined
//! as well, and entries that are pinned themselves may leave in vain.
//!
//! Expired entries are removed when an operation meets them, when room is needed, and a few with
//! each write; a timer wheel finds them within about a millisecond of their expiry.

mod batch;
mod builder;
mod cache;
mod contents;
mod expiry;
mod lock;
mod opener;
mod operations;
mod persist;
mod pool;
mod read;
mod record;
mod room;
pub(crate) mod shortage;
#[cfg(not(feature = "test-hooks"))]
#[allow(
    unreachable_pub,
    dead_code,
    unused_imports,
    reason = "tests and the fuzzer use all of the format"
)]
mod snapshot;
#[cfg(feature = "test-hooks")]
pub mod snapshot;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use haypile_policy::Policy;
use haypile_policy::prefetch::{CACHE_LINE_BYTES, prefetch_to_write};
use haypile_policy::rules::memory::{longest_value, shard_of};

use crate::clock::Clock;
use crate::error::{Error, MAX_KEY_BYTES, Result};
use crate::groups::Words;
use crate::store::{Store, check_key};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

pub use builder::MemoryBuilder;
use builder::{KeyHasher, Name};
pub use cache::MemoryCache;
use contents::{Contents, HashedKey};
use lock::{BiasedLock, ReadGuard, ReaderLine, WriteGuard};
pub(crate) use opener::MemoryOpener;
pub use persist::PersistOptions;
use persist::Persistence;
use pool::Pool;
use shortage::Reserve;

/// A hash function of keys. It must return the same for the same key, and should be hard to predict
/// for those that choose keys.
type Fingerprint = dyn Fn(&[u8]) -> u64 + Send + Sync;

/// A store that keeps its entries in the memory of this process; see the [module
/// documentation](self). A [`MemoryBuilder`] opens it.
///
/// Its TTLs have the resolution of the clock, nanoseconds. Touching an entry counts as a use. A
/// pinned value stays in place.
pub(crate) struct MemoryStore<P: Policy> {
    shards: Box<[Shard<P>]>,
    /// The lines in which reads in the shards are marked, and counted.
    lines: Arc<[ReaderLine]>,
    pool: Pool,
    /// The lock of the thread that takes bytes from several shards. Only this thread may hold the
    /// locks of two shards.
    reclaiming: Mutex<()>,
    capacity_bytes: AtomicU64,
    hasher: KeyHasher,
    clock: Arc<dyn Clock>,
    ttl: Option<Duration>,
    compute_wait: Duration,
    name: Name,
    persistence: Option<Persistence>,
    groups: Arc<Words>,
    reserve: Reserve,
}

/// On cache lines of its own, because locking a shard writes to its line.
#[derive(Debug)]
#[repr(align(128))]
struct Shard<P>(BiasedLock<Contents<P>>);

impl<P> Shard<P> {
    /// Prefetches the lock and the fields of the contents, to change them.
    #[inline]
    fn prefetch(&self) {
        let start = (&raw const *self).cast::<u8>();
        for at in (0..size_of::<Self>()).step_by(CACHE_LINE_BYTES) {
            prefetch_to_write(start.wrapping_add(at));
        }
    }
}

impl<P: Policy> MemoryStore<P> {
    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes.load(Ordering::Relaxed)
    }

    #[inline]
    fn shard_of(&self, fingerprint: u64) -> usize {
        shard_of(fingerprint, self.shards.len())
    }

    /// Takes the shared lock on an open shard.
    fn read(&self, shard: usize) -> Result<ReadGuard<'_, Contents<P>>> {
        let contents = self.shards[shard].0.read();
        if contents.is_closed() { Err(self.closed()) } else { Ok(contents) }
    }

    /// Takes the exclusive lock on an open shard.
    fn write(&self, shard: usize) -> Result<WriteGuard<'_, Contents<P>>> {
        let contents = self.shards[shard].0.write();
        if contents.is_closed() { Err(self.closed()) } else { Ok(contents) }
    }

    #[cold]
    fn closed(&self) -> Error {
        Error::Closed { store: self.describe() }
    }

    #[expect(
        clippy::inline_always,
        reason = "a part of every operation; it has too many callers otherwise"
    )]
    #[inline(always)]
    fn key<'a>(&self, key: &'a [u8]) -> Result<HashedKey<'a>> {
        check_key(self, key, MAX_KEY_BYTES)?;
        Ok(HashedKey { bytes: key, fingerprint: self.hasher.fingerprint(key) })
    }

    /// Refuses entries that are larger than the store accepts.
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
        self.reserve.spend();
        Error::OutOfMemory { bytes, store: self.describe() }
    }
}

impl<P: Policy> Drop for MemoryStore<P> {
    /// Saves the contents of a store that was not closed, unless loading has not finished.
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
