//! Reads the results to compare: a file, or a directory of them.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::CompareError;
use crate::result::{self, Results, ResultsError};

/// The extension of results files.
const EXTENSION: &str = "jsonl";

/// Reads benchmark results from a file, or from all files `*.jsonl` of a directory in the order of
/// their names.
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

fn read_directory(path: &Path) -> Result<Results, CompareError> {
    let mut all = Results::default();
    for (_, results) in read_each(path)? {
        all.runs.extend(results.runs);
        all.samples.extend(results.samples);
        all.warnings.extend(results.warnings);
    }
    Ok(all)
}

/// Reads all results files `*.jsonl` of a directory, in the order of their names; returns each file
/// with its rows.
pub fn read_each(path: &Path) -> Result<Vec<(PathBuf, Results)>, CompareError> {
    let failed = |source| CompareError::Directory { path: path.into(), source };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let file = entry.map_err(failed)?.path();
        if file.extension().is_some_and(|extension| extension == EXTENSION) && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    let mut all = Vec::with_capacity(files.len());
    for file in files {
        let results = match result::read(&file) {
            Ok(results) => results,
            Err(ResultsError::Line { line: 1, .. }) => {
                let mut passed_over = Results::default();
                passed_over.warnings.push(format!(
                    "{}: does not begin with a row of results and is passed over",
                    file.display()
                ));
                passed_over
            }
            Err(error) => return Err(error.into()),
        };
        all.push((file, results));
    }
    Ok(all)
}
