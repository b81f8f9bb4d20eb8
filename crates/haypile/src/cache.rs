//! [`Cache`], the handle that programs hold.

use std::sync::Arc;

use crate::compute::Computations;
use crate::error::{Error, Result};
use crate::groups;
use crate::lease::Lease;
use crate::mutant;
use crate::open::OpenError;
use crate::pinned::Pinned;
use crate::registry::Registry;
use crate::stats::{LevelStats, Stats};
use crate::store::{Cursor, Durability, Store};
use crate::ttl::Ttl;
use crate::write::{SetOptions, Version, WriteMode, Written};

/// Positions of a store that one page of [`Cache::keys`] visits.
const KEYS_PER_PAGE: usize = 256;

/// A cache: any [`Store`], with keys and values of every type that can be read as bytes, and with
/// computing on a miss.
///
/// Cloning is cheap. Clones, and all caches in this process that are made from one store, share the
/// store and the computations in progress.
///
/// The [`store`](Self::store) has further operations.
#[derive(Clone, Debug)]
pub struct Cache {
    // Dropped before the store, because it is found by the store's address.
    pub(crate) computations: Arc<Computations>,
    pub(crate) store: Arc<dyn Store>,
    /// The groups of all entries that are written through this cache; `None` where they are in none.
    groups: Option<Arc<[Box<[u8]>]>>,
}

