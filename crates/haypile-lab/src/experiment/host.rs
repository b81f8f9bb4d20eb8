//! Services that an experiment needs from the program around it.

use std::path::Path;

use haypile_measure::measure::Watcher;
use haypile_sim::Trace;
use haypile_sim::trace::format::Format;
use serde_json::Value;

use super::Printout;

/// The program around an experiment: its terminal, its signals, and its reader of traces.
pub trait Host: Watcher {
    /// Begins work of this many steps: shows progress, and makes Ctrl-C a request that
    /// [`is_interrupted`](Watcher::is_interrupted) reports.
    ///
    /// # Errors
    ///
    /// Ctrl-C cannot be watched.
    fn begin(&self, steps: u64, what: String) -> anyhow::Result<()>;

    /// Removes the progress at the end of the work.
    fn finish(&self);

    /// Shows a line in addition to the results, on standard error.
    fn note(&self, line: &str);

    /// Checks that a file can be created, before an experiment works for it.
    ///
    /// # Errors
    ///
    /// It cannot.
    fn check_output(&self, path: &Path) -> anyhow::Result<()>;

    /// Prints results for people.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written.
    fn print(&self, printout: &Printout) -> anyhow::Result<()>;

    /// Prints results for programs.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written.
    fn print_json(&self, value: &Value) -> anyhow::Result<()>;

    /// Reads a trace with progress, and returns it with the name of its file. A `format` of `None`
    /// is recognised from the content.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not a trace.
    fn trace(&self, path: &Path, format: Option<Format>) -> anyhow::Result<(String, Trace)>;
}

/// The outcome of a complete run of an experiment, for the exit status: without errors, or with
/// errors among the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything was measured, without errors.
    Well,
    /// Everything was measured, and some results are errors.
    WithErrors,
}

impl Ended {
    /// Returns the outcome of a complete run of an experiment: `WithErrors` if some of its results
    /// are errors, otherwise `Well`.
    pub fn with_errors(has_errors: bool) -> Self {
        if has_errors { Self::WithErrors } else { Self::Well }
    }
}
