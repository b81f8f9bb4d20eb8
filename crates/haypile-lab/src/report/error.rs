//! Errors of reports.

use std::io;
use std::path::PathBuf;

use haypile_plot::PlotError;

use haypile_measure::compare::CompareError;
use haypile_measure::result::ResultsError;

/// The error of result files of which a report cannot be made, such as one that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A directory of rows cannot be read.
    #[error(transparent)]
    Directory(#[from] CompareError),
    /// Rows cannot be read.
    #[error(transparent)]
    Rows(#[from] ResultsError),
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// A file of JSON is not what `simulate` writes.
    #[error(
        "{} is not an output of haypile simulate --json ({reason}); files with rows of \
         measurements have names that end in .jsonl",
        path.display()
    )]
    Simulation {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A file is larger than the reader of results accepts.
    #[error(
        "{} has {bytes} bytes, more than the {most} that a report reads of a file; put each \
         experiment into a separate file",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The size of the file.
        bytes: u64,
        /// The largest size allowed.
        most: u64,
    },
    /// The paths contain no results.
    #[error(
        "there are no results in {paths}; haypile lab micro --out FILE.jsonl makes rows, and \
         haypile simulate TRACE --json prints a simulation"
    )]
    Nothing {
        /// The paths searched.
        paths: String,
    },
    /// A chart cannot be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
}