impl Cache {
    /// Creates a cache on top of a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { computations: Computations::of(&store), store, groups: None }
    }

    /// Opens the cache of a URL with one of this crate's schemes. For other schemes, open the store
    /// by a [`Registry`] that has them.
    ///
    /// # Errors
    ///
    /// Those of [`Registry::open`].
    pub fn open(url: &str) -> Result<Self, OpenError> {
        Registry::new().open(url).map(Self::new)
    }

    /// Writes the value of `key` on behalf of a program that continues without the cache if the
    /// store refuses the value (too large, no room, or another process holds a lock): a refusal is
    /// counted in [`Stats::refused_values`] instead of returned as an error, and the old value is
    /// deleted if possible. Returns whether the value was written. Conditions hold as in
    /// [`write`](Self::write).
    ///
    /// # Errors
    ///
    /// All others of [`write`](Self::write).
    pub fn offer(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: SetOptions,
    ) -> Result<bool> {
        let key = key.as_ref();
        match self.write(key, value, options) {
            Ok(written) => Ok(written.is_stored()),
            Err(
                error @ (Error::ValueTooLarge { .. }
                | Error::OutOfMemory { .. }
                | Error::Full { .. }
                | Error::Busy { .. }),
            ) => {
                self.computations.counters().add_refused_value(&error);
                // It is out of date.
                let _ = self.delete(key);
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns a cache on the same store that puts all entries written through it into these groups: by each write, and
    /// by computing on a miss. [`invalidate`](Self::invalidate) then makes all entries of a group a miss, whoever wrote
    /// them, in the same time for one as for a million.
    ///
    /// ```
    /// # use haypile::Cache;
    /// # let cache = Cache::open("memory:size=1MiB")?;
    /// let pages_of_ann = cache.in_groups(["user:7", "pages"])?;
    /// pages_of_ann.set("page:/ann", "<html>")?;
    /// pages_of_ann.get_or_compute("page:/ann/friends", None, || b"<html>".to_vec())?;
    /// // She has another name now.
    /// cache.invalidate("user:7")?;
    /// assert_eq!(cache.get("page:/ann")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// What a computation stores has the groups as they were when it began: if one was invalidated since, by whatever process, its value is
    /// not stored. Caches that are in no group write entries without any. Reservations of the [`store`](Self::store) are in no group.
    ///
    /// # Errors
    ///
    /// [`Error::Group`] for more than 64 groups, or a name that has not 1 to 250 bytes. Whether the store has groups is seen when
    /// something is written.
    pub fn in_groups(&self, groups: impl IntoIterator<Item: AsRef<[u8]>>) -> Result<Self> {
        let groups: Arc<[Box<[u8]>]> =
            groups.into_iter().map(|group| group.as_ref().into()).collect();
        let cache =
            Self { groups: Some(groups).filter(|groups| !groups.is_empty()), ..self.clone() };
        groups::check(&*self.store, &cache.groups())?;
        Ok(cache)
    }

    /// Invalidates a group of entries: each later read of one of its entries is a miss; see
    /// [`Store::invalidate`].
    ///
    /// # Errors
    ///
    /// Those of [`Store::invalidate`].
    pub fn invalidate(&self, group: impl AsRef<[u8]>) -> Result<()> {
        self.store.invalidate(group.as_ref())
    }

    /// Returns the names of the groups into which this cache puts every entry that it writes.
    pub(crate) fn groups(&self) -> Vec<&[u8]> {
        self.groups.iter().flat_map(|groups| groups.iter()).map(AsRef::as_ref).collect()
    }

    /// Writes an entry, puts it in the groups that this cache was given, and returns whether the
    /// condition in `options` held.
    #[inline]
    pub(crate) fn put(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
        if self.groups.is_none() {
            return self.store.set(key, value, options);
        }
        self.store.set_in_groups(key, value, options, &self.groups())
    }

    /// Returns the store that holds the entries of this cache.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns a copy of the value of the entry under `key`; `None` if the cache has no such entry
    /// (a miss).
    ///
    /// # Errors
    ///
    /// Those of [`Store`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.store.get(key.as_ref())
    }

    /// Returns the value of the entry under `key`, and the entry's version, with which
    /// [`cas`](Self::cas) later writes only if the entry is unchanged; `None` for a miss.
    ///
    /// # Errors
    ///
    /// Those of [`Store`]; [`Error::Unsupported`] if the store finds a value and has no versions.
    pub fn get_versioned(&self, key: impl AsRef<[u8]>) -> Result<Option<(Vec<u8>, Version)>> {
        let mut value = Vec::new();
        let Some(hit) = self.store.get_versioned_into(key.as_ref(), &mut value)? else {
            return Ok(None);
        };
        let version = hit.version.ok_or_else(|| Error::Unsupported {
            operation: "compare and swap",
            store: self.store.describe(),
        })?;
        Ok(Some((value, version)))
    }

    /// Returns for each of `keys`, in their order, the value of its entry, or `None` if the cache
    /// has no such entry. [`Store::get_many`] also returns their versions, where they are known.
    ///
    /// # Errors
    ///
    /// Those of [`Store`]; the first error ends the call.
    pub fn get_many(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Vec<u8>>>> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let values = self.store.get_many(&keys)?;
        Ok(values.into_iter().map(|found| found.map(|(value, _)| value)).collect())
    }

    /// Returns the value of `key` behind a guard that keeps it readable, in place in the cache's
    /// memory where possible instead of as a copy; `None` for a miss; see [`Store::get_pinned`].
    ///
    /// # Errors
    ///
    /// Those of [`Store`].
    pub fn get_pinned(&self, key: impl AsRef<[u8]>) -> Result<Option<Pinned<'_>>> {
        self.store.get_pinned(key.as_ref())
    }

    /// Writes the value of `key`, in place of any previous one; the entry lives as long as `ttl=`
    /// in the cache's URL says, or forever without that.
    ///
    /// # Errors
    ///
    /// Those of [`Store::set`].
    pub fn set(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write(key, value, SetOptions::set()).map(drop)
    }

    /// Writes the value of `key`, in place of any previous one; the entry expires after `ttl`, or
    /// never if that is `None`.
    ///
    /// # Errors
    ///
    /// Those of [`Store::set`].
    pub fn set_with_ttl(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: impl Into<Ttl>,
    ) -> Result<()> {
        self.write(key, value, SetOptions::set().with_ttl(ttl)).map(drop)
    }

    /// Writes a value if the key has none; returns whether it was written.
    ///
    /// # Errors
    ///
    /// Those of [`Store::set`].
    pub fn add(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.write(key, value, SetOptions::add()).map(Written::is_stored)
    }

    /// Writes a value if the key already has one; returns whether it was written.
    ///
    /// # Errors
    ///
    /// Those of [`Store::set`].
    pub fn replace(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.write(key, value, SetOptions::replace()).map(Written::is_stored)
    }

    /// Writes a value if the entry still has the version that
    /// [`get_versioned`](Self::get_versioned) returned (compare and swap).
    ///
    /// # Errors
    ///
    /// Those of [`Store::set`].
    pub fn cas(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        version: Version,
    ) -> Result<Written> {
        self.write(key, value, SetOptions::cas(version))
    }

    /// Writes the value of `key` with `options` (a condition, such as that the key has no entry
    /// yet, and a TTL), and returns whether the condition held.
    ///
    /// # Errors
    ///
    /// Those of [`Store::set`].
    pub fn write(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: SetOptions,
    ) -> Result<Written> {
        let (key, flights) = (key.as_ref(), self.computations.flights());
        let set = || self.put(key, value.as_ref(), &options);
        if matches!(options.mode, WriteMode::Leased(_)) {
            return flights.change_if(key, set, |written| written.is_stored());
        }
        flights.note_change(key);
        set()
    }

    /// Grants a lease on `key`: the right to store the value that the caller is about to ask for elsewhere, unless the key
    /// changes in the meantime. See [`Lease`].
    ///
    /// ```
    /// # use haypile::{Cache, SetOptions, Written};
    /// # let cache = Cache::open("memory:size=1MiB")?;
    /// # let ask_the_data_base = || { cache.delete("user:7").unwrap(); "Ann" };
    /// if cache.get("user:7")?.is_none() {
    ///     let lease = cache.lease("user:7")?;
    ///     let name = ask_the_data_base();
    ///     // Another caller has changed the user since, and deleted the key: nothing is stored.
    ///     assert_eq!(cache.write("user:7", name, SetOptions::leased(lease))?, Written::Revoked);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Store::lease`].
    pub fn lease(&self, key: impl AsRef<[u8]>) -> Result<Lease> {
        self.store.lease(key.as_ref())
    }

    /// Writes pairs of key and value, all under the same options, and returns the outcome of each:
    /// if one fails, the others are still written. [`write_many`](Self::write_many) takes options per
    /// entry; the errors are those of [`Store::set`].
    pub fn set_many(
        &self,
        entries: &[(impl AsRef<[u8]>, impl AsRef<[u8]>)],
        options: SetOptions,
    ) -> Vec<Result<Written>> {
        let entries: Vec<(&[u8], &[u8], SetOptions)> =
            entries.iter().map(|(key, value)| (key.as_ref(), value.as_ref(), options)).collect();
        self.write_many(&entries)
    }

    /// Writes several values, each under its own key and with its own options, and returns the
    /// outcome of each write; see [`Store::set_many`].
    pub fn write_many(&self, entries: &[(&[u8], &[u8], SetOptions)]) -> Vec<Result<Written>> {
        for (key, ..) in entries {
            self.computations.flights().note_change(key);
        }
        if self.groups.is_none() {
            return self.store.set_many(entries);
        }
        entries.iter().map(|(key, value, options)| self.put(key, value, options)).collect()
    }

    /// Deletes the entry of a key; returns whether there was one.
    ///
    /// # Errors
    ///
    /// Those of [`Store`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.computations.flights().note_change(key.as_ref());
        self.store.delete(key.as_ref())
    }

    /// Deletes an entry if it still has the version that [`get_versioned`](Self::get_versioned)
    /// returned; returns whether it was deleted.
    ///
    /// # Errors
    ///
    /// Those of [`Store::delete_version`].
    pub fn delete_version(&self, key: impl AsRef<[u8]>, version: Version) -> Result<bool> {
        let key = key.as_ref();
        let delete = || self.store.delete_version(key, version);
        self.computations.flights().change_if(key, delete, |deleted| *deleted)
    }

    /// Deletes an entry if its value is still `expected`; returns whether it was deleted. See
    /// [`Store::compare_and_delete`].
    ///
    /// # Errors
    ///
    /// Those of [`Store::compare_and_delete`].
    pub fn compare_and_delete(
        &self,
        key: impl AsRef<[u8]>,
        expected: impl AsRef<[u8]>,
    ) -> Result<bool> {
        let (key, expected) = (key.as_ref(), expected.as_ref());
        let delete = || self.store.compare_and_delete(key, expected);
        self.computations.flights().change_if(key, delete, |deleted| *deleted)
    }

    /// Deletes the entries of several keys; returns for each key whether it had an entry. If one
    /// fails, the others are still deleted; the errors are those of [`Store`].
    pub fn delete_many(&self, keys: &[impl AsRef<[u8]>]) -> Vec<Result<bool>> {
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        for key in &keys {
            if !mutant::is_on("deleting-many-outdates-nothing") {
                self.computations.flights().note_change(key);
            }
        }
        self.store.delete_many(&keys)
    }

    /// Deletes all entries of the cache.
    ///
    /// # Errors
    ///
    /// Those of [`Store`].
    pub fn clear(&self) -> Result<()> {
        self.computations.flights().note_change_of_all();
        self.store.clear()
    }

    /// Sets a new TTL for the entry of a key, counted from now (`None` means forever); returns
    /// whether there was an entry.
    ///
    /// # Errors
    ///
    /// Those of [`Store::touch`].
    pub fn touch(&self, key: impl AsRef<[u8]>, ttl: impl Into<Ttl>) -> Result<bool> {
        self.store.touch(key.as_ref(), ttl.into())
    }

    /// Adds `delta` to the counter (a value of decimal digits) under `key`, and returns the sum;
    /// `None` if the key has no entry; see [`Store::incr`].
    ///
    /// # Errors
    ///
    /// Those of [`Store::incr`].
    pub fn incr(&self, key: impl AsRef<[u8]>, delta: u64) -> Result<Option<u64>> {
        self.computations.flights().note_change(key.as_ref());
        self.store.incr(key.as_ref(), delta)
    }

    /// Subtracts `delta` from the counter (a value of decimal digits) under `key`, and returns the
    /// result; `None` if the key has no entry; see [`Store::decr`].
    ///
    /// # Errors
    ///
    /// Those of [`Store::decr`].
    pub fn decr(&self, key: impl AsRef<[u8]>, delta: u64) -> Result<Option<u64>> {
        self.computations.flights().note_change(key.as_ref());
        self.store.decr(key.as_ref(), delta)
    }

    /// Whether there is an entry under `key`.
    ///
    /// # Errors
    ///
    /// Those of [`Store`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.store.contains(key.as_ref())
    }

    /// Returns the number of entries in the cache. It may include entries that have expired but are
    /// not removed yet.
    ///
    /// # Errors
    ///
    /// Those of [`Store`].
    pub fn len(&self) -> Result<u64> {
        self.store.len()
    }

    /// Whether the cache has no entries, expired ones included.
    ///
    /// # Errors
    ///
    /// Those of [`Store`].
    pub fn is_empty(&self) -> Result<bool> {
        self.store.is_empty()
    }

    /// Returns the counts of reads, writes and computations since the cache's store was opened,
    /// even after it was closed.
    ///
    /// # Errors
    ///
    /// Those of [`Store`].
    pub fn stats(&self) -> Result<Stats> {
        let mut stats = self.store.stats()?;
        self.computations.counters().add_to(&mut stats);
        Ok(stats)
    }

    /// Returns warnings of problems that made no operation fail, one text each, for people: those of
    /// the [store](Store::warnings), and computed values that it does not store. The first of each
    /// kind is also written to the log, when it occurs.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.store.warnings();
        warnings.extend(self.computations.counters().warnings());
        warnings
    }

    /// Returns the counts of each level of the store in Prometheus' text format; see
    /// [`LevelStats::prometheus`]. Counts of computations belong to the first level.
    ///
    /// # Errors
    ///
    /// Those of [`Store::stats_by_level`].
    pub fn prometheus(&self) -> Result<String> {
        let mut levels = self.store.stats_by_level()?;
        if let Some(first) = levels.first_mut() {
            self.computations.counters().add_to(&mut first.stats);
        }
        Ok(LevelStats::prometheus(&levels))
    }

    /// Waits until all writes that were accepted before the call are as durable as `durability`
    /// says, such as written to disk.
    ///
    /// # Errors
    ///
    /// Those of [`Store`]; [`Error::Unsupported`] for a durability that it does not offer.
    pub fn flush(&self, durability: Durability) -> Result<()> {
        self.store.flush(durability)
    }

    /// Makes the cache's store larger or smaller while it is in use; see [`Store::resize`].
    ///
    /// # Errors
    ///
    /// Those of [`Store::resize`].
    pub fn resize(&self, size_bytes: u64) -> Result<()> {
        self.store.resize(size_bytes)
    }

    /// Closes the store for all caches and threads that use it; see [`Store::close`].
    ///
    /// # Errors
    ///
    /// Those of [`Store`]. Closing twice is not an error.
    pub fn close(&self) -> Result<()> {
        self.store.close()
    }

    /// Returns all keys, fetched page by page; see [`Store::keys`] for what it returns. An error
    /// ends the iteration.
    pub fn keys(&self) -> impl Iterator<Item = Result<Vec<u8>>> + '_ {
        let mut next = Some(Cursor::default());
        let pages = std::iter::from_fn(move || {
            let page = self.store.keys(next.take()?, KEYS_PER_PAGE);
            next = page.as_ref().ok().and_then(|page| page.next);
            Some(page.map_or_else(
                |error| vec![Err(error)],
                |page| page.keys.into_iter().map(Ok).collect(),
            ))
        });
        pages.flatten()
    }
}
