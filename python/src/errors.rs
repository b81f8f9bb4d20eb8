//! The package's exceptions.

// The macro makes types without documentation of Rust's; theirs is what Python shows.
#![allow(missing_docs)]

use engine::{ComputeError, Error as EngineError};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;

create_exception!(
    haypile,
    Error,
    PyException,
    "A failure of a cache. A miss is not a failure: it is None.\n\n\
     Wrong arguments are TypeError and ValueError, as everywhere."
);
create_exception!(
    haypile,
    OpenError,
    Error,
    "The cache could not be opened: its URL is wrong, or what it names cannot be used."
);
create_exception!(
    haypile,
    KeyTooLong,
    Error,
    "The key is longer than the cache takes. Nothing has changed."
);
create_exception!(
    haypile,
    ValueTooLarge,
    Error,
    "The value is larger than the cache takes. The old value stays."
);
create_exception!(
    haypile,
    NotACounter,
    Error,
    "incr or decr met a value that is not a number. The value stays as it is."
);
create_exception!(haypile, Closed, Error, "The cache was closed.");
create_exception!(
    haypile,
    ComputesItself,
    Error,
    "A computation asked for the key that it computes, and would wait for itself forever."
);
create_exception!(haypile, Unsupported, Error, "A cache of this kind cannot do this.");
create_exception!(
    haypile,
    Busy,
    Error,
    "Another process holds a part of the store that this needs, is alive, and does not go on. \
     Nothing has changed.\n\n\
     If that process is known to be stopped or frozen, the text has its number: continue or end \
     it. \
     Otherwise it makes room, or lacks a processor: try again."
);
create_exception!(
    haypile,
    Full,
    Error,
    "The cache cannot make room, because every possible victim is in use. The old value stays."
);
create_exception!(haypile, BackendError, Error, "The file or server under the cache failed.");

/// Returns the exception for an error of the engine.
pub(crate) fn raised(error: &EngineError) -> PyErr {
    let text = error.to_string();
    match error {
        EngineError::ZeroTtl | EngineError::Group { .. } => PyValueError::new_err(text),
        EngineError::KeyTooLong { .. } => KeyTooLong::new_err(text),
        EngineError::ValueTooLarge { .. } => ValueTooLarge::new_err(text),
        EngineError::NotACounter { .. } => NotACounter::new_err(text),
        EngineError::Closed { .. } => Closed::new_err(text),
        EngineError::RecursiveCompute => ComputesItself::new_err(text),
        EngineError::Unsupported { .. } => Unsupported::new_err(text),
        EngineError::Busy { .. } => Busy::new_err(text),
        EngineError::Full { .. } => Full::new_err(text),
        EngineError::Backend { .. } => BackendError::new_err(text),
        _ => Error::new_err(text),
    }
}

/// The same for a computation: what its function has raised, it raises.
pub(crate) fn raised_by_computing(error: ComputeError<PyErr>) -> PyErr {
    match error {
        ComputeError::Compute(raised) => raised,
        ComputeError::Cache(error) => raised(&error),
        other => Error::new_err(other.to_string()),
    }
}

pub(crate) fn not_opened(error: &engine::OpenError) -> PyErr {
    OpenError::new_err(error.to_string())
}
