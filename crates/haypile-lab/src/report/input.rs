//! The input of a report.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use haypile_measure::compare::{CompareError, read_each};
use haypile_measure::figure::Findings;
use haypile_measure::result::{self, Results, Samples};
use haypile_plot::drawing::text::printable;

use super::error::ReportError;
use super::simulation::Simulations;
use super::topic::Topics;

/// The largest file that is read: about 300,000 rows.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// The input of a report: result rows and simulations.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Result files with their rows, each with its name without folder and extension.
    pub(crate) files: Vec<(String, Results)>,
    pub(crate) simulations: Vec<Simulations>,
    /// The paths that the report was made of, as the user gave them.
    pub(crate) sources: Vec<String>,
    /// Warnings about files and lines of the input that were skipped.
    pub(crate) warnings: Vec<String>,
}

/// Reads files of result rows (`*.jsonl`), JSON files that `haypile simulate --json` has printed,
/// and directories of such files. Other files of a directory are skipped, other JSON files with a
/// warning.
///
/// # Errors
///
/// [`ReportError`] for what cannot be read or is neither, and if there is nothing in all of them.
pub fn read(paths: &[PathBuf]) -> Result<Input, ReportError> {
    let mut input = Input::default();
    for path in paths {
        input.sources.push(path.display().to_string());
        if path.is_dir() {
            input.add_directory(path)?;
        } else if has_extension(path, "json") {
            input.simulations.push(simulations(path)?);
        } else {
            check_size(path)?;
            input.add(path, result::read(path)?);
        }
    }
    if input.files.is_empty() && input.simulations.is_empty() {
        let paths = input.sources.join(", ");
        return Err(ReportError::Nothing { paths });
    }
    Ok(input)
}

impl Input {
    /// Returns warnings about files and lines of the input that were skipped.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the figures of all result rows of the input, by file and experiment; simulations
    /// have none.
    pub fn findings(&self, topics: &Topics) -> Findings {
        let mut findings = Vec::new();
        for (_, results) in &self.files {
            let all: Samples<'_> = results.samples.iter().collect();
            for (name, samples) in all.grouped(|sample| sample.experiment.as_str()) {
                findings.extend(topics.findings(name, &samples).0);
            }
        }
        Findings(findings)
    }

    fn add(&mut self, path: &Path, mut results: Results) {
        self.warnings.append(&mut results.warnings);
        if !results.samples.is_empty() {
            let stem = path.file_stem().map(|stem| printable(&stem.to_string_lossy()));
            self.files.push((stem.unwrap_or_default(), results));
        }
    }

    fn add_directory(&mut self, directory: &Path) -> Result<(), ReportError> {
        let failed = |source| CompareError::Directory { path: directory.into(), source };
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(directory).map_err(failed)? {
            files.push(entry.map_err(failed)?.path());
        }
        files.retain(|file| file.is_file());
        files.sort();
        for file in files.iter().filter(|file| has_extension(file, "jsonl")) {
            check_size(file)?;
        }
        for (file, results) in read_each(directory)? {
            self.add(&file, results);
        }
        for file in files.iter().filter(|file| has_extension(file, "json")) {
            match simulations(file) {
                Ok(simulations) => self.simulations.push(simulations),
                Err(error @ ReportError::Simulation { .. }) => {
                    self.warnings.push(format!("{error}; it is passed over"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|it| it.eq_ignore_ascii_case(extension))
}

fn check_size(path: &Path) -> Result<(), ReportError> {
    let metadata =
        fs::metadata(path).map_err(|source| ReportError::Io { path: path.into(), source })?;
    match metadata.len() {
        bytes if bytes > MAX_FILE_BYTES => {
            Err(ReportError::TooLarge { path: path.into(), bytes, most: MAX_FILE_BYTES })
        }
        _ => Ok(()),
    }
}

fn simulations(path: &Path) -> Result<Simulations, ReportError> {
    let failed = |source| ReportError::Io { path: path.into(), source };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let bytes = bytes.len() as u64;
        return Err(ReportError::TooLarge { path: path.into(), bytes, most: MAX_FILE_BYTES });
    }
    Simulations::parse(&bytes)
        .map_err(|reason| ReportError::Simulation { path: path.into(), reason })
}
