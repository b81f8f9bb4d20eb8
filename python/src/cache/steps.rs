//! The steps that the operations of a cache have in common.

use std::sync::{Arc, MutexGuard, PoisonError};

use engine::{Hit, OwnedPinned, SetOptions, Version};
use pyo3::exceptions::{PyKeyError, PyOverflowError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{Cache, CacheState};
use crate::arguments::{Groups, KeyArgument, Lifetime, Value};
use crate::buffer;
use crate::counter::count;
use crate::errors::{Closed, not_opened, raised, raised_by_computing};
use crate::fork;
use crate::fresh::Fresh;
use crate::opened::Opened;

/// Writes and removals by others between two attempts that are tolerated.
pub(super) const ATTEMPTS: usize = 1000;

impl Cache {
    pub(super) fn read<'py>(
        &self,
        py: Python<'py>,
        key: &KeyArgument,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let look =
            |cache: &engine::Cache, into: &mut Vec<u8>| cache.store().get_into(key.as_ref(), into);
        self.look(py, look, |_, value| PyBytes::new(py, value))
    }

    /// Returns a value in place, and the cache that holds it.
    pub(super) fn pinned(
        &self,
        py: Python<'_>,
        key: &KeyArgument,
    ) -> PyResult<Option<(OwnedPinned, Arc<Opened>)>> {
        let opened = self.opened()?;
        let value = opened.operate(py, 0, |cache| cache.get_pinned_owned(key));
        Ok(value.map_err(|error| raised(&error))?.map(|value| (value, opened)))
    }

    /// Reads an entry into the buffer of this thread, and returns what `found` makes of it.
    pub(super) fn look<T>(
        &self,
        py: Python<'_>,
        look: impl FnOnce(&engine::Cache, &mut Vec<u8>) -> engine::Result<Option<Hit>> + Send,
        found: impl FnOnce(Hit, &[u8]) -> T,
    ) -> PyResult<Option<T>> {
        let mut buffer = buffer::take();
        let into = &mut buffer;
        let hit = self.operate(py, 0, |cache| look(cache, into))?;
        let found = hit.map(|hit| found(hit, &buffer));
        buffer::give_back(buffer);
        Ok(found)
    }

    /// Reads a value; `found` gets none if the entry still has this version.
    pub(super) fn look_unless<T>(
        &self,
        py: Python<'_>,
        key: &KeyArgument,
        version: u64,
        found: impl FnOnce(Hit, Option<&[u8]>) -> T,
    ) -> PyResult<Option<T>> {
        let known = Version::from_raw(version);
        let look = |cache: &engine::Cache, into: &mut Vec<u8>| {
            cache.store().get_if_changed_into(key.as_ref(), known, into)
        };
        self.look(py, look, |hit, value| found(hit, (hit.version != Some(known)).then_some(value)))
    }

    pub(super) fn write(
        &self,
        py: Python<'_>,
        key: &KeyArgument,
        value: &Value,
        options: SetOptions,
    ) -> PyResult<bool> {
        let bytes = value.as_ref().len();
        self.operate(py, bytes, |cache| Ok(cache.write(key, value, options)?.is_stored()))
    }

    pub(super) fn write_in(
        &self,
        py: Python<'_>,
        key: &KeyArgument,
        value: &Value,
        options: SetOptions,
        groups: &Groups,
    ) -> PyResult<bool> {
        if groups.0.is_empty() {
            return self.write(py, key, value, options);
        }
        let bytes = value.as_ref().len();
        let opened = self.opened()?;
        let write = || opened.in_groups(groups)?.write(key, value, options);
        self.operate(py, bytes, |_| Ok(write()?.is_stored()))
    }

    /// Returns how to write a value of a key that is computed from now on: under a lease where the cache has leases. A cache that
    /// fails gets none: `None`.
    pub(crate) fn terms(&self, py: Python<'_>, key: &KeyArgument) -> PyResult<Option<SetOptions>> {
        self.operate(py, 0, |cache| match cache.lease(key) {
            Ok(lease) => Ok(Some(SetOptions::leased(lease))),
            Err(engine::Error::Unsupported { .. }) => Ok(Some(SetOptions::set())),
            Err(error @ engine::Error::Closed { .. }) => Err(error),
            Err(_) => Ok(None),
        })
    }

    /// Writes a value in groups, if the cache takes it and the options allow it; returns whether it did.
    pub(crate) fn offer_in(
        &self,
        py: Python<'_>,
        key: &KeyArgument,
        value: &Value,
        options: SetOptions,
        groups: &Groups,
    ) -> PyResult<bool> {
        let bytes = value.as_ref().len();
        let opened = self.opened()?;
        self.operate(py, bytes, |_| opened.in_groups(groups)?.offer(key, value, options))
    }

    pub(super) fn count(
        &self,
        py: Python<'_>,
        key: &KeyArgument,
        delta: i128,
        initial: Option<i128>,
        ttl: Lifetime,
    ) -> PyResult<Option<u64>> {
        if [Some(delta), initial].into_iter().flatten().any(|n| n.unsigned_abs() >> 64 > 0) {
            return Err(PyOverflowError::new_err("a counter has 64 bits, and so have its steps"));
        }
        self.operate(py, 0, |cache| count(cache, key.as_ref(), delta, initial, ttl.0))
    }

    /// Returns the value of a key; if there is none, computes it.
    pub(crate) fn compute<'py>(
        &self,
        py: Python<'py>,
        key: &KeyArgument,
        fresh: Fresh,
        groups: &Groups,
        compute: impl FnOnce(Python<'_>) -> PyResult<Value> + Send,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let compute = || fork::with_gil(|py| Ok(compute(py)?.as_ref().to_vec()));
        // The interpreter only notes a signal. Its main thread runs the handler later, and does not
        // get to it while it waits here.
        let opened = self.opened()?;
        let identity = opened.identity();
        let poll = || {
            fork::with_gil(|py: Python<'_>| {
                py.check_signals()?;
                // The engine knows threads; this knows the tasks of loops.
                let flights = py.import(intern!(py, "haypile._flights"))?;
                let key = PyBytes::new(py, key.as_ref());
                flights.call_method1(intern!(py, "raise_if_own"), (identity, key)).map(drop)
            })
        };
        let grouped = opened.in_groups(groups).map_err(|error| raised(&error))?;
        let value = fork::without_gil(py, || match fresh.0 {
            Ok(freshness) => grouped.get_or_try_refresh_until(key, freshness, compute, poll),
            Err(ttl) => grouped.get_or_try_compute_until(key, ttl, compute, poll),
        });
        Ok(PyBytes::new(py, &value.map_err(raised_by_computing)?))
    }

    pub(super) fn begin(
        &self,
        key: &KeyArgument,
        fresh: Fresh,
        groups: &Groups,
    ) -> PyResult<(Arc<Opened>, engine::PendingCompute)> {
        let opened = self.opened()?;
        let cache = opened.in_groups(groups).map_err(|error| raised(&error))?;
        let pending = match fresh.0 {
            Ok(freshness) => engine::PendingCompute::begin_refresh(&cache, key, freshness),
            Err(ttl) => engine::PendingCompute::begin(&cache, key, ttl),
        };
        let pending = pending.map_err(|error| raised(&error))?;
        Ok((opened, pending))
    }

    /// Operates on one entry.
    pub(super) fn operate<R: Send>(
        &self,
        py: Python<'_>,
        bytes: usize,
        operation: impl FnOnce(&engine::Cache) -> engine::Result<R> + Send,
    ) -> PyResult<R> {
        self.opened()?.operate(py, bytes, operation).map_err(|error| raised(&error))
    }

    /// Operates for as long as it takes.
    pub(super) fn call<R: Send>(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&engine::Cache) -> engine::Result<R> + Send,
    ) -> PyResult<R> {
        let opened = self.opened()?;
        fork::without_gil(py, || operation(opened.cache())).map_err(|error| raised(&error))
    }

    /// Returns the cache that this process has opened, or opens it.
    pub(super) fn opened(&self) -> PyResult<Arc<Opened>> {
        let mut state = self.state();
        if state.closed {
            return Err(self.is_closed());
        }
        if state.opened.is_inherited() {
            // Under the lock, so that no two threads of the child open it.
            state.opened = Opened::open(&self.given).map_err(|error| not_opened(&error))?;
        }
        Ok(Arc::clone(&state.opened))
    }

    /// Returns the cache whose counts these are: also one that was closed, but not that of another process.
    pub(super) fn counted(&self) -> PyResult<Arc<Opened>> {
        let closed = {
            let state = self.state();
            (state.closed && !state.opened.is_inherited()).then(|| Arc::clone(&state.opened))
        };
        closed.map_or_else(|| self.opened(), Ok)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_closed(&self) -> PyErr {
        Closed::new_err(format!("{} was closed; open it again", self.url))
    }
}

/// Removes an entry and returns its value, as one of all callers.
pub(super) fn pop(cache: &engine::Cache, key: &[u8]) -> engine::Result<Option<Vec<u8>>> {
    let store = cache.store();
    let mut value = Vec::new();
    for _ in 0..ATTEMPTS {
        let Some(hit) = store.get_versioned_into(key, &mut value)? else { return Ok(None) };
        let popped = match hit.version {
            Some(version) => cache.delete_version(key, version),
            None => cache.compare_and_delete(key, &value),
        };
        match popped {
            Ok(true) => return Ok(Some(value)),
            Ok(false) => {}
            Err(engine::Error::Unsupported { .. }) => {
                return Ok(cache.delete(key)?.then_some(value));
            }
            Err(error) => return Err(error),
        }
    }
    Err(engine::Error::Busy { store: store.describe(), process: None })
}

pub(super) fn missing(py: Python<'_>, key: &KeyArgument) -> PyErr {
    match key {
        KeyArgument::Bytes(_) => PyKeyError::new_err(PyBytes::new(py, key.as_ref()).unbind()),
        KeyArgument::Text(text) => PyKeyError::new_err(text.to_string()),
    }
}
