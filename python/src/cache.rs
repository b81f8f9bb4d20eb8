//! The cache that Python programs hold.

#![expect(clippy::needless_pass_by_value, reason = "PyO3 makes values of arguments")]
#![expect(clippy::doc_markdown, reason = "docstrings are read in Python, as plain text")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::{Durability, SetOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arguments::{KeyArgument, Lifetime, Value};
use crate::buffer;
use crate::errors::{Closed, not_opened, raised, raised_by_computing};
use crate::fork;
use crate::opened::Opened;
use crate::stats::Stats;

/// Opens the cache of this URL.
///
///     haypile.open("memory:size=64MiB,policy=s3fifo,ttl=10m")
///     haypile.open("memory://?size=64MiB&policy=s3fifo&ttl=10m")
///
/// Raises OpenError with what is wrong and what is allowed.
#[pyfunction]
pub(crate) fn open(py: Python<'_>, url: String) -> PyResult<Cache> {
    let given = url;
    let opened =
        fork::without_gil(py, || Opened::open(&given)).map_err(|error| not_opened(&error))?;
    let url = opened.cache().store().describe();
    Ok(Cache { given, url, state: Mutex::new(CacheState { opened, closed: false }) })
}

/// A cache of bytes under keys of bytes or text. haypile.open makes one.
///
/// A key is bytes or str, which is its UTF-8; a value is bytes or anything bytes-like, and comes
/// back as bytes. Each entry has a TTL (`ttl`): a number of seconds, a datetime.timedelta, None for
/// no expiry, or the TTL of the cache's URL if the argument is missing. A cache may forget: it can
/// evict a new entry at once.
///
/// Threads may use one cache; other threads run while it works. It closes at the end of a
/// `with` block, or by close.
///
/// After a fork, the child opens the URL again when it first uses the cache. So all processes share
/// a
/// `file:` cache, and a `memory:` cache is each process' own, and empty in the child. The child
/// ends no computation of its parent, even if it was forked within one and returns from it. It
/// waits for its parent's computations only where they share the cache, as for those of any
/// process. A relative path in `persist=` or `record=` counts from where the child is then.
#[pyclass(frozen, module = "haypile")]
pub struct Cache {
    /// As the caller gave it; a child opens this.
    given: String,
    /// In canonical form.
    url: String,
    /// Only a holder of the GIL locks it, while nothing else runs: a fork never finds it locked.
    state: Mutex<CacheState>,
}

struct CacheState {
    opened: Arc<Opened>,
    closed: bool,
}

