//! Conversion of Python's arguments into the engine's.

use std::time::Duration;

use engine::{Lease, Ttl};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{
    PyByteArray, PyBytes, PyDelta, PyDict, PyDictItems, PyEllipsis, PyList, PyMemoryView, PyString,
};

/// A key: `bytes`, or `str`, which is its UTF-8. Neither is copied, since neither can change.
pub(crate) enum KeyArgument {
    Bytes(PyBackedBytes),
    Text(PyBackedStr),
}

impl AsRef<[u8]> for KeyArgument {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Text(text) => text.as_bytes(),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for KeyArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            Ok(Self::Text(text.to_owned().try_into()?))
        } else if let Ok(bytes) = object.cast::<PyBytes>() {
            Ok(Self::Bytes(bytes.to_owned().into()))
        } else {
            Err(PyTypeError::new_err(format!("a key is bytes or str, not {}", type_of(object))))
        }
    }
}

/// A value: `bytes`, or a copy of anything that has a buffer, which other threads may change.
pub(crate) enum Value {
    Bytes(PyBackedBytes),
    Copy(Vec<u8>),
}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Copy(copy) => copy,
        }
    }
}

/// A lease: the bytes that Cache.lease returns.
pub(crate) struct LeaseArgument(pub(crate) Lease);

impl<'py> FromPyObject<'_, 'py> for LeaseArgument {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let bytes: &[u8] = object.extract()?;
        let lease = <[u8; Lease::BYTES]>::try_from(bytes).map_err(|_| {
            PyValueError::new_err(format!(
                "a lease has {} bytes, as Cache.lease returns them, and not {}",
                Lease::BYTES,
                bytes.len()
            ))
        })?;
        Ok(Self(Lease::from_bytes(lease)))
    }
}

impl<'py> FromPyObject<'_, 'py> for Value {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.to_owned().into()));
        }
        if let Ok(array) = object.cast_exact::<PyByteArray>() {
            // A Python without a GIL locks it. A view would make the resizing of another thread a BufferError.
            return Ok(Self::Copy(array.to_vec()));
        }
        let view = PyMemoryView::from(&object).map_err(|error| {
            replaced(object.py(), error, || {
                PyTypeError::new_err(format!(
                    "a value is bytes or another bytes-like object, not {}; text is encoded first",
                    type_of(object)
                ))
            })
        })?;
        let copy = view.call_method0("tobytes")?.cast_into::<PyBytes>()?;
        Ok(Self::Bytes(copy.into()))
    }
}

/// Many keys: any iterable of them.
pub(crate) struct KeyArguments(pub(crate) Vec<KeyArgument>);

impl<'py> FromPyObject<'_, 'py> for KeyArguments {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // A text would be an iterable of its characters.
        if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
            let given = type_of(object);
            return Err(PyTypeError::new_err(format!("keys are an iterable of keys, not {given}")));
        }
        listed(&object)?.iter().map(|key| key.extract()).collect::<PyResult<_>>().map(Self)
    }
}

/// The name of a group: as a key.
pub(crate) struct Group(KeyArgument);

impl AsRef<[u8]> for Group {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

impl<'py> FromPyObject<'_, 'py> for Group {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let name = object.extract::<KeyArgument>().map_err(|error: PyErr| {
            replaced(object.py(), error, || {
                let given = type_of(object);
                PyTypeError::new_err(format!("the name of a group is bytes or str, not {given}"))
            })
        })?;
        Ok(Self(name))
    }
}

/// Names of groups: any iterable of them.
#[derive(Default)]
pub(crate) struct Groups(pub(crate) Vec<Group>);

impl<'py> FromPyObject<'_, 'py> for Groups {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let refused = || {
            PyTypeError::new_err(format!(
                "groups are an iterable of names, such as [\"user:7\"], not {}",
                type_of(object)
            ))
        };
        if object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>() {
            return Err(refused());
        }
        let names = listed(&object).map_err(|error| replaced(object.py(), error, refused))?;
        names.iter().map(|name| name.extract()).collect::<PyResult<_>>().map(Self)
    }
}

/// Keys with their values: a mapping, or any iterable of pairs.
pub(crate) struct Entries(pub(crate) Vec<(KeyArgument, Value)>);

impl<'py> FromPyObject<'_, 'py> for Entries {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(entries) = object.cast::<PyDict>() {
            let pairs = entries.items();
            return pairs.iter().map(|pair| pair.extract()).collect::<PyResult<_>>().map(Self);
        }
        let items = match object.getattr_opt("items")? {
            Some(items) => Some(items.call0()?),
            None if object.is_instance_of::<PyDictItems>() => Some(object.to_owned()),
            None => None,
        };
        if let Some(items) = items {
            let pairs = listed_items(&items)?;
            return pairs.iter().map(|pair| pair.extract()).collect::<PyResult<_>>().map(Self);
        }
        // One at a time: a generator may reuse the buffer of its values.
        object.try_iter()?.map(|pair| pair?.extract()).collect::<PyResult<_>>().map(Self)
    }
}

/// Returns a list of what an iterable holds, before any of it is converted: that can run methods which change
/// a dict or a set, as other threads can. Python makes the list under the lock of those.
fn listed<'py>(iterable: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    Ok(iterable.py().get_type::<PyList>().call1((iterable,))?.cast_into()?)
}

/// Returns a list of the pairs of a mapping's `items()`, before any of them is converted. Each pair of a dict's items
/// is a new tuple, whose allocation can start a garbage collection and with it methods that change the dict: the
/// list is made from a copy of the dict, which nobody else has.
fn listed_items<'py>(items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    if items.is_exact_instance_of::<PyDictItems>() {
        let copy = items.getattr("mapping")?.call_method0("copy")?;
        if let Ok(copy) = copy.cast::<PyDict>() {
            return Ok(copy.items());
        }
    }
    listed(items)
}

/// A TTL: seconds, a `timedelta`, `None` for no expiry, or `...` for the TTL of the cache's URL.
#[derive(Clone, Copy)]
pub(crate) struct Lifetime(pub(crate) Ttl);

impl Lifetime {
    pub(crate) const OF_CACHE: Self = Self(Ttl::Default);
}

impl<'py> FromPyObject<'_, 'py> for Lifetime {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_none() {
            return Ok(Self(Ttl::Never));
        }
        if object.is_instance_of::<PyEllipsis>() {
            return Ok(Self(Ttl::Default));
        }
        let refused = || {
            PyValueError::new_err(format!(
                "a TTL of {} is refused: it has to be more than zero and less than 2**64 seconds, or None \
                 for no expiry",
                *object
            ))
        };
        if object.is_instance_of::<PyDelta>() {
            return Ok(Self(Ttl::After(object.extract().map_err(|_| refused())?)));
        }
        let seconds: f64 = object.extract().map_err(|error: PyErr| {
            if error.is_instance_of::<PyOverflowError>(object.py()) {
                return refused();
            }
            replaced(object.py(), error, || {
                PyTypeError::new_err(format!(
                    "a TTL is a number of seconds, a datetime.timedelta or None, not {}",
                    type_of(object)
                ))
            })
        })?;
        Ok(Self(Ttl::After(Duration::try_from_secs_f64(seconds).map_err(|_| refused())?)))
    }
}

/// Returns a clearer error in place of a `TypeError`; what an object's own method has raised stays.
fn replaced(py: Python<'_>, error: PyErr, clearer: impl FnOnce() -> PyErr) -> PyErr {
    if error.is_instance_of::<PyTypeError>(py) { clearer() } else { error }
}

fn type_of(object: Borrowed<'_, '_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "that".to_owned(), |name| format!("'{name}'"))
}
