//! Reads of objects: the part of haypile.Objects that each hit needs.

use std::sync::OnceLock;

use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::cache::Cache;

/// The reads of a cache of objects. A subclass has the rest, and what this calls.
#[pyclass(frozen, subclass, module = "haypile._haypile")]
#[derive(Default)]
pub(crate) struct ObjectReader(OnceLock<Source>);

/// The source of objects: a cache, and the objects that are shared.
struct Source {
    cache: Py<Cache>,
    /// Tuples by keys: the version of an entry, its object, and the number of its bytes. `None` if each read loads
    /// its object.
    shared: Option<Py<PyDict>>,
}

#[pymethods]
impl ObjectReader {
    #[new]
    #[pyo3(signature = (*_args, **_named))]
    fn new(_args: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Self {
        Self::default()
    }

    /// Sets the cache and the shared objects, once.
    #[pyo3(name = "_read_from")]
    fn read_from(&self, cache: Py<Cache>, shared: Option<Py<PyDict>>) {
        let _ = self.0.set(Source { cache, shared });
    }

    /// Returns the value of a key, or `default`.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        default: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = slf.py();
        let source = slf.get().0.get();
        let Source { cache, shared } =
            source.ok_or_else(|| PyRuntimeError::new_err("haypile.Objects was not initialised"))?;
        let Some(shared) = shared else {
            let data = cache.bind(py).call_method1(intern!(py, "get"), (key,))?;
            if data.is_none() {
                return Ok(default.cloned());
            }
            return slf.call_method1(intern!(py, "_loaded"), (key, data, default)).map(Some);
        };
        let entry = shared.bind(py).get_item(key)?;
        let mut found = None;
        if let Some(entry) = &entry {
            let entry = entry.cast::<PyTuple>()?;
            let version = entry.get_borrowed_item(0)?.extract()?;
            found = match cache.get().get_if_changed(py, key.extract()?, version)? {
                Some((None, _)) => return entry.get_item(1).map(Some),
                Some((Some(value), version)) => Some((value, version)),
                None => None,
            };
        }
        slf.call_method1(intern!(py, "_get_shared"), (key, default, entry, found)).map(Some)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Some(Source { cache, shared }) = self.0.get() else { return Ok(()) };
        visit.call(cache)?;
        visit.call(shared)
    }
}