#[pymethods]
impl Cache {
    /// Returns the value of a key, or `default`.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: KeyArgument,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = key.as_ref();
        let mut buffer = buffer::take();
        let into = &mut buffer;
        let hit = self.call(py, |cache| cache.store().get_into(key, into))?;
        let value = hit.map(|_| PyBytes::new(py, &buffer).into_any());
        buffer::give_back(buffer);
        Ok(value.or(default))
    }

    /// Returns the values of keys, in their order; None where there is none.
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: Vec<KeyArgument>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let values = self.call(py, |cache| cache.get_many(&keys))?;
        Ok(values.into_iter().map(|value| value.map(|value| PyBytes::new(py, &value))).collect())
    }

    /// Writes a value, whether or not the key has one.
    #[pyo3(
        signature = (key, value, ttl=Lifetime::OF_CACHE),
        text_signature = "($self, key, value, ttl=...)"
    )]
    fn set(&self, py: Python<'_>, key: KeyArgument, value: Value, ttl: Lifetime) -> PyResult<()> {
        self.write(py, &key, &value, SetOptions::set().with_ttl(ttl.0)).map(drop)
    }

    /// Writes each value of a dict under its key. If one is refused, this writes the others and
    /// then raises the first error.
    #[pyo3(
        signature = (entries, ttl=Lifetime::OF_CACHE),
        text_signature = "($self, entries, ttl=...)"
    )]
    fn set_many(&self, py: Python<'_>, entries: &Bound<'_, PyDict>, ttl: Lifetime) -> PyResult<()> {
        let entries: Vec<(KeyArgument, Value)> = entries
            .iter()
            .map(|(key, value)| Ok((key.extract()?, value.extract()?)))
            .collect::<PyResult<_>>()?;
        let options = SetOptions::set().with_ttl(ttl.0);
        self.call(py, |cache| {
            let written = cache.set_many(&entries, options);
            written.into_iter().try_for_each(|result| result.map(drop))
        })
    }

    /// Writes a value if the key has none; returns whether it did.
    #[pyo3(
        signature = (key, value, ttl=Lifetime::OF_CACHE),
        text_signature = "($self, key, value, ttl=...)"
    )]
    fn add(&self, py: Python<'_>, key: KeyArgument, value: Value, ttl: Lifetime) -> PyResult<bool> {
        self.write(py, &key, &value, SetOptions::add().with_ttl(ttl.0))
    }

    /// Writes a value if the key has one; returns whether it did.
    #[pyo3(
        signature = (key, value, ttl=Lifetime::OF_CACHE),
        text_signature = "($self, key, value, ttl=...)"
    )]
    fn replace(
        &self,
        py: Python<'_>,
        key: KeyArgument,
        value: Value,
        ttl: Lifetime,
    ) -> PyResult<bool> {
        self.write(py, &key, &value, SetOptions::replace().with_ttl(ttl.0))
    }

    /// Deletes an entry; returns whether there was one.
    fn delete(&self, py: Python<'_>, key: KeyArgument) -> PyResult<bool> {
        self.call(py, |cache| cache.delete(&key))
    }

    /// Sets a new TTL for an entry, counted from now; returns whether there was one.
    #[pyo3(
        signature = (key, ttl=Lifetime::OF_CACHE),
        text_signature = "($self, key, ttl=...)"
    )]
    fn touch(&self, py: Python<'_>, key: KeyArgument, ttl: Lifetime) -> PyResult<bool> {
        self.call(py, |cache| cache.touch(&key, ttl.0))
    }

    /// Adds to a counter and returns the new number, or None if there is no entry.
    ///
    /// A counter is a value of decimal digits, as in `cache.set("visits", b"0")`. It keeps its TTL,
    /// and wraps around at 2**64. However many processes count, no count is lost.
    #[pyo3(signature = (key, delta=1))]
    fn incr(&self, py: Python<'_>, key: KeyArgument, delta: u64) -> PyResult<Option<u64>> {
        self.call(py, |cache| cache.incr(&key, delta))
    }

    /// Subtracts from a counter and stops at zero; otherwise as incr.
    #[pyo3(signature = (key, delta=1))]
    fn decr(&self, py: Python<'_>, key: KeyArgument, delta: u64) -> PyResult<Option<u64>> {
        self.call(py, |cache| cache.decr(&key, delta))
    }

    /// Returns the value of a key; if there is none, calls `function()` and stores its result for
    /// `ttl`.
    ///
    ///     page = cache.get_or_compute("page:/", 30, render)
    ///
    /// However many threads ask, one computes and the others wait for its value; processes that
    /// share the cache do so too. If the function raises, this raises the same and stores nothing;
    /// the waiting callers then compute for themselves. A function that asks for its own key gets
    /// ComputesItself. The value is returned even if the cache refuses to store it.
    ///
    /// Every wait has a bound, `compute_wait=` in the URL, 30 seconds by default: then one of the
    /// waiting callers computes itself. The others wait for that one as long again at most. The
    /// bound is one second if the computing process is stopped or frozen. Ctrl-C ends a wait in the
    /// main thread, and so does every signal whose handler raises.
    fn get_or_compute<'py>(
        &self,
        py: Python<'py>,
        key: KeyArgument,
        ttl: Lifetime,
        function: Py<PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let compute = || {
            fork::with_gil(|py| {
                let value: Value = function.bind(py).call0()?.extract()?;
                Ok(value.as_ref().to_vec())
            })
        };
        // The interpreter only notes a signal. Its main thread runs the handler later, and does not
        // get to it while it waits here.
        let poll = || fork::with_gil(|py: Python<'_>| py.check_signals());
        let opened = self.opened()?;
        let value = fork::without_gil(py, || {
            opened.cache().get_or_try_compute_until(&key, ttl.0, compute, poll)
        });
        Ok(PyBytes::new(py, &value.map_err(raised_by_computing)?))
    }

    /// Deletes every entry.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, engine::Cache::clear)
    }

    /// Returns when all earlier writes are visible to all users of the cache; with `durable`, when
    /// they are on disk. Raises Unsupported where there is no file.
    #[pyo3(signature = (durable=false))]
    fn flush(&self, py: Python<'_>, durable: bool) -> PyResult<()> {
        let durability = if durable { Durability::Disk } else { Durability::Visible };
        self.call(py, |cache| cache.flush(durability))
    }

    /// Returns counts since this process opened the cache, and the cache's current contents.
    fn stats(&self, py: Python<'_>) -> PyResult<Stats> {
        let counted = {
            let state = self.state();
            // Also when it was closed, but not what another process has counted.
            (state.closed && !state.opened.is_inherited()).then(|| Arc::clone(&state.opened))
        };
        let opened = counted.map_or_else(|| self.opened(), Ok)?;
        let stats = fork::without_gil(py, || opened.cache().stats());
        stats.map(Stats::from).map_err(|error| raised(&error))
    }

    /// Closes the cache, and saves it if `persist=` asks for that. From then on everything except
    /// stats raises Closed. Closing twice is allowed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let opened = {
            let mut state = self.state();
            state.closed = true;
            Arc::clone(&state.opened)
        };
        if opened.is_inherited() {
            return Ok(());
        }
        fork::without_gil(py, || opened.cache().close()).map_err(|error| raised(&error))
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.state().closed
    }

    /// The URL in canonical form, with the defaults written out.
    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        if slf.get().closed() {
            return Err(slf.get().is_closed());
        }
        Ok(slf)
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __contains__(&self, py: Python<'_>, key: KeyArgument) -> PyResult<bool> {
        self.call(py, |cache| cache.contains(&key))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let entries = self.call(py, engine::Cache::len)?;
        Ok(usize::try_from(entries)?)
    }

    /// A cache is true, even an empty one.
    #[expect(clippy::unused_self, reason = "Python calls it with a cache")]
    fn __bool__(&self) -> bool {
        true
    }

    fn __repr__(&self) -> String {
        let closed = if self.closed() { ", closed" } else { "" };
        format!("<haypile.Cache {}{closed}>", self.url)
    }

    /// Pickles the cache as its URL, which another process opens.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&str,))> {
        Ok((py.import("haypile")?.getattr("open")?, (&self.given,)))
    }
}

impl Cache {
    fn write(
        &self,
        py: Python<'_>,
        key: &KeyArgument,
        value: &Value,
        options: SetOptions,
    ) -> PyResult<bool> {
        self.call(py, |cache| Ok(cache.write(key, value, options)?.is_stored()))
    }

    fn call<R: Send>(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&engine::Cache) -> engine::Result<R> + Send,
    ) -> PyResult<R> {
        let opened = self.opened()?;
        fork::without_gil(py, || operation(opened.cache())).map_err(|error| raised(&error))
    }

    /// Returns the cache that this process has opened, or opens it.
    fn opened(&self) -> PyResult<Arc<Opened>> {
        let mut state = self.state();
        if state.closed {
            return Err(self.is_closed());
        }
        if state.opened.is_inherited() {
            // With the GIL, so that no thread of the child opens it twice.
            state.opened = Opened::open(&self.given).map_err(|error| not_opened(&error))?;
        }
        Ok(Arc::clone(&state.opened))
    }

    fn state(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_closed(&self) -> PyErr {
        Closed::new_err(format!("{} was closed; open it again", self.url))
    }
}
