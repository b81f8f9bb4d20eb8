//! The cache that programs hold.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::flight::{Boarding, Flights};
use crate::registry::{OpenError, Registry};
use crate::store::{Cursor, Hit, SetOptions, Store, Version, Written};
use crate::ttl::Ttl;

/// How many places of a store one page of [`Cache::keys`] looks at.
const KEYS_PER_PAGE: usize = 256;

/// A cache: any [`Store`], with keys and values of any type that is bytes, and with computing on a
/// miss.
///
/// Cloning is cheap. Clones share the store and the computations that are going on; two caches
/// made from one store do not share the latter.
///
/// What is not here, the [`store`](Self::store) has.
#[derive(Clone, Debug)]
pub struct Cache {
    store: Arc<dyn Store>,
    shared: Arc<Shared>,
}

/// What the clones of a cache have in common beside its store.
#[derive(Debug, Default)]
struct Shared {
    flights: Flights,
    unstored: AtomicU64,
}

/// Why a computed value could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComputeError<E> {
    /// The cache failed before anything was computed.
    #[error(transparent)]
    Cache(#[from] Error),
    /// The computation failed.
    #[error("the value could not be computed: {0}")]
    Compute(E),
}

impl Cache {
    /// A cache around a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, shared: Arc::default() }
    }

    /// Opens a cache of the schemes that this crate has. For others, open the store by a
    /// [`Registry`] that knows them.
    ///
    /// # Errors
    ///
    /// Those of [`Registry::open`].
    pub fn open(url: &str) -> Result<Self, OpenError> {
        Registry::new().open(url).map(Self::new)
    }

    /// The store under this cache.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The value of `key`.
    ///
    /// # Errors
    ///
    /// Those of [`Store`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.store.get(key.as_ref())
    }

    /// The value of `key` and the version to [`cas`](Self::cas) it with.
    ///
    /// # Errors
    ///
    /// Those of [`Store`].
    pub fn get_versioned(&self, key: impl AsRef<[u8]>) -> Result<Option<(Vec<u8>, Version)>> {
        let mut value = Vec::new();
        let hit = self.store.get_into(key.as_ref(), &mut value)?;
        Ok(hit.map(|hit| (value, hit.version)))
    }

    /// Writes a value with the TTL that the cache's URL says.
    ///
    /// # Errors
    ///
    /// Those of [`Store::set`].
    pub fn set(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write(key, value, SetOptions::set()).map(drop)
    }

    /// Writes a value that lives for `ttl`; `None` is for ever.
    ///
    /// # Errors
    ///
    /// Those of [`Store::set`].
    pub fn set_for(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: impl Into<Ttl>,
    ) -> Result<()> {
        self.write(key, value, SetOptions::set().with_ttl(ttl)).map(drop)
    }

    /// Writes a value if the key has none; says whether it did.
    ///
    /// # Errors
    ///
    /// Those of [`Store::set`].
    pub fn add(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.write(key, value, SetOptions::add()).map(Written::is_stored)
    }

    /// Writes a value if the key has one; says whether it did.
    ///
    /// # Errors
    ///
    /// Those of [`Store::set`].
    pub fn replace(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.write(key, value, SetOptions::replace()).map(Written::is_stored)
    }

    /// Writes a value if the entry still has the version that
    /// [`get_versioned`](Self::get_versioned) gave.
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

    /// Writes a value under any condition and with any TTL.
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
        self.store.set(key.as_ref(), value.as_ref(), &options)
    }

    /// Deletes an entry; says whether there was one.
    ///
    /// # Errors
    ///
    /// Those of [`Store`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.store.delete(key.as_ref())
    }

    /// Gives an entry a new TTL, counted from now, `None` for ever; says whether there was one.
    ///
    /// # Errors
    ///
    /// Those of [`Store::touch`].
    pub fn touch(&self, key: impl AsRef<[u8]>, ttl: impl Into<Ttl>) -> Result<bool> {
        self.store.touch(key.as_ref(), ttl.into())
    }

    /// Adds to a counter; see [`Store::incr`].
    ///
    /// # Errors
    ///
    /// Those of [`Store::incr`].
    pub fn incr(&self, key: impl AsRef<[u8]>, delta: u64) -> Result<Option<u64>> {
        self.store.incr(key.as_ref(), delta)
    }

    /// Subtracts from a counter; see [`Store::decr`].
    ///
    /// # Errors
    ///
    /// Those of [`Store::decr`].
    pub fn decr(&self, key: impl AsRef<[u8]>, delta: u64) -> Result<Option<u64>> {
        self.store.decr(key.as_ref(), delta)
    }

    /// Whether there is an entry.
    ///
    /// # Errors
    ///
    /// Those of [`Store`].
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.store.contains(key.as_ref())
    }

    /// All keys, fetched page by page; see [`Store::keys`] for what comes. An error ends it.
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

    /// The value of `key`; if there is none, what `compute` gives, which is stored for `ttl`.
    ///
    /// However many threads ask through this cache and its clones, one computes and the others
    /// wait for its value; they get it also where the store does not retain it. If the
    /// computation panics, the panic goes on in its thread and one of those who wait computes
    /// with its own `compute`. A value that the store refuses, because it is too large for it or
    /// because the store fails, is returned all the same and counted by
    /// [`unstored`](Self::unstored).
    ///
    /// # Errors
    ///
    /// What the store says of the key or of reading it, before anything is computed;
    /// [`Error::ZeroTtl`]; [`Error::ComputesItself`]. Two computations that ask for each other's
    /// keys wait for ever.
    pub fn get_or_compute(
        &self,
        key: impl AsRef<[u8]>,
        ttl: impl Into<Ttl>,
        compute: impl FnOnce() -> Vec<u8>,
    ) -> Result<Vec<u8>> {
        self.get_or_try_compute(key, ttl, || Ok(compute())).map_err(infallible)
    }

    /// As [`get_or_compute`](Self::get_or_compute) with a computation that can fail. Its failure
    /// is the caller's; nothing is stored, and one of those who wait computes next.
    ///
    /// # Errors
    ///
    /// Those of [`get_or_compute`](Self::get_or_compute), and the computation's own.
    pub fn get_or_try_compute<E>(
        &self,
        key: impl AsRef<[u8]>,
        ttl: impl Into<Ttl>,
        compute: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, ComputeError<E>> {
        let options = SetOptions::set().with_ttl(ttl);
        self.compute_unless(key.as_ref(), options, |_| true, compute)
    }

    /// As [`get_or_compute`](Self::get_or_compute), with a value that is fresh for `fresh` and may
    /// be served for `stale` longer while one thread computes the next one. That thread gets what
    /// it computes, the others the stale value at once.
    ///
    /// The entry is stored for `fresh + stale`, and [`get`](Self::get) finds it so long. A store
    /// that cannot tell how long an entry still lives (see [`Hit::expires_in`]) serves it as
    /// fresh until then.
    ///
    /// # Errors
    ///
    /// Those of [`get_or_compute`](Self::get_or_compute).
    pub fn get_or_refresh(
        &self,
        key: impl AsRef<[u8]>,
        fresh: Duration,
        stale: Duration,
        compute: impl FnOnce() -> Vec<u8>,
    ) -> Result<Vec<u8>> {
        if fresh.is_zero() {
            return Err(Error::ZeroTtl);
        }
        let options = SetOptions::set().with_ttl(fresh.saturating_add(stale));
        let is_fresh = |hit: Hit| hit.expires_in.is_none_or(|left| left > stale);
        self.compute_unless(key.as_ref(), options, is_fresh, || Ok(compute())).map_err(infallible)
    }

    /// How many computed values the store refused, since this cache or the first of its clones was
    /// made.
    pub fn unstored(&self) -> u64 {
        self.shared.unstored.load(Ordering::Relaxed)
    }

    fn compute_unless<E>(
        &self,
        key: &[u8],
        options: SetOptions,
        is_fresh: impl Fn(Hit) -> bool,
        compute: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, ComputeError<E>> {
        options.ttl.resolve(None)?;
        let mut value = Vec::new();
        let mut hit = self.store.get_into(key, &mut value)?;
        loop {
            if hit.is_some_and(&is_fresh) {
                return Ok(value);
            }
            match self.shared.flights.board(key) {
                Boarding::Follow(_) if hit.is_some() => return Ok(value),
                Boarding::Follow(flight) => match flight.wait()? {
                    Some(value) => return Ok(value),
                    None => hit = None,
                },
                Boarding::Lead(flight) => {
                    // Another leader may have landed between the look above and this one. Most
                    // often none has, and `contains` counts no second miss.
                    if self.store.contains(key)? {
                        hit = self.store.get_into(key, &mut value)?;
                        if hit.is_some_and(&is_fresh) {
                            return Ok(value);
                        }
                    }
                    let value = compute().map_err(ComputeError::Compute)?;
                    // A value that cannot be stored is still what the caller asked for.
                    if self.store.set(key, &value, &options).is_err() {
                        self.shared.unstored.fetch_add(1, Ordering::Relaxed);
                    }
                    flight.land(&value);
                    return Ok(value);
                }
            }
        }
    }
}

fn infallible(error: ComputeError<Infallible>) -> Error {
    match error {
        ComputeError::Cache(error) => error,
        ComputeError::Compute(never) => match never {},
    }
}
