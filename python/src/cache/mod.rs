//! The cache that Python programs hold.

#![expect(clippy::needless_pass_by_value, reason = "PyO3 makes values of arguments")]
#![expect(clippy::doc_markdown, reason = "docstrings are read in Python, as plain text")]

mod steps;

use std::sync::{Arc, Mutex};

use engine::{Durability, SetOptions, Version, WriteMode, Writers};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyMemoryView, PyTuple};

use crate::arguments::{
    Entries, Group, Groups, KeyArgument, KeyArguments, LeaseArgument, Lifetime, Value,
};
use crate::errors::{not_opened, raised};
use crate::fork;
use crate::fresh::Fresh;
use crate::keys::Keys;
use crate::opened::{LONG_BYTES, Opened};
use crate::pending::Pending;
use crate::stats::Stats;
use crate::url::url_of;
use crate::view::View;

use steps::{ATTEMPTS, missing, pop};

/// Users and programs that can have written the values of a store: the path of a file with its owner and mode, or the name
/// of a store that is open to whoever reaches it.
type WritersOf = (String, Option<(u32, u32)>);

/// A value unless it has not changed, and its version.
type IfChanged<'py> = (Option<Bound<'py, PyBytes>>, Option<u64>);

/// The operations of haypile.Cache, which says what holds for all of them.
#[pyclass(frozen, subclass, module = "haypile._haypile")]
pub struct Cache {
    /// As the caller gave it; a child opens this.
    given: String,
    /// In canonical form.
    url: String,
    /// Only a thread that is attached to the interpreter locks it, and runs no Python until it has released it: a
    /// fork never finds it locked.
    state: Mutex<CacheState>,
}

struct CacheState {
    opened: Arc<Opened>,
    closed: bool,
}

#[pymethods]
impl Cache {
    #[new]
    fn new(py: Python<'_>, url: &Bound<'_, PyAny>) -> PyResult<Self> {
        let given = url_of(url)?;
        let opened =
            fork::without_gil(py, || Opened::open(&given)).map_err(|error| not_opened(&error))?;
        let url = opened.cache().store().describe();
        Ok(Self { given, url, state: Mutex::new(CacheState { opened, closed: false }) })
    }

