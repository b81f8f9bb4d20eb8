//! Values that Python reads in place.

#![expect(clippy::needless_pass_by_value, reason = "PyO3 makes values of arguments")]
#![expect(unsafe_code, reason = "the buffer protocol is one of pointers")]

use std::ffi::c_int;
use std::mem;
use std::sync::Arc;

use engine::OwnedPinned;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

use crate::opened::Opened;

/// The memory of a value; a memoryview of it keeps it.
#[pyclass(frozen, module = "haypile._haypile")]
pub(crate) struct View {
    /// `None` only during drop.
    value: Option<Memory>,
    opened: Arc<Opened>,
}

enum Memory {
    Pinned(OwnedPinned),
    Copied(Vec<u8>),
}

impl AsRef<[u8]> for Memory {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Pinned(value) => value,
            Self::Copied(value) => value,
        }
    }
}

impl View {
    /// Returns a memoryview of a value that is held in place.
    pub(crate) fn of_pinned(
        py: Python<'_>,
        mut value: OwnedPinned,
        opened: Arc<Opened>,
    ) -> PyResult<Bound<'_, PyMemoryView>> {
        // A memoryview goes on reading in a child, where nothing can intercept it.
        value.keep_for_children();
        Self::memoryview(py, Memory::Pinned(value), opened)
    }

    /// Returns a memoryview of a copy.
    pub(crate) fn of_copy(
        py: Python<'_>,
        value: Vec<u8>,
        opened: Arc<Opened>,
    ) -> PyResult<Bound<'_, PyMemoryView>> {
        Self::memoryview(py, Memory::Copied(value), opened)
    }

    fn memoryview(
        py: Python<'_>,
        value: Memory,
        opened: Arc<Opened>,
    ) -> PyResult<Bound<'_, PyMemoryView>> {
        let view = Bound::new(py, Self { value: Some(value), opened })?;
        PyMemoryView::from(&view)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // A child of a fork does not touch what it has inherited: see `Opened`.
        if self.opened.is_inherited() {
            mem::forget(self.value.take());
        }
    }
}

#[pymethods]
impl View {
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let bytes = slf.get().value.as_ref().expect("it is taken only by drop").as_ref();
        let length = ffi::Py_ssize_t::try_from(bytes.len())
            .map_err(|_| PyBufferError::new_err("the value is too long"))?;
        let start = bytes.as_ptr().cast_mut().cast();
        // SAFETY: Python passes a buffer to fill. It gets read-only memory, which stays where it is and as it
        // is while this object lives, and the buffer holds a reference to it.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 1, flags) };
        if filled == -1 { Err(PyErr::fetch(slf.py())) } else { Ok(()) }
    }
}
