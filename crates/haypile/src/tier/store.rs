//! The tiered store: two levels as one [`Store`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

#[cfg(not(shuttle))]
use parking_lot::Mutex;

use super::TierOptions;
#[cfg(not(shuttle))]
use super::flusher::Flusher;
use super::levels::Levels;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::lease::Lease;
use crate::mutant;
use crate::pinned::Pinned;
use crate::stats::{LevelStats, Stats};
use crate::store::{Claim, ClaimHolder, Cursor, Durability, Found, Hit, Limits, Page, Store};
use crate::ttl::Ttl;
use crate::url::CacheUrl;
use crate::write::{Reservation, SetOptions, Version, Written};
use crate::writers::Writers;

/// A store that combines an upper (faster) and a lower level of a cache; see the [module
/// documentation](super).
///
/// Its limits are those of the last level: entries that the upper level does not accept have no
/// copy there.
pub struct TieredStore {
    levels: Arc<Levels>,
    #[cfg(not(shuttle))]
    flusher: Mutex<Option<Flusher>>,
}

impl TieredStore {
    /// Returns a store that reads `upper` before `lower`. Only this store may use the upper level.
    ///
    /// `clock` measures the reads below, and the expiry of pending writes.
    pub fn new(
        upper: Arc<dyn Store>,
        lower: Arc<dyn Store>,
        options: TierOptions,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let levels = Arc::new(Levels::new(upper, lower, options, clock));
        Self {
            #[cfg(not(shuttle))]
            flusher: Mutex::new(Flusher::start(&levels)),
            levels,
        }
    }

    /// Returns the upper level of this store, which is read first.
    pub fn upper(&self) -> &Arc<dyn Store> {
        &self.levels.upper
    }

    /// Returns the store below the upper level: one level or several.
    pub fn lower(&self) -> &Arc<dyn Store> {
        &self.levels.lower
    }

    /// Returns the value of a key behind a guard: the upper level's, if it has a copy that can be served.
    fn pinned<'a>(
        &'a self,
        key: &[u8],
        upper: Result<Option<Pinned<'a>>>,
    ) -> Result<Option<Pinned<'a>>> {
        match upper {
            Ok(Some(kept)) => {
                if let Some((value_bytes, hit)) = self.levels.serve(&kept, kept.hit(), false) {
                    // Without the trailer behind it.
                    return Ok(Some(Pinned::part_of(kept, value_bytes, hit)));
                }
            }
            Ok(None) => {}
            Err(error) => self.levels.counts.upper_failed(&error),
        }
        let mut buffer = Vec::new();
        let hit = self.levels.read_below(key, &mut buffer, false)?;
        Ok(hit.map(|hit| Pinned::copied(buffer, hit)))
    }

    /// Ends the thread that writes, and writes the rest.
    fn end_deferring(&self) -> Result<()> {
        let Some(queue) = self.levels.queue() else {
            // In a child, the thread is the parent's, and its number may be that of another one.
            #[cfg(not(shuttle))]
            std::mem::forget(self.flusher.lock().take());
            return Ok(());
        };
        queue.close();
        #[cfg(not(shuttle))]
        if let Some(flusher) = self.flusher.lock().take() {
            flusher.join();
        }
        if mutant::is_on("writes-are-lost-at-close") {
            return Ok(());
        }
        self.levels.drain_finally()
    }
}

impl Drop for TieredStore {
    /// Writes the pending values.
    fn drop(&mut self) {
        if let Err(error) = self.end_deferring() {
            log::warn!("writes that were accepted are lost: {error}");
        }
    }
}

impl fmt::Debug for TieredStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TieredStore").field(&self.describe()).finish()
    }
}

impl Store for TieredStore {
    fn url(&self) -> CacheUrl {
        self.levels.url()
    }

    fn limits(&self) -> Limits {
        self.levels.lower.limits()
    }

    fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        self.levels.read(key, buffer, false)
    }

    fn get_versioned_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        self.levels.read(key, buffer, true)
    }

    fn get_pinned(&self, key: &[u8]) -> Result<Option<Pinned<'_>>> {
        self.pinned(key, self.levels.upper.get_pinned(key))
    }

    /// Keeps a copy of the upper level in place.
    fn get_in_place(&self, key: &[u8]) -> Result<Option<Pinned<'_>>> {
        self.pinned(key, self.levels.upper.get_in_place(key))
    }

    fn get_in_place_verified(&self, key: &[u8]) -> Result<Option<Pinned<'_>>> {
        self.pinned(key, self.levels.upper.get_in_place_verified(key))
    }

    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
        self.levels.set(key, value, options)
    }

    /// Writes into the last level alone.
    fn set_in_groups(
        &self,
        key: &[u8],
        value: &[u8],
        options: &SetOptions,
        groups: &[&[u8]],
    ) -> Result<Written> {
        self.levels.set_in_groups(key, value, options, groups)
    }

    fn invalidate(&self, group: &[u8]) -> Result<()> {
        self.levels.lower.invalidate(group)
    }

    /// Reserves in the last level, and never defers.
    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> Result<Box<dyn Reservation + '_>> {
        let below = self.levels.lower.reserve(key, value_bytes, options)?;
        Ok(Box::new(TierReservation { levels: &self.levels, key: key.into(), below }))
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        self.levels.delete(key)
    }

    /// The lease of the last level: the others have copies of what is there.
    fn lease(&self, key: &[u8]) -> Result<Lease> {
        if self.levels.queue().is_some() {
            // What was accepted before would else revoke the lease when it is written.
            let change = self.levels.change(key);
            self.levels.settle(key, &change)?;
        }
        self.levels.lower.lease(key)
    }

    fn check_lease(&self, key: &[u8], lease: Lease, groups: &[&[u8]]) -> Result<bool> {
        self.levels.lower.check_lease(key, lease, groups)
    }

    fn delete_version(&self, key: &[u8], version: Version) -> Result<bool> {
        let change = self.levels.change(key);
        self.levels.settle(key, &change)?;
        self.levels.lower.delete_version(key, version)
    }

    fn compare_and_delete(&self, key: &[u8], expected: &[u8]) -> Result<bool> {
        let change = self.levels.change(key);
        self.levels.settle(key, &change)?;
        self.levels.lower.compare_and_delete(key, expected)
    }

    fn touch(&self, key: &[u8], ttl: Ttl) -> Result<bool> {
        let change = self.levels.change(key);
        self.levels.settle(key, &change)?;
        self.levels.lower.touch(key, ttl)
    }

    fn incr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        let change = self.levels.change(key);
        self.levels.settle(key, &change)?;
        self.levels.lower.incr(key, delta)
    }

    fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        let change = self.levels.change(key);
        self.levels.settle(key, &change)?;
        self.levels.lower.decr(key, delta)
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        self.levels.contains(key)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Found>> {
        self.levels.get_many(keys)
    }

    fn set_many(&self, entries: &[(&[u8], &[u8], SetOptions)]) -> Vec<Result<Written>> {
        self.levels.set_many(entries)
    }

    fn delete_many(&self, keys: &[&[u8]]) -> Vec<Result<bool>> {
        self.levels.delete_many(keys)
    }

    fn clear(&self) -> Result<()> {
        self.levels.clear()
    }

    fn keys(&self, from: Cursor, limit: usize) -> Result<Page> {
        self.levels.drain()?;
        self.levels.lower.keys(from, limit)
    }

    fn len(&self) -> Result<u64> {
        self.levels.drain()?;
        self.levels.lower.len()
    }

    fn is_empty(&self) -> Result<bool> {
        self.levels.drain()?;
        self.levels.lower.is_empty()
    }

    fn bytes(&self) -> Result<u64> {
        self.levels.drain()?;
        self.levels.lower.bytes()
    }

    fn stats(&self) -> Result<Stats> {
        let (upper, lower) = (self.levels.upper.stats()?, self.levels.lower.stats()?);
        Ok(self.levels.counts.stats(&upper, &lower))
    }

    fn stats_by_level(&self) -> Result<Vec<LevelStats>> {
        let mut levels = self.levels.upper.stats_by_level()?;
        levels.extend(self.levels.lower.stats_by_level()?);
        Ok(levels)
    }

    fn writers(&self) -> Vec<Writers> {
        [&self.levels.upper, &self.levels.lower]
            .into_iter()
            .flat_map(|level| level.writers())
            .collect()
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = self.levels.upper.warnings();
        warnings.extend(self.levels.lower.warnings());
        warnings.extend(self.levels.counts.warnings());
        warnings
    }

    fn flush(&self, durability: Durability) -> Result<()> {
        self.levels.drain()?;
        match self.levels.upper.flush(durability) {
            // Its entries are also below, where the flush goes first.
            Ok(()) | Err(Error::Unsupported { .. }) => {}
            Err(error) => return Err(error),
        }
        self.levels.lower.flush(durability)
    }

    fn claim(&self, key: &[u8], take_over: Option<ClaimHolder>) -> Result<Claim<'_>> {
        let claim = self.levels.lower.claim(key, take_over)?;
        if matches!(claim, Claim::Held { .. }) && !mutant::is_on("claim-leaves-the-copy") {
            // A caller that computes reads again, and must see a value that another process has
            // stored.
            drop(self.levels.change(key));
        }
        Ok(claim)
    }

    fn await_claim(&self, key: &[u8], holder: ClaimHolder, at_most: Duration) {
        self.levels.lower.await_claim(key, holder, at_most);
    }

    fn compute_wait(&self) -> Duration {
        self.levels.lower.compute_wait()
    }

    fn resize(&self, size_bytes: u64) -> Result<()> {
        self.levels.lower.resize(size_bytes)
    }

    /// Writes the pending values, and closes all levels even if one of them fails.
    fn close(&self) -> Result<()> {
        let written = self.end_deferring();
        let closed = self.levels.upper.close();
        written.and(closed).and(self.levels.lower.close())
    }
}

struct TierReservation<'a> {
    levels: &'a Levels,
    key: Box<[u8]>,
    below: Box<dyn Reservation + 'a>,
}

impl Reservation for TierReservation<'_> {
    fn buffer(&mut self) -> &mut [u8] {
        self.below.buffer()
    }

    fn commit(self: Box<Self>) -> Result<Written> {
        let Self { levels, key, below } = *self;
        let change = levels.change(&key);
        levels.settle(&key, &change)?;
        below.commit()
    }
}
