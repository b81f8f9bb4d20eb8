//! A store around another store.

use std::fmt;
use std::time::Duration;

use crate::compress::Compression;
use crate::error::Result;
use crate::lease::Lease;
use crate::pinned::Pinned;
use crate::stats::{LevelStats, Stats};
use crate::store::{Claim, ClaimHolder, Cursor, Durability, Found, Hit, Limits, Page, Store};
use crate::ttl::Ttl;
use crate::url::CacheUrl;
use crate::write::{Reservation, SetOptions, Version, Written};
use crate::writers::Writers;

/// A store around another store, [`inner`](Self::inner), that changes a few of its methods. Every
/// layer is a [`Store`], which forwards all other methods.
///
/// All reads of values pass one of two methods: [`loaded`](Self::loaded), if the value was copied, and
/// [`pinned`](Self::pinned), if it is behind a guard. A layer that stores values in another form overrides both, and
/// [`set`](Self::set), [`set_many`](Self::set_many), [`reserve`](Self::reserve) and
/// [`compare_and_delete`](Self::compare_and_delete).
///
/// ```
/// use std::sync::Arc;
/// use haypile::{Error, Layer, memory::MemoryBuilder, SetOptions, Store, Written};
///
/// /// Refuses values that are longer than a page.
/// #[derive(Debug)]
/// struct OnlyPages(Arc<dyn Store>);
///
/// impl Layer for OnlyPages {
///     fn inner(&self) -> &dyn Store {
///         &*self.0
///     }
///
///     fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written, Error> {
///         if value.len() > 4096 {
///             let (value_bytes, limit_bytes) = (value.len() as u64, 4096);
///             return Err(Error::ValueTooLarge { value_bytes, limit_bytes, store: self.describe() });
///         }
///         self.0.set(key, value, options)
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pages = OnlyPages(MemoryBuilder::new(1 << 20).store()?);
/// let cache = haypile::Cache::new(Arc::new(pages));
/// cache.set("page:/", vec![0; 4096])?;
/// assert!(cache.set("page:/large", vec![0; 5000]).is_err());
/// # Ok(())
/// # }
/// ```
pub trait Layer: fmt::Debug + Send + Sync {
    /// Returns the store that this layer is around.
    fn inner(&self) -> &dyn Store;

    /// Implements [`Store::url`].
    fn url(&self) -> CacheUrl {
        self.inner().url()
    }

    /// Implements [`Store::limits`].
    fn limits(&self) -> Limits {
        self.inner().limits()
    }

    /// Implements [`Store::compression`].
    fn compression(&self) -> Option<Compression> {
        self.inner().compression()
    }

    /// Receives the result of each read into a buffer, and returns the layer's result. The buffer has the value; it
    /// has to be empty where the result is `None`.
    ///
    /// # Errors
    ///
    /// The layer's own.
    fn loaded(&self, key: &[u8], buffer: &mut Vec<u8>, hit: Option<Hit>) -> Result<Option<Hit>> {
        let _ = (key, buffer);
        Ok(hit)
    }

    /// Receives the result of each read behind a guard, and returns the layer's result.
    ///
    /// # Errors
    ///
    /// The layer's own.
    fn pinned<'a>(&'a self, key: &[u8], found: Option<Pinned<'a>>) -> Result<Option<Pinned<'a>>> {
        let _ = key;
        Ok(found)
    }

