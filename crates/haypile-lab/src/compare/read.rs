//! Reads what is compared: a file of results, or a directory of them.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::CompareError;
use crate::result::{self, Results, ResultsError};

/// What files of results are called.
const EXTENSION: &str = "jsonl";

/// Reads a file of results, or all files `*.jsonl` of a directory in the order of their names.
///
/// What is passed over is in the warnings: a half-written last line; in a directory also a file
/// that does not begin with a row of results, as other programs keep JSON Lines too.
///
/// # Errors
///
/// [`CompareError`], among them that there is no sample at all.
pub fn read(path: &Path) -> Result<Results, CompareError> {
    let results = if path.is_dir() { read_directory(path)? } else { result::read(path)? };
    if results.samples.is_empty() {
        return Err(CompareError::NoSamples { path: path.into() });
    }
    Ok(results)
}

/// The rows of all files `*.jsonl` of a directory, which may be none.
pub(crate) fn read_directory(path: &Path) -> Result<Results, CompareError> {
    let failed = |source| CompareError::Directory { path: path.into(), source };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.extension().is_some_and(|extension| extension == EXTENSION) && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    let mut all = Results::default();
    for file in files {
        match result::read(&file) {
            Ok(results) => {
                all.runs.extend(results.runs);
                all.samples.extend(results.samples);
                all.warnings.extend(results.warnings);
            }
            Err(ResultsError::Line { line: 1, .. }) => all.warnings.push(format!(
                "{}: does not begin with a row of results and is passed over",
                file.display()
            )),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}
