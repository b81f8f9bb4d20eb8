//! Errors of results files.

use std::io;
use std::path::PathBuf;

/// The error of a file of benchmark results that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// The file cannot be written or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// A line is not a row.
    #[error("{}: line {line} is not a row of results: {source}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        /// The reason.
        source: serde_json::Error,
    },
    /// A line is too long to be a row.
    #[error("{}: line {line} has more than {limit_bytes} bytes and is not a row of results", path.display())]
    LongLine {
        /// The number of the line, from 1.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The length of the longest line that is read, in bytes.
        limit_bytes: u64,
    },
    /// A row has a later version.
    #[error(
        "{}: line {line} has schema {schema}, and this program knows {known}; take the version \
         of haypile that wrote it, or a later one", path.display()
    )]
    Newer {
        /// The number of the line, from 1.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The schema of the row.
        schema: u64,
        /// The latest schema that this program knows.
        known: u64,
    },
}