    /// Implements [`Store::set`].
    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
        self.inner().set(key, value, options)
    }

    /// Implements [`Store::reserve`].
    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> Result<Box<dyn Reservation + '_>> {
        self.inner().reserve(key, value_bytes, options)
    }

    /// Implements [`Store::set_in_groups`]. A layer that overrides [`set`](Self::set) overrides this as well.
    fn set_in_groups(
        &self,
        key: &[u8],
        value: &[u8],
        options: &SetOptions,
        groups: &[&[u8]],
    ) -> Result<Written> {
        self.inner().set_in_groups(key, value, options, groups)
    }

    /// Implements [`Store::invalidate`].
    fn invalidate(&self, group: &[u8]) -> Result<()> {
        self.inner().invalidate(group)
    }

    /// Implements [`Store::set_many`].
    fn set_many(&self, entries: &[(&[u8], &[u8], SetOptions)]) -> Vec<Result<Written>> {
        self.inner().set_many(entries)
    }

    /// Implements [`Store::lease`].
    fn lease(&self, key: &[u8]) -> Result<Lease> {
        self.inner().lease(key)
    }

    /// Implements [`Store::check_lease`].
    fn check_lease(&self, key: &[u8], lease: Lease, groups: &[&[u8]]) -> Result<bool> {
        self.inner().check_lease(key, lease, groups)
    }

    /// Implements [`Store::delete`].
    fn delete(&self, key: &[u8]) -> Result<bool> {
        self.inner().delete(key)
    }

    /// Implements [`Store::delete_version`].
    fn delete_version(&self, key: &[u8], version: Version) -> Result<bool> {
        self.inner().delete_version(key, version)
    }

    /// Implements [`Store::compare_and_delete`].
    fn compare_and_delete(&self, key: &[u8], expected: &[u8]) -> Result<bool> {
        self.inner().compare_and_delete(key, expected)
    }

    /// Implements [`Store::delete_many`].
    fn delete_many(&self, keys: &[&[u8]]) -> Vec<Result<bool>> {
        self.inner().delete_many(keys)
    }

    /// Implements [`Store::touch`].
    fn touch(&self, key: &[u8], ttl: Ttl) -> Result<bool> {
        self.inner().touch(key, ttl)
    }

    /// Implements [`Store::incr`].
    fn incr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.inner().incr(key, delta)
    }

    /// Implements [`Store::decr`].
    fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.inner().decr(key, delta)
    }

    /// Implements [`Store::contains`].
    fn contains(&self, key: &[u8]) -> Result<bool> {
        self.inner().contains(key)
    }

    /// Implements [`Store::clear`].
    fn clear(&self) -> Result<()> {
        self.inner().clear()
    }

    /// Implements [`Store::keys`].
    fn keys(&self, from: Cursor, limit: usize) -> Result<Page> {
        self.inner().keys(from, limit)
    }

    /// Implements [`Store::stats`].
    fn stats(&self) -> Result<Stats> {
        self.inner().stats()
    }

    /// Implements [`Store::stats_by_level`]. By default, the level of an inner store that has only one gets the URL of
    /// the layer.
    fn stats_by_level(&self) -> Result<Vec<LevelStats>> {
        let mut levels = self.inner().stats_by_level()?;
        if let [only] = &mut levels[..] {
            only.url = Layer::url(self);
        }
        Ok(levels)
    }

    /// Implements [`Store::warnings`].
    fn warnings(&self) -> Vec<String> {
        self.inner().warnings()
    }

    /// Implements [`Store::writers`].
    fn writers(&self) -> Vec<Writers> {
        self.inner().writers()
    }

    /// Implements [`Store::flush`].
    fn flush(&self, durability: Durability) -> Result<()> {
        self.inner().flush(durability)
    }

    /// Implements [`Store::claim`].
    fn claim(&self, key: &[u8], take_over: Option<ClaimHolder>) -> Result<Claim<'_>> {
        self.inner().claim(key, take_over)
    }

    /// Implements [`Store::resize`].
    fn resize(&self, size_bytes: u64) -> Result<()> {
        self.inner().resize(size_bytes)
    }

    /// Implements [`Store::close`].
    fn close(&self) -> Result<()> {
        self.inner().close()
    }
}

/// `tests/layers.rs` checks that no method of [`Store`] is missing here.
impl<L: Layer> Store for L {
    fn url(&self) -> CacheUrl {
        Layer::url(self)
    }

    fn limits(&self) -> Limits {
        Layer::limits(self)
    }

    fn compression(&self) -> Option<Compression> {
        Layer::compression(self)
    }

    fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        let hit = self.inner().get_into(key, buffer)?;
        self.loaded(key, buffer, hit)
    }

    fn get_versioned_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        let hit = self.inner().get_versioned_into(key, buffer)?;
        self.loaded(key, buffer, hit)
    }

    fn get_if_changed_into(
        &self,
        key: &[u8],
        version: Version,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Hit>> {
        let hit = self.inner().get_if_changed_into(key, version, buffer)?;
        if hit.is_some_and(|hit| hit.version == Some(version)) {
            // There is no value to load.
            return Ok(hit);
        }
        self.loaded(key, buffer, hit)
    }

    fn get_pinned(&self, key: &[u8]) -> Result<Option<Pinned<'_>>> {
        self.pinned(key, self.inner().get_pinned(key)?)
    }

    fn get_in_place(&self, key: &[u8]) -> Result<Option<Pinned<'_>>> {
        self.pinned(key, self.inner().get_in_place(key)?)
    }

    fn get_in_place_verified(&self, key: &[u8]) -> Result<Option<Pinned<'_>>> {
        self.pinned(key, self.inner().get_in_place_verified(key)?)
    }

    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
        Layer::set(self, key, value, options)
    }

    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> Result<Box<dyn Reservation + '_>> {
        Layer::reserve(self, key, value_bytes, options)
    }

    fn set_in_groups(
        &self,
        key: &[u8],
        value: &[u8],
        options: &SetOptions,
        groups: &[&[u8]],
    ) -> Result<Written> {
        Layer::set_in_groups(self, key, value, options, groups)
    }

    fn invalidate(&self, group: &[u8]) -> Result<()> {
        Layer::invalidate(self, group)
    }

    fn lease(&self, key: &[u8]) -> Result<Lease> {
        Layer::lease(self, key)
    }

    fn check_lease(&self, key: &[u8], lease: Lease, groups: &[&[u8]]) -> Result<bool> {
        Layer::check_lease(self, key, lease, groups)
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        Layer::delete(self, key)
    }

    fn delete_version(&self, key: &[u8], version: Version) -> Result<bool> {
        Layer::delete_version(self, key, version)
    }

    fn compare_and_delete(&self, key: &[u8], expected: &[u8]) -> Result<bool> {
        Layer::compare_and_delete(self, key, expected)
    }

    fn touch(&self, key: &[u8], ttl: Ttl) -> Result<bool> {
        Layer::touch(self, key, ttl)
    }

    fn incr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        Layer::incr(self, key, delta)
    }

    fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        Layer::decr(self, key, delta)
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        Layer::contains(self, key)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Found>> {
        let found = self.inner().get_many(keys)?;
        let loaded = |(key, found): (&&[u8], Found)| {
            let (mut value, hit) =
                found.map_or((Vec::new(), None), |(value, hit)| (value, Some(hit)));
            Ok(self.loaded(key, &mut value, hit)?.map(|hit| (value, hit)))
        };
        keys.iter().zip(found).map(loaded).collect()
    }

    fn set_many(&self, entries: &[(&[u8], &[u8], SetOptions)]) -> Vec<Result<Written>> {
        Layer::set_many(self, entries)
    }

    fn delete_many(&self, keys: &[&[u8]]) -> Vec<Result<bool>> {
        Layer::delete_many(self, keys)
    }

    fn clear(&self) -> Result<()> {
        Layer::clear(self)
    }

    fn keys(&self, from: Cursor, limit: usize) -> Result<Page> {
        Layer::keys(self, from, limit)
    }

    fn len(&self) -> Result<u64> {
        self.inner().len()
    }

    fn is_empty(&self) -> Result<bool> {
        self.inner().is_empty()
    }

    fn bytes(&self) -> Result<u64> {
        self.inner().bytes()
    }

    fn stats(&self) -> Result<Stats> {
        Layer::stats(self)
    }

    fn stats_by_level(&self) -> Result<Vec<LevelStats>> {
        Layer::stats_by_level(self)
    }

    fn warnings(&self) -> Vec<String> {
        Layer::warnings(self)
    }

    fn writers(&self) -> Vec<Writers> {
        Layer::writers(self)
    }

    fn flush(&self, durability: Durability) -> Result<()> {
        Layer::flush(self, durability)
    }

    fn claim(&self, key: &[u8], take_over: Option<ClaimHolder>) -> Result<Claim<'_>> {
        Layer::claim(self, key, take_over)
    }

    fn await_claim(&self, key: &[u8], holder: ClaimHolder, at_most: Duration) {
        self.inner().await_claim(key, holder, at_most);
    }

    fn compute_wait(&self) -> Duration {
        self.inner().compute_wait()
    }

    fn resize(&self, size_bytes: u64) -> Result<()> {
        Layer::resize(self, size_bytes)
    }

    fn close(&self) -> Result<()> {
        Layer::close(self)
    }
}
