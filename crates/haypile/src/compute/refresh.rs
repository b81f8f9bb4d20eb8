//! Refreshing a value while the current one is served.
//!
//! Early refresh uses a fixed window and not chance. Among callers that do not know of each other,
//! chance keeps them from computing all at once (A. Vattani, F. Chierichetti, K. Lowenstein,
//! "Optimal Probabilistic Cache Stampede Prevention", VLDB 2015), at the price of some computations
//! that are too early and some that coincide. The callers of one process do know of each other
//! here: the first one in the window computes, once, at a predictable time. Several processes that
//! share a store compute at most once each.

use crate::cache::Cache;
use crate::error::Result;
use crate::flight::{Boarding, Computer, Leader, Need};
use crate::store::Hit;
use crate::write::SetOptions;

use super::{ComputeError, Freshness, Looked, infallible};

/// Refreshing before a value is gone.
impl Cache {
    /// Returns the value of `key` like [`get_or_compute`](Self::get_or_compute), and refreshes it
    /// while it is served: when it is due according to [`freshness`](Freshness), one caller
    /// computes the next value and gets it; the others get the current one.
    ///
    /// The entry is stored for `fresh + stale`, and [`get`](Self::get) finds it for that time. A
    /// store that cannot report an entry's remaining life (see [`Hit::expires_in`]) serves it as
    /// fresh until then. The next value is stored under a lease: if the key was written or removed
    /// while it was computed, it is returned and not stored. Without leases, it replaces only the one
    /// that was served; a store without versions cannot tell, and replaces the value that is there.
    ///
    /// # Errors
    ///
    /// Those of [`get_or_compute`](Self::get_or_compute).
    pub fn get_or_refresh(
        &self,
        key: impl AsRef<[u8]>,
        freshness: impl Into<Freshness>,
        compute: impl FnOnce() -> Vec<u8>,
    ) -> Result<Vec<u8>> {
        self.get_or_try_refresh(key, freshness, || Ok(compute())).map_err(infallible)
    }