    /// Returns the value of a key, or `default`.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: KeyArgument,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(self.read(py, &key)?.map(Bound::into_any).or(default))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: KeyArgument) -> PyResult<Bound<'py, PyBytes>> {
        self.read(py, &key)?.ok_or_else(|| missing(py, &key))
    }

    /// Returns a memoryview of the value of a key, or None. The value stays where it is as long as the view
    /// is held, even if the entry is overwritten, evicted or deleted, and is not copied if the cache can do
    /// without: `memory:` and `file:` caches do, the latter from 64 KiB on. A child of a fork reads a copy.
    ///
    ///     pixels = numpy.frombuffer(cache.get_view("picture"), dtype="u1")
    fn get_view<'py>(
        &self,
        py: Python<'py>,
        key: KeyArgument,
    ) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        let Some((value, opened)) = self.pinned(py, &key)? else { return Ok(None) };
        View::of_pinned(py, value, opened).map(Some)
    }

    /// Returns the value of a key: bytes if it is short, or else a memoryview, which takes no longer.
    fn _get_short<'py>(
        &self,
        py: Python<'py>,
        key: KeyArgument,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some((value, opened)) = self.pinned(py, &key)? else { return Ok(None) };
        Ok(Some(if value.len() < LONG_BYTES {
            PyBytes::new(py, &value).into_any()
        } else {
            View::of_pinned(py, value, opened)?.into_any()
        }))
    }

    /// Returns the value of a key and its version, for cas; None if there is none. The version is None
    /// where a server has none.
    fn get_versioned<'py>(
        &self,
        py: Python<'py>,
        key: KeyArgument,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, Option<u64>)>> {
        let look = |cache: &engine::Cache, into: &mut Vec<u8>| {
            cache.store().get_versioned_into(key.as_ref(), into)
        };
        self.look(py, look, |hit, value| (PyBytes::new(py, value), hit.version.map(Version::raw)))
    }

    /// Returns the value of a key and its version, as get_versioned, but None in the place of the value if the entry still
    /// has this version: nothing is copied then. None if there is no entry.
    pub(crate) fn get_if_changed<'py>(
        &self,
        py: Python<'py>,
        key: KeyArgument,
        version: u64,
    ) -> PyResult<Option<IfChanged<'py>>> {
        self.look_unless(py, &key, version, |hit, value| {
            (value.map(|value| PyBytes::new(py, value)), hit.version.map(Version::raw))
        })
    }

    /// Returns the remaining life of an entry in seconds; None if it does not expire, or if its server
    /// does not say. Raises KeyError if the key has no entry.
    fn ttl(&self, py: Python<'_>, key: KeyArgument) -> PyResult<Option<f64>> {
        let look =
            |cache: &engine::Cache, into: &mut Vec<u8>| cache.store().get_into(key.as_ref(), into);
        let left = self.look(py, look, |hit, _| hit.expires_in)?;
        Ok(left.ok_or_else(|| missing(py, &key))?.map(|left| left.as_secs_f64()))
    }

    /// Returns the values of keys, in their order; None where there is none.
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: KeyArguments,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let values = self.call(py, |cache| cache.get_many(&keys.0))?;
        Ok(values.into_iter().map(|value| value.map(|value| PyBytes::new(py, &value))).collect())
    }

    /// Writes a value, whether or not the key has one. The entry belongs to `groups`, at most 64 names of 1 to 250
    /// bytes, each of which invalidate takes; what it belonged to before is forgotten.
    ///
    ///     cache.set("page:/ann", page, groups=["user:7", "pages"])
    ///     cache.invalidate("user:7")
    #[pyo3(
        signature = (key, value, ttl=Lifetime::OF_CACHE, *, groups=Groups::default()),
        text_signature = "($self, key, value, ttl=..., *, groups=())"
    )]
    fn set(
        &self,
        py: Python<'_>,
        key: KeyArgument,
        value: Value,
        ttl: Lifetime,
        groups: Groups,
    ) -> PyResult<()> {
        self.write_in(py, &key, &value, SetOptions::set().with_ttl(ttl.0), &groups).map(drop)
    }

    /// Makes every entry of a group a miss, for all processes that share the cache, and every value that is computed
    /// from what was read before. It takes the same time for one entry as for a million. Raises Unsupported
    /// where the cache has no groups, such as on a server.
    fn invalidate(&self, py: Python<'_>, group: Group) -> PyResult<()> {
        self.operate(py, 0, |cache| cache.invalidate(&group))
    }

    fn __setitem__(&self, py: Python<'_>, key: KeyArgument, value: Value) -> PyResult<()> {
        self.write(py, &key, &value, SetOptions::set()).map(drop)
    }

    /// Writes each value of a mapping, or of an iterable of pairs, under its key. If one is refused, this
    /// writes the others and then raises the first error.
    #[pyo3(
        signature = (entries, ttl=Lifetime::OF_CACHE, *, groups=Groups::default()),
        text_signature = "($self, entries, ttl=..., *, groups=())"
    )]
    fn set_many(
        &self,
        py: Python<'_>,
        entries: Entries,
        ttl: Lifetime,
        groups: Groups,
    ) -> PyResult<()> {
        let options = SetOptions::set().with_ttl(ttl.0);
        let opened = self.opened()?;
        self.call(py, |_| {
            let written = opened.in_groups(&groups)?.set_many(&entries.0, options);
            written.into_iter().try_for_each(|result| result.map(drop))
        })
    }

    /// Writes a value if the key has none; returns whether it did.
    #[pyo3(
        signature = (key, value, ttl=Lifetime::OF_CACHE, *, groups=Groups::default()),
        text_signature = "($self, key, value, ttl=..., *, groups=())"
    )]
    fn add(
        &self,
        py: Python<'_>,
        key: KeyArgument,
        value: Value,
        ttl: Lifetime,
        groups: Groups,
    ) -> PyResult<bool> {
        self.write_in(py, &key, &value, SetOptions::add().with_ttl(ttl.0), &groups)
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

    /// Writes a value if the entry still has the version that get_versioned returned; returns whether it
    /// did. What somebody else has written in the meantime stays.
    #[pyo3(
        signature = (key, value, version, ttl=Lifetime::OF_CACHE),
        text_signature = "($self, key, value, version, ttl=...)"
    )]
    fn cas(
        &self,
        py: Python<'_>,
        key: KeyArgument,
        value: Value,
        version: u64,
        ttl: Lifetime,
    ) -> PyResult<bool> {
        let options = SetOptions::cas(Version::from_raw(version)).with_ttl(ttl.0);
        self.write(py, &key, &value, options)
    }

    /// Grants a lease on a key: the right to store the value that you are about to ask for elsewhere, unless the key
    /// changes in the meantime, in whatever process. It is 32 bytes, which another process may use:
    ///
    ///     if (user := cache.get("user:7")) is None:
    ///         lease = cache.lease("user:7")
    ///         user = ask_the_data_base()
    ///         cache.set_leased("user:7", user, lease)
    ///
    /// It needs not be given back. `get_or_compute` takes leases by itself.
    fn lease<'py>(&self, py: Python<'py>, key: KeyArgument) -> PyResult<Bound<'py, PyBytes>> {
        let lease = self.operate(py, 0, |cache| cache.lease(&key))?;
        Ok(PyBytes::new(py, &lease.to_bytes()))
    }

    /// As lease, but returns None where the cache has no leases, and False where it fails, so that nothing should be written.
    #[pyo3(name = "_try_lease")]
    fn try_lease<'py>(&self, py: Python<'py>, key: KeyArgument) -> PyResult<Bound<'py, PyAny>> {
        match self.terms(py, &key)?.map(|options| options.mode) {
            Some(WriteMode::Leased(lease)) => Ok(PyBytes::new(py, &lease.to_bytes()).into_any()),
            Some(_) => Ok(py.None().into_bound(py)),
            None => Ok(PyBool::new(py, false).to_owned().into_any()),
        }
    }

    /// Writes a value under a lease; returns whether it did. It does not if the key was deleted or written since the
    /// lease was granted, or one of `groups` was invalidated, or may have been.
    #[pyo3(
        signature = (key, value, lease, ttl=Lifetime::OF_CACHE, *, groups=Groups::default()),
        text_signature = "($self, key, value, lease, ttl=..., *, groups=())"
    )]
    fn set_leased(
        &self,
        py: Python<'_>,
        key: KeyArgument,
        value: Value,
        lease: LeaseArgument,
        ttl: Lifetime,
        groups: Groups,
    ) -> PyResult<bool> {
        let options = SetOptions::leased(lease.0).with_ttl(ttl.0);
        self.write_in(py, &key, &value, options, &groups)
    }

    /// Returns the value of a key; writes `default` first if there is none. Of several callers, one
    /// writes, and all get its value.
    #[pyo3(
        signature = (key, default, ttl=Lifetime::OF_CACHE),
        text_signature = "($self, key, default, ttl=...)"
    )]
    fn get_or_set<'py>(
        &self,
        py: Python<'py>,
        key: KeyArgument,
        default: Value,
        ttl: Lifetime,
    ) -> PyResult<Bound<'py, PyBytes>> {
        for _ in 0..ATTEMPTS {
            if let Some(value) = self.read(py, &key)? {
                return Ok(value);
            }
            if self.write(py, &key, &default, SetOptions::add().with_ttl(ttl.0))? {
                break;
            }
        }
        Ok(PyBytes::new(py, default.as_ref()))
    }

    /// Deletes an entry; returns whether there was one.
    fn delete(&self, py: Python<'_>, key: KeyArgument) -> PyResult<bool> {
        self.operate(py, 0, |cache| cache.delete(&key))
    }

    /// Deletes an entry if it still has the version that get_versioned returned; returns whether it did.
    fn delete_version(&self, py: Python<'_>, key: KeyArgument, version: u64) -> PyResult<bool> {
        self.operate(py, 0, |cache| cache.delete_version(&key, Version::from_raw(version)))
    }

    /// Deletes an entry if its value is still this one, in one step; returns whether it did. A lock that is an
    /// entry is released only by its holder:
    ///
    ///     if cache.add("lock", token, ttl=30):
    ///         try:
    ///             work()
    ///         finally:
    ///             cache.compare_and_delete("lock", token)
    fn compare_and_delete(
        &self,
        py: Python<'_>,
        key: KeyArgument,
        expected: Value,
    ) -> PyResult<bool> {
        let bytes = expected.as_ref().len();
        self.operate(py, bytes, |cache| cache.compare_and_delete(&key, &expected))
    }

    fn __delitem__(&self, py: Python<'_>, key: KeyArgument) -> PyResult<()> {
        let deleted = self.operate(py, 0, |cache| cache.delete(&key))?;
        if deleted { Ok(()) } else { Err(missing(py, &key)) }
    }

    /// Deletes the entries of many keys; returns how many there were. If one cannot be deleted, this deletes
    /// the others and then raises the first error.
    fn delete_many(&self, py: Python<'_>, keys: KeyArguments) -> PyResult<usize> {
        self.call(py, |cache| {
            let deleted: Vec<_> = cache.delete_many(&keys.0);
            deleted.into_iter().try_fold(0, |sum, deleted| Ok(sum + usize::from(deleted?)))
        })
    }

    /// Deletes an entry and returns its value. Of several callers, one gets it. If there is none, returns
    /// the default, or raises KeyError.
    ///
    /// Over a memcached that runs without versions (-C), two callers can get the same value.
    #[pyo3(signature = (key, /, *default), text_signature = "($self, key, default=..., /)")]
    fn pop<'py>(
        &self,
        py: Python<'py>,
        key: KeyArgument,
        default: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if default.len() > 1 {
            return Err(PyTypeError::new_err("pop takes a key and one default at most"));
        }
        let value = self.operate(py, 0, |cache| pop(cache, key.as_ref()))?;
        match value {
            Some(value) => Ok(PyBytes::new(py, &value).into_any()),
            None if default.is_empty() => Err(missing(py, &key)),
            None => default.get_item(0),
        }
    }

    /// Sets a new TTL for an entry, counted from now; returns whether there was one.
    #[pyo3(
        signature = (key, ttl=Lifetime::OF_CACHE),
        text_signature = "($self, key, ttl=...)"
    )]
    fn touch(&self, py: Python<'_>, key: KeyArgument, ttl: Lifetime) -> PyResult<bool> {
        self.operate(py, 0, |cache| cache.touch(&key, ttl.0))
    }

    /// Adds to a counter and returns the new number. A missing counter is created if there is an `initial`
    /// number, which gets the delta added, and expires after `ttl`; otherwise the result is None.
    ///
    /// A counter is a value of decimal digits, as in `cache.set("visits", b"0")`. It keeps its TTL,
    /// and wraps around at 2**64; a negative delta stops at zero. However many processes count, no count is
    /// lost.
    #[pyo3(
        signature = (key, delta=1, initial=None, ttl=Lifetime::OF_CACHE),
        text_signature = "($self, key, delta=1, initial=None, ttl=...)"
    )]
    fn incr(
        &self,
        py: Python<'_>,
        key: KeyArgument,
        delta: i128,
        initial: Option<i128>,
        ttl: Lifetime,
    ) -> PyResult<Option<u64>> {
        self.count(py, &key, delta, initial, ttl)
    }

    /// Subtracts from a counter and stops at zero; otherwise as incr.
    #[pyo3(
        signature = (key, delta=1, initial=None, ttl=Lifetime::OF_CACHE),
        text_signature = "($self, key, delta=1, initial=None, ttl=...)"
    )]
    fn decr(
        &self,
        py: Python<'_>,
        key: KeyArgument,
        delta: i128,
        initial: Option<i128>,
        ttl: Lifetime,
    ) -> PyResult<Option<u64>> {
        self.count(py, &key, delta.saturating_neg(), initial, ttl)
    }

    /// Returns the value of a key; if there is none, calls `function()` and stores its result for
    /// `ttl`.
    ///
    ///     page = cache.get_or_compute("page:/", 30, render)
    ///
    /// However many threads ask, one computes and the others wait for its value; processes that
    /// share the cache do so too. If the function raises, this raises the same and stores nothing;
    /// one of the waiting callers then takes over, and the others wait for that one. A function that
    /// asks for its own key gets ComputesItself. The value is returned even if the cache refuses to
    /// store it.
    ///
    /// A caller that has waited for `compute_wait=` of the URL in total, 30 seconds by default,
    /// computes itself. If one computation takes that long, one of the waiting callers takes over, and
    /// the others wait for that one as long again at most. The bound is one second if the computing
    /// process is stopped or frozen. Ctrl-C ends a wait in the main thread, and so does every signal
    /// whose handler raises.
    ///
    /// With `early`, one caller computes the next value in the last seconds of the TTL, while the others get
    /// the current one. With `stale`, that goes on for that many seconds after the TTL; a computation that
    /// raises then leaves the current value, which is returned.
    ///
    /// The entry belongs to `groups`. If one of them is invalidated during the computation, its value is returned to those who
    /// waited before, and not stored.
    #[pyo3(
        signature = (key, ttl, function, *, stale=None, early=None, groups=Groups::default()),
        text_signature = "($self, key, ttl, function, *, stale=None, early=None, groups=())"
    )]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn get_or_compute<'py>(
        &self,
        py: Python<'py>,
        key: KeyArgument,
        ttl: Lifetime,
        function: Py<PyAny>,
        stale: Option<Lifetime>,
        early: Option<Lifetime>,
        groups: Groups,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let compute = |py: Python<'_>| function.bind(py).call0()?.extract();
        self.compute(py, &key, Fresh::new(ttl, stale, early)?, &groups, compute)
    }

    /// Begins a call of get_or_compute and polls it. Returns the value if it is there, or else the call and what it has
    /// returned.
    fn _start<'py>(
        &self,
        py: Python<'py>,
        key: KeyArgument,
        ttl: Lifetime,
        stale: Option<Lifetime>,
        early: Option<Lifetime>,
        groups: Groups,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (opened, pending) = self.begin(&key, Fresh::new(ttl, stale, early)?, &groups)?;
        Pending::start(py, opened, pending)
    }

    /// Begins a call of get_or_compute, which is polled.
    fn _begin(
        &self,
        key: KeyArgument,
        ttl: Lifetime,
        stale: Option<Lifetime>,
        early: Option<Lifetime>,
        groups: Groups,
    ) -> PyResult<Pending> {
        let (opened, pending) = self.begin(&key, Fresh::new(ttl, stale, early)?, &groups)?;
        Ok(Pending::new(opened, pending))
    }

    /// Writes a value, under a lease if there is one, if the cache takes it; returns whether it did. A refusal is counted,
    /// and the old value deleted; what a revoked lease finds stays.
    #[pyo3(
        name = "_offer",
        signature = (key, value, ttl, groups=Groups::default(), lease=None),
        text_signature = "($self, key, value, ttl, groups=(), lease=None)"
    )]
    fn offer(
        &self,
        py: Python<'_>,
        key: KeyArgument,
        value: Value,
        ttl: Lifetime,
        groups: Groups,
        lease: Option<LeaseArgument>,
    ) -> PyResult<bool> {
        let options = lease.map_or_else(SetOptions::set, |lease| SetOptions::leased(lease.0));
        self.offer_in(py, &key, &value, options.with_ttl(ttl.0), &groups)
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
        let opened = self.counted()?;
        let stats = fork::without_gil(py, || opened.cache().stats());
        stats.map(Stats::from).map_err(|error| raised(&error))
    }

    /// Returns problems that failed no call, one text each: a server that does not answer, a saved cache that is
    /// damaged, a `size=` that an existing file ignores, a file without a place for this process to write, results
    /// that are too large to be stored and are computed at each call. Some stay in it when they are over.
    ///
    /// Those of the opening are also warnings (CacheWarning), and the first of each later kind goes to
    /// logging.getLogger("haypile").
    fn warnings(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let opened = self.counted()?;
        Ok(fork::without_gil(py, || opened.cache().warnings()))
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
        self.operate(py, 0, |cache| cache.contains(&key))
    }

    /// Iterates over the keys, as bytes. What is written or removed in the meantime may occur or not.
    fn __iter__(&self) -> PyResult<Keys> {
        self.opened().map(Keys::new)
    }

    /// Whether its operations are short: it has one level, and needs no server.
    fn _is_local(&self) -> PyResult<bool> {
        Ok(self.opened()?.is_local())
    }

    /// Returns whether the cache can put entries into groups.
    fn _has_groups(&self) -> PyResult<bool> {
        Ok(self.opened()?.has_groups())
    }

    /// The scheme of each level.
    fn _schemes(&self) -> PyResult<Vec<String>> {
        let url = self.opened()?.cache().store().url();
        Ok(url.levels().iter().map(|level| level.scheme().to_owned()).collect())
    }

    /// Returns the users and programs other than this process that can have written its values.
    fn _writers(&self, py: Python<'_>) -> PyResult<Vec<WritersOf>> {
        let opened = self.opened()?;
        let writers = fork::without_gil(py, || opened.cache().store().writers());
        let known = |writers| match writers {
            Writers::File { path, owner, mode } => {
                (path.display().to_string(), Some((owner, mode)))
            }
            Writers::Anyone { store } => (store, None),
            other => (format!("{other:?}"), None),
        };
        Ok(writers.into_iter().map(known).collect())
    }

    /// The namespace of the last level, which other caches may share.
    fn _namespace(&self) -> PyResult<String> {
        let url = self.opened()?.cache().store().url();
        let namespace = url.levels().last().and_then(|level| level.option("namespace"));
        Ok(namespace.unwrap_or_default().to_owned())
    }

    /// A number that differs between caches that are open in this process.
    fn _identity(&self) -> PyResult<usize> {
        Ok(self.opened()?.identity())
    }

    /// Seconds after which who waits for another caller computes.
    fn _compute_wait(&self) -> PyResult<f64> {
        Ok(self.opened()?.cache().store().compute_wait().as_secs_f64())
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
