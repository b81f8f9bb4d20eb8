//! Iteration over the keys of a cache.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use engine::Cursor;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raised;
use crate::opened::Opened;

/// Positions that one call of the engine visits.
const PAGE: usize = 256;

/// An iterator over keys.
#[pyclass(frozen, module = "haypile._haypile")]
pub(crate) struct Keys {
    opened: Arc<Opened>,
    /// Locked as the state of a cache is: only by attached threads, and for no longer than they run no Python.
    state: Mutex<State>,
}

struct State {
    page: VecDeque<Vec<u8>>,
    next: Option<Cursor>,
}

impl Keys {
    pub(crate) fn new(opened: Arc<Opened>) -> Self {
        let state = State { page: VecDeque::new(), next: Some(Cursor::default()) };
        Self { opened, state: Mutex::new(state) }
    }
}

#[pymethods]
impl Keys {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        loop {
            let (key, next) = {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                match state.page.pop_front() {
                    Some(key) => (Some(key), None),
                    None => (None, state.next.take()),
                }
            };
            if let Some(key) = key {
                return Ok(Some(PyBytes::new(py, &key)));
            }
            let Some(next) = next else { return Ok(None) };
            if self.opened.is_inherited() {
                // A child of a fork does not touch its parent's cache: see `Opened`.
                return Ok(None);
            }
            // Without the lock, which another thread may want while this one waits.
            let page = self.opened.operate(py, 0, |cache| cache.store().keys(next, PAGE));
            let page = page.map_err(|error| raised(&error))?;
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.page.extend(page.keys);
            state.next = page.next;
        }
    }
}
