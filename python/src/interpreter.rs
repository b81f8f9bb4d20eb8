//! The interpreter that imports the module.

#![expect(unsafe_code, reason = "PyO3 has no safe function for the interpreter's number")]

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Number of the interpreter that a process begins with.
const MAIN: i64 = 0;

/// Raises `ImportError` in a subinterpreter. Computations are called through `PyGILState_Ensure`, which does not
/// support those: in Python 3.11 it runs a function of one interpreter in another.
///
/// Python itself refuses in a subinterpreter that has a GIL of its own.
pub(crate) fn check_is_main() -> PyResult<()> {
    // SAFETY: The caller is attached to the interpreter, because it is initialising the module.
    let id = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    if id == MAIN {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "haypile works only in the main interpreter, and this is a subinterpreter; under mod_wsgi, set \
         'WSGIApplicationGroup %{GLOBAL}'",
    ))
}
