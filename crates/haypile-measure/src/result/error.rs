//! Errors of results files.

use std::io;
use std::path::PathBuf;

/// Results that cannot be written or read.
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
        /// The line, from 1.
        line: u64,
        /// The reason.
        source: serde_json::Error,
    },
    /// A line is too long to be a row.
    #[error("{}: line {line} has more than {limit_bytes} bytes and is not a row of results", path.display())]
    LongLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The longest line that is read.
        limit_bytes: u64,
    },
    /// A row of a later version.
    #[error(
        "{}: line {line} has schema {schema}, and this program knows {known}; take the version \
         of haypile that wrote it, or a later one", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The schema that it has.
        schema: u64,
        /// The latest schema that is known here.
        known: u64,
    },
}
