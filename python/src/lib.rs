//! The compiled part of the Python package `haypile`: `haypile/_haypile.pyi` is its interface for type
//! checkers, and the documentation is in the docstrings here.
//!
//! Calls of the engine that can wait are made without the GIL; those that take less time than it does to
//! release it are made with it. [`fork`] ensures that a fork finds no thread inside the engine. A child of a
//! fork opens its caches again: [`opened::Opened`].
//!
//! A Python without a GIL keeps it off: nothing here relies on it. Classes are frozen, and what changes in them is
//! atomic or behind a lock that no fork finds locked ([`cache::Cache`]); arguments that other threads may change are
//! copied under their own locks ([`arguments`]). The engine is made for threads.

mod arguments;
mod buffer;
mod cache;
mod counter;
mod errors;
mod fork;
mod fresh;
mod interpreter;
mod json;
mod keys;
mod logging;
mod object;
mod opened;
mod pending;
mod shared;
mod stats;
mod url;
mod view;

/// Returns the text of a URL, right or wrong, without what could be a password.
#[pyo3::pyfunction]
#[pyo3(name = "_redacted")]
fn redacted(url: &str) -> String {
    engine::url::CacheUrl::redacted_text(url)
}

/// The compiled part of the package `haypile`.
#[pyo3::pymodule(name = "_haypile", gil_used = false)]
mod module {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::redacted;
    #[pymodule_export]
    use crate::cache::Cache;
    #[pymodule_export]
    use crate::errors::{
        BackendError, Busy, Closed, ComputesItself, Error, Full, KeyTooLong, NotACounter,
        OpenError, Unsupported, ValueTooLarge,
    };
    #[pymodule_export]
    use crate::json::{is_short, json_outline, short_run};
    #[pymodule_export]
    use crate::object::{BoundMemoized, Memoized, get_or_compute_object};
    #[pymodule_export]
    use crate::pending::{Computation, Pending};
    #[pymodule_export]
    use crate::shared::ObjectReader;
    #[pymodule_export]
    use crate::stats::Stats;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::interpreter::check_is_main()?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::logging::install();
        crate::fork::register(module.py())
    }
}
