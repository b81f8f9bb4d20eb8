//! Keeps caches correct after a fork.
//!
//! A child has one thread, and a copy of every lock as it was at that instant: a lock that another
//! thread of the parent held stays locked in the child forever. So a fork by Python waits until no
//! thread is inside the engine, and threads that arrive during the fork wait until it is done. Both
//! poll, because a lock here would have the same problem. A thread that calls the engine while it is attached
//! to the interpreter needs neither: Python forks with the GIL, or, if it is free-threaded, stops all attached
//! threads first, and they stop only where they run Python. Both waits are bounded, because a thread
//! may itself hold something that the fork waits for, such as the lock of Python's `logging`, or
//! may wait inside the engine for the computation of another thread.
//!
//! A fork after that bound is as safe as forks of threaded programs are.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Longest wait of a fork for threads, and of a thread for a fork.
const PATIENCE: Duration = Duration::from_millis(100);

/// Pause between two polls of a wait.
const NAP: Duration = Duration::from_micros(50);

/// Number of forks between the process that loaded the module and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Number of forks in progress.
static FORKING: AtomicUsize = AtomicUsize::new(0);

/// Number of threads inside the engine.
static WITHIN: AtomicUsize = AtomicUsize::new(0);

/// Returns a number that differs between a process and its parent.
pub(crate) fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Calls the engine without the GIL, so that other threads run, or fork, in the meantime.
pub(crate) fn without_gil<R: Send>(py: Python<'_>, work: impl FnOnce() -> R + Send) -> R {
    py.detach(|| {
        let _within = Within::enter();
        work()
    })
}

/// Calls Python from inside the engine, where a fork need not wait for it.
pub(crate) fn with_gil<R>(work: impl for<'py> FnOnce(Python<'py>) -> R) -> R {
    let _outside = Outside::enter();
    Python::attach(work)
}

struct Within;

impl Within {
    fn enter() -> Self {
        WITHIN.fetch_add(1, Ordering::SeqCst);
        if FORKING.load(Ordering::SeqCst) > 0 {
            WITHIN.fetch_sub(1, Ordering::SeqCst);
            wait_until(|| FORKING.load(Ordering::SeqCst) == 0);
            WITHIN.fetch_add(1, Ordering::SeqCst);
        }
        Self
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        WITHIN.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The opposite, for a while.
struct Outside;

impl Outside {
    fn enter() -> Self {
        WITHIN.fetch_sub(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        std::mem::forget(Within::enter());
    }
}

fn wait_until(condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() && Instant::now() < end {
        thread::sleep(NAP);
    }
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
    FORKING.fetch_add(1, Ordering::SeqCst);
    py.detach(|| wait_until(|| WITHIN.load(Ordering::SeqCst) == 0));
}

#[pyfunction]
fn after_fork_in_parent() {
    FORKING.fetch_sub(1, Ordering::SeqCst);
}

#[pyfunction]
fn after_fork_in_child() {
    // The thread that forked was not within the engine, and no other is there any more.
    WITHIN.store(0, Ordering::SeqCst);
    FORKING.store(0, Ordering::SeqCst);
    GENERATION.fetch_add(1, Ordering::SeqCst);
}
