//! Computing on a miss without blocking a thread, for event loops.

#![expect(clippy::needless_pass_by_value, reason = "PyO3 makes values of arguments")]

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::Polled;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat};

use crate::arguments::Value;
use crate::errors::raised;
use crate::opened::{LONG_BYTES, Opened};
use crate::view::View;

/// A call of `get_or_compute` that a loop polls.
#[pyclass(frozen, module = "haypile._haypile")]
pub(crate) struct Pending {
    opened: Arc<Opened>,
    /// `None` once it has ended. Locked by one thread at a time, and by none that is in Python.
    pending: Mutex<Option<Box<engine::PendingCompute>>>,
}

/// The right to compute a value and to store it. Without a value it has failed, and another caller takes over.
#[pyclass(frozen, module = "haypile._haypile")]
pub(crate) struct Computation {
    opened: Arc<Opened>,
    /// `None` once it has ended.
    computation: Mutex<Option<Box<engine::Computation>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pending {
    pub(crate) fn new(opened: Arc<Opened>, pending: engine::PendingCompute) -> Self {
        Self { opened, pending: Mutex::new(Some(Box::new(pending))) }
    }

    /// Begins a call and polls it. Returns the value if it is there, or else the call and what it has returned.
    pub(crate) fn start(
        py: Python<'_>,
        opened: Arc<Opened>,
        pending: engine::PendingCompute,
    ) -> PyResult<Bound<'_, PyAny>> {
        let polled = opened.operate(py, 0, |_| pending.poll()).map_err(|error| raised(&error))?;
        let is_value = matches!(polled, Polled::Value(_));
        let (answer, waiting) = answer(py, &opened, polled)?;
        if is_value {
            return Ok(answer);
        }
        let pending = Self { opened, pending: Mutex::new(waiting) };
        Ok((Bound::new(py, pending)?, answer).into_pyobject(py)?.into_any())
    }

    fn change(&self, change: impl FnOnce(engine::PendingCompute) -> engine::PendingCompute) {
        let mut pending = lock(&self.pending);
        *pending = pending.take().map(|pending| Box::new(change(*pending)));
    }
}

/// Returns what Python gets, and the call where it goes on.
fn answer<'py>(
    py: Python<'py>,
    opened: &Arc<Opened>,
    polled: Polled,
) -> PyResult<(Bound<'py, PyAny>, Option<Box<engine::PendingCompute>>)> {
    let answer = match polled {
        Polled::Value(value) if value.len() < LONG_BYTES => PyBytes::new(py, &value).into_any(),
        Polled::Value(value) => View::of_copy(py, value, Arc::clone(opened))?.into_any(),
        Polled::Compute(computation) => {
            let (opened, computation) = (Arc::clone(opened), Mutex::new(Some(computation)));
            Bound::new(py, Computation { opened, computation })?.into_any()
        }
        Polled::Wait(pending, at_most) => {
            return Ok((PyFloat::new(py, at_most.as_secs_f64()).into_any(), Some(pending)));
        }
    };
    Ok((answer, None))
}

#[pymethods]
impl Pending {
    /// Returns the value as bytes, or as a memoryview if it is long; a Computation where the caller computes; or the
    /// seconds after which to poll again at the latest. None if it was given up, or belongs to the parent of this process.
    /// Waits for the store, and for no other caller.
    fn poll<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(pending) = lock(&self.pending).take() else { return Ok(None) };
        if self.opened.is_inherited() {
            mem::forget(pending);
            return Ok(None);
        }
        let polled = self.opened.operate(py, 0, |_| pending.poll());
        let polled = polled.map_err(|error| raised(&error))?;
        let (answer, waiting) = answer(py, &self.opened, polled)?;
        *lock(&self.pending) = waiting;
        Ok(Some(answer))
    }

    /// Has it wait for no other process, because its caller computes another value.
    fn within_a_computation(&self) {
        self.change(engine::PendingCompute::within_a_computation);
    }

    /// Has it take over at once from the caller that computes in this process.
    fn after_a_wait(&self) {
        self.change(engine::PendingCompute::after_a_wait);
    }

    /// Whether another caller that comes now may share the outcome.
    fn is_current(&self) -> bool {
        let pending = lock(&self.pending);
        pending.as_ref().is_none_or(|pending| self.opened.is_inherited() || pending.is_current())
    }

    /// Gives up: others take over what it may have begun.
    fn abandon(&self, py: Python<'_>) {
        let pending = lock(&self.pending).take();
        end(py, &self.opened, pending);
    }
}

#[pymethods]
impl Computation {
    /// Stores the value, unless the key has changed since the computation began, and ends it.
    fn store(&self, py: Python<'_>, value: Value) {
        let Some(computation) = lock(&self.computation).take() else { return };
        if self.opened.is_inherited() {
            return mem::forget(computation);
        }
        let value = value.as_ref();
        self.opened.operate(py, value.len(), |_| computation.store(value));
    }

    /// Whether the key has not changed since the computation began.
    fn is_current(&self) -> bool {
        let computation = lock(&self.computation);
        let is_current = |computation: &engine::Computation| {
            self.opened.is_inherited() || computation.is_current()
        };
        computation.as_deref().is_none_or(is_current)
    }

    /// Ends a computation that has failed. Returns the value that was to be refreshed, if it is still there.
    fn fail<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let computation = lock(&self.computation).take()?;
        if self.opened.is_inherited() {
            mem::forget(computation);
            return None;
        }
        let current = self.opened.operate(py, 0, |_| computation.fail())?;
        Some(PyBytes::new(py, &current))
    }

    /// Gives up: others take over.
    fn abandon(&self, py: Python<'_>) {
        let computation = lock(&self.computation).take();
        end(py, &self.opened, computation);
    }
}

/// Drops what belongs to the engine; a child of a fork does not touch what it has inherited: see [`Opened`].
fn end<T: Send>(py: Python<'_>, opened: &Opened, ended: Option<T>) {
    if opened.is_inherited() {
        mem::forget(ended);
    } else if ended.is_some() {
        opened.operate(py, 0, |_| drop(ended));
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.opened.is_inherited() {
            mem::forget(lock(&self.pending).take());
        }
    }
}

impl Drop for Computation {
    fn drop(&mut self) {
        if self.opened.is_inherited() {
            mem::forget(lock(&self.computation).take());
        }
    }
}