    /// Returns the value of `key` like [`get_or_refresh`](Self::get_or_refresh), with a computation
    /// that can fail. While there is a value, fresh or stale, a failed computation returns that
    /// value, as `stale-if-error` of RFC 5861 does, and is counted by
    /// [`compute_stats`](Self::compute_stats); each later call tries again, one at a time.
    ///
    /// # Errors
    ///
    /// Those of [`get_or_compute`](Self::get_or_compute), and if there is no longer a value, the
    /// computation's own.
    pub fn get_or_try_refresh<E>(
        &self,
        key: impl AsRef<[u8]>,
        freshness: impl Into<Freshness>,
        compute: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, ComputeError<E>> {
        self.get_or_try_refresh_until(key, freshness, compute, || Ok(()))
    }

    /// Returns the value of `key` like [`get_or_try_refresh`](Self::get_or_try_refresh), with a
    /// wait that can be cancelled as in
    /// [`get_or_try_compute_until`](Self::get_or_try_compute_until). A caller waits only while the
    /// key has no value.
    ///
    /// # Errors
    ///
    /// Those of [`get_or_try_refresh`](Self::get_or_try_refresh), and that of `poll`.
    pub fn get_or_try_refresh_until<E>(
        &self,
        key: impl AsRef<[u8]>,
        freshness: impl Into<Freshness>,
        compute: impl FnOnce() -> Result<Vec<u8>, E>,
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<Vec<u8>, ComputeError<E>> {
        let freshness = freshness.into();
        let options = freshness.options()?;
        let is_fresh = |hit| !freshness.is_due(hit);
        self.compute_unless(key.as_ref(), options, is_fresh, compute, &mut poll)
    }

    /// Returns the value of `key` like [`get_or_refresh`](Self::get_or_refresh), but no caller
    /// waits while there is a value: `executor` receives a job that computes the next one, and may
    /// hand it to a thread pool, for example. It is called at most once, before this returns. If
    /// there is no value, the caller computes it itself, even while a job is queued; that job then
    /// does nothing, and neither does a job whose key has been written or cleared in the meantime.
    ///
    /// A job that is dropped instead of run changes nothing. One that panics does so in the thread
    /// that runs it. The value stays due for the next call.
    ///
    /// ```
    /// use std::time::Duration;
    /// use haypile::{Cache, Freshness};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let cache = Cache::open("memory:")?;
    /// let freshness = Freshness::new(Duration::from_secs(60)).with_stale(Duration::from_secs(60));
    /// let spawn = |job: Box<dyn FnOnce() + Send>| drop(std::thread::spawn(job));
    /// let page = cache.get_or_refresh_in("page:/", freshness, spawn, || b"<html>".to_vec())?;
    /// assert_eq!(page, b"<html>");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`get_or_compute`](Self::get_or_compute).
    pub fn get_or_refresh_in(
        &self,
        key: impl AsRef<[u8]>,
        freshness: impl Into<Freshness>,
        executor: impl FnOnce(Box<dyn FnOnce() + Send>),
        compute: impl FnOnce() -> Vec<u8> + Send + 'static,
    ) -> Result<Vec<u8>> {
        let compute = || Ok(compute());
        self.get_or_try_refresh_in(key, freshness, executor, compute).map_err(infallible)
    }

    /// Returns the value of `key` like [`get_or_refresh_in`](Self::get_or_refresh_in), with a computation that can
    /// fail. The error of a job is dropped and counted by [`compute_stats`](Self::compute_stats): the current value is
    /// served until it expires.
    ///
    /// # Errors
    ///
    /// Those of [`get_or_compute`](Self::get_or_compute), and if there is no value, the
    /// computation's own.
    pub fn get_or_try_refresh_in<E>(
        &self,
        key: impl AsRef<[u8]>,
        freshness: impl Into<Freshness>,
        executor: impl FnOnce(Box<dyn FnOnce() + Send>),
        compute: impl FnOnce() -> Result<Vec<u8>, E> + Send + 'static,
    ) -> Result<Vec<u8>, ComputeError<E>> {
        self.get_or_try_refresh_in_until(key, freshness, executor, compute, || Ok(()))
    }

    /// Returns the value of `key` like [`get_or_try_refresh_in`](Self::get_or_try_refresh_in), with a wait that can be
    /// cancelled as in [`get_or_try_compute_until`](Self::get_or_try_compute_until). A caller waits only while the key
    /// has no value.
    ///
    /// # Errors
    ///
    /// Those of [`get_or_try_refresh_in`](Self::get_or_try_refresh_in), and that of `poll`.
    pub fn get_or_try_refresh_in_until<E>(
        &self,
        key: impl AsRef<[u8]>,
        freshness: impl Into<Freshness>,
        executor: impl FnOnce(Box<dyn FnOnce() + Send>),
        compute: impl FnOnce() -> Result<Vec<u8>, E> + Send + 'static,
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<Vec<u8>, ComputeError<E>> {
        let (key, freshness) = (key.as_ref(), freshness.into());
        let options = freshness.options()?;
        let flights = self.computations.flights();
        let landed = flights.landed(key);
        let mut value = Vec::new();
        let is_fresh = |hit: Hit| !freshness.is_due(hit);
        let mut hit = self.look(key, &mut value)?;
        if hit.is_some_and(is_fresh) {
            return Ok(value);
        }
        if hit.is_none() {
            let looked = Looked { landed, hit, value };
            return self.compute_after(looked, key, options, is_fresh, compute, &mut poll);
        }
        let Boarding::Lead(flight) = flights.board(key, Need::Later, Computer::Task) else {
            return Ok(value);
        };
        let landed_since = flights.landed(key);
        if landed_since != landed {
            hit = self.look(key, &mut value)?;
            if hit.is_some_and(is_fresh) {
                return Ok(value);
            }
            if hit.is_none() {
                drop(flight);
                let looked = Looked { landed: landed_since, hit, value };
                return self.compute_after(looked, key, options, is_fresh, compute, &mut poll);
            }
        }
        let (cache, key) = (self.clone(), Box::<[u8]>::from(key));
        executor(Box::new(move || cache.refresh(&flight, &key, options, hit, compute)));
        Ok(value)
    }

    /// Runs a refresh as a job, which no caller waits for.
    fn refresh<E>(
        &self,
        flight: &Leader,
        key: &[u8],
        options: SetOptions,
        hit: Option<Hit>,
        compute: impl FnOnce() -> Result<Vec<u8>, E>,
    ) {
        if !flight.start() {
            return;
        }
        let terms = self.terms(flight, key, hit);
        match compute() {
            Ok(value) => self.land(flight, key, options, terms, &value),
            Err(_) => self.computations.counters().add_failed_refresh(),
        }
    }
}
