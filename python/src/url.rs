//! The URL of a cache, as programs name it.

use std::fmt::Write as _;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Returns the URL that was given: text, or the path of a file.
pub(crate) fn url_of(url: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = url.cast::<PyString>() {
        let text = text.to_str()?;
        // Python's users expect `~` to be what it is in a shell.
        let Some(rest) = text.strip_prefix("file:~/") else { return Ok(text.to_owned()) };
        let home: String =
            url.py().import("os.path")?.call_method1("expanduser", ("~",))?.extract()?;
        return Ok(format!("file:{}/{rest}", escaped(&home)));
    }
    let path = url.py().import("os")?.call_method1("fspath", (url,)).map_err(|_| {
        PyTypeError::new_err("a cache is named by its URL, a str, or by the path of a file")
    })?;
    let functions = url.py().import("os.path")?;
    let path = functions.call_method1("expanduser", (path,))?;
    // A URL of a file has an absolute path.
    let path = functions.call_method1("abspath", (path,))?;
    Ok(format!("file:{}", escaped(&path.extract::<String>()?)))
}

/// Escapes a path for a URL.
fn escaped(path: &str) -> String {
    path.bytes().fold(String::new(), |mut url, byte| {
        if byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte) {
            url.push(byte.into());
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
        url
    })
}
