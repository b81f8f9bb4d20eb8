//! The Python package `haypile`: `haypile.pyi` is its interface for type checkers, and the
//! documentation is in the docstrings here.
//!
//! Every call of the engine is made without the GIL, by [`fork::without_gil`], which also ensures
//! that a fork finds no thread inside the engine. A child of a fork opens its caches again:
//! [`opened::Opened`].

mod arguments;
mod buffer;
mod cache;
mod errors;
mod fork;
mod opened;
mod stats;

/// Caches of bytes, bounded in bytes, named by a URL.
///
/// >>> import haypile
/// >>> cache = haypile.open("memory:size=64MiB,ttl=10m")
/// >>> cache.set("user:7", b"Ada")
/// >>> cache.get("user:7")
/// b'Ada'
///
/// However many threads ask for one key, one computes:
///
/// >>> cache.get_or_compute("page:/", 30, lambda: b"<html>")
/// b'<html>'
#[pyo3::pymodule(name = "haypile", gil_used = true)]
mod module {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::cache::{Cache, open};
    #[pymodule_export]
    use crate::errors::{
        BackendError, Busy, Closed, ComputesItself, Error, Full, KeyTooLong, NotACounter,
        OpenError, Unsupported, ValueTooLarge,
    };
    #[pymodule_export]
    use crate::stats::Stats;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::fork::register(module.py())
    }
}
