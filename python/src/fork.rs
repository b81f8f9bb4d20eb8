//! Keeps caches correct after a fork: registers the engine's gate, [`engine::fork`], with the interpreter.
//!
//! A thread that calls the engine while it is attached to the interpreter does not need the gate: Python forks
//! with the GIL, or, if it is free-threaded, stops all attached threads first, and they stop only where they
//! run Python.
//!
//! A fork that the gate could not keep waiting any longer is as safe as forks of threaded programs are: a
//! child opens its caches again, and does not use what it has inherited.

use std::time::Duration;

use engine::ForkGate;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::logging;

/// Longest wait of a fork for threads. A child does not use what it inherits, so that little is lost if one
/// of them waits for a server for longer.
const PATIENCE: Duration = Duration::from_millis(100);

/// Returns a number that differs between a process and its parent.
pub(crate) fn generation() -> u64 {
    ForkGate::generation()
}

/// Calls the engine without the GIL, so that other threads run, or fork, in the meantime.
pub(crate) fn without_gil<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    let result = py.detach(|| {
        let _inside = ForkGate::enter();
        work()
    });
    logging::emit(py);
    result
}

/// Calls Python from inside the engine, where a fork need not wait for it.
pub(crate) fn with_gil<R>(work: impl for<'py> FnOnce(Python<'py>) -> R) -> R {
    ForkGate::outside(|| Python::attach(work))
}

/// Registers hooks that Python calls around forks.
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    let os = py.import("os")?;
    if !os.hasattr("register_at_fork")? {
        return Ok(()); // A system without forks.
    }
    let hooks = PyDict::new(py);
    hooks.set_item("before", pyo3::wrap_pyfunction!(before_fork, py)?)?;
    hooks.set_item("after_in_parent", pyo3::wrap_pyfunction!(after_fork_in_parent, py)?)?;
    hooks.set_item("after_in_child", pyo3::wrap_pyfunction!(after_fork_in_child, py)?)?;
    os.call_method("register_at_fork", (), Some(&hooks))?;
    Ok(())
}

#[pyfunction]
fn before_fork(py: Python<'_>) {
    py.detach(|| ForkGate::prepare(PATIENCE));
}

#[pyfunction]
fn after_fork_in_parent() {
    ForkGate::in_parent();
}

#[pyfunction]
fn after_fork_in_child() {
    ForkGate::in_child();
}
