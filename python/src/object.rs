//! Objects that are computed: what stands between a caller of haypile.Objects, or of a memoized function, and the
//! function that computes. It is here so that each level of a recursion needs few of the interpreter's.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments::{Groups, KeyArgument, Lifetime, Value};
use crate::cache::Cache;
use crate::fresh::Fresh;

/// Deletions of an object that cannot be loaded before its caller goes on without the cache.
const ATTEMPTS: usize = 2;

/// A call of the function that computes.
struct Call {
    function: Py<PyAny>,
    args: Py<PyTuple>,
    named: Option<Py<PyDict>>,
}

impl Call {
    fn make(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let named = self.named.as_ref().map(|named| named.bind(py));
        self.function.call(py, self.args.bind(py), named)
    }
}

/// Returns the object of a key, and whether this call has computed it. If there is none, makes the call, and `objects`
/// stores what it returns.
///
/// An object that cannot be loaded is deleted first: another version of the program has written it, or somebody
/// without its signature. If others go on writing such objects, this waits for them no longer.
fn get_or_compute<'py>(
    objects: &Bound<'py, PyAny>,
    key: &Bound<'py, PyAny>,
    fresh: Fresh,
    groups: &Groups,
    call: &Call,
) -> PyResult<(Py<PyAny>, bool)> {
    let py = objects.py();
    let cache = objects.getattr(intern!(py, "_cache"))?.cast_into::<Cache>()?;
    let missing = py.import(intern!(py, "haypile._types"))?.getattr(intern!(py, "MISSING"))?;
    if fresh.is_plain() && !objects.getattr(intern!(py, "_held"))?.is_none() {
        let shared = objects.getattr(intern!(py, "_shared"))?;
        let found = shared.call_method1(intern!(py, "found"), (objects, key))?;
        if !found.is(&missing) {
            return Ok((found.unbind(), false));
        }
    }
    let (objects, key) = (objects.as_unbound(), key.as_unbound());
    let dump = |py: Python<'_>, value: &Py<PyAny>| {
        let data = objects.call_method1(py, intern!(py, "_dumped"), (key, value))?;
        data.extract::<Value>(py)
    };
    for _ in 0..ATTEMPTS {
        // The object itself for the caller that computes: nobody loads what was just dumped.
        let mut computed = None;
        let compute = |py: Python<'_>| {
            let value = call.make(py)?;
            let data = dump(py, &value)?;
            computed = Some(value);
            Ok(data)
        };
        let key_argument = key.extract::<KeyArgument>(py)?;
        let data = cache.get().compute(py, &key_argument, fresh, groups, compute)?;
        if let Some(value) = computed {
            return Ok((value, true));
        }
        let loaded = objects.call_method1(py, intern!(py, "_loaded"), (key, &data, &missing))?;
        if !loaded.is(&missing) {
            return Ok((loaded, false));
        }
        objects.call_method1(py, intern!(py, "_delete_value"), (key, data))?;
    }
    // As in a computation that the engine runs: what others write or delete in the meantime is newer.
    let key_argument = key.extract::<KeyArgument>(py)?;
    let terms = cache.get().terms(py, &key_argument)?;
    let value = call.make(py)?;
    let data = dump(py, &value)?;
    if let Some(options) = terms {
        let options = options.with_ttl(fresh.lifetime().0);
        cache.get().offer_in(py, &key_argument, &data, options, groups)?;
    }
    Ok((value, true))
}

/// Returns the object of a key; if there is none, calls `function()` and stores its result.
#[pyfunction]
#[pyo3(name = "_get_or_compute", signature = (objects, key, ttl, function, stale, early, groups))]
pub(crate) fn get_or_compute_object(
    objects: &Bound<'_, PyAny>,
    key: &Bound<'_, PyAny>,
    ttl: Lifetime,
    function: Py<PyAny>,
    stale: Option<Lifetime>,
    early: Option<Lifetime>,
    groups: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let call = Call { function, args: PyTuple::empty(objects.py()).unbind(), named: None };
    Ok(get_or_compute(objects, key, Fresh::new(ttl, stale, early)?, &groups.extract()?, &call)?.0)
}

/// A function whose results are remembered: its calls and their counts. A subclass has the rest, and the attributes
/// that this reads.
#[pyclass(frozen, subclass, module = "haypile._haypile")]
#[derive(Default)]
pub(crate) struct Memoized {
    // Counted without a lock, which a child of a fork could find locked.
    hits: AtomicU64,
    misses: AtomicU64,
}

#[pymethods]
impl Memoized {
    #[new]
    #[pyo3(signature = (*_args, **_named))]
    fn new(_args: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Self {
        Self::default()
    }

    #[pyo3(signature = (*args, **named))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let key = slf.call_method(intern!(py, "cache_key"), args, named)?;
        let call = Call {
            function: slf.getattr(intern!(py, "__wrapped__"))?.unbind(),
            args: args.clone().unbind(),
            named: named.map(|named| named.clone().unbind()),
        };
        let ttl = slf.getattr(intern!(py, "_ttl"))?.extract()?;
        let fresh = Fresh::new(ttl, slf.getattr(intern!(py, "_stale"))?.extract()?, None)?;
        let objects = slf.getattr(intern!(py, "_objects"))?;
        let groups = slf.call_method(intern!(py, "_groups_of"), args, named)?.extract()?;
        let (value, computed) = get_or_compute(&objects, &key, fresh, &groups, &call)?;
        slf.get().count(computed);
        Ok(value)
    }

    /// Counts a call.
    #[pyo3(name = "_count")]
    fn count(&self, computed: bool) {
        let counter = if computed { &self.misses } else { &self.hits };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the hits and the misses.
    #[pyo3(name = "_counted")]
    fn counted(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }

    /// Begins to count again from zero.
    #[pyo3(name = "_reset")]
    fn reset(&self) {
        self.hits.store(0, Ordering::Relaxed);
        self.misses.store(0, Ordering::Relaxed);
    }
}

/// A memoized function as the method of an object: its calls. A subclass has the rest, and the attributes that this
/// reads.
#[pyclass(frozen, subclass, module = "haypile._haypile")]
pub(crate) struct BoundMemoized;

#[pymethods]
impl BoundMemoized {
    #[new]
    #[pyo3(signature = (*_args))]
    fn new(_args: &Bound<'_, PyTuple>) -> Self {
        Self
    }

    #[pyo3(signature = (*args, **named))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let memoized = slf.getattr(intern!(py, "_memoized"))?.cast_into::<Memoized>()?;
        let mut with_instance = vec![slf.getattr(intern!(py, "__self__"))?];
        with_instance.extend(args);
        Memoized::__call__(&memoized, &PyTuple::new(py, with_instance)?, named)
    }
}
