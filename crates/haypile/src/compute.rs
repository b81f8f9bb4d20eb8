//! Computing what the cache does not have.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::flight::{Boarding, Flights};
use crate::store::Hit;
use crate::ttl::Ttl;
use crate::write::SetOptions;

/// The computations that a cache and its clones have in common.
#[derive(Debug, Default)]
pub(crate) struct Computations {
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

/// Computing on a miss.
impl Cache {
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
        self.computations.unstored.load(Ordering::Relaxed)
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
            match self.computations.flights.board(key) {
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
                        self.computations.unstored.fetch_add(1, Ordering::Relaxed);
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
