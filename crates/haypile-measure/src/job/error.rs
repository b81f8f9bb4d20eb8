//! Errors of jobs.

use std::io;
use std::path::PathBuf;

/// The error of a job (a directory of keys, values and operations) that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// A file cannot be written or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The job's schema is later than this program's.
    #[error(
        "{}: the job has format version {schema}, and this runner reads versions up to {known}; \
         use a runner of the same version as the haypile that wrote it", path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The schema of the job.
        schema: u64,
        /// The latest schema that this program knows.
        known: u64,
    },
    /// A file of the job does not match the format.
    #[error("{}: {wrong}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reason.
        wrong: String,
    },
    /// The job has no process of this number.
    #[error(
        "the job has {processes} processes, numbered from 0, and process {process} is not one of \
         them"
    )]
    NoProcess {
        /// The process asked for.
        process: u32,
        /// The number of processes of the job.
        processes: u32,
    },
    /// The job exceeds a limit of the format.
    #[error("a job of the laboratory cannot have {what}; at most {limit} are allowed")]
    TooLarge {
        /// The quantity that is too large, with its number.
        what: String,
        /// The limit.
        limit: u64,
    },
}

impl JobError {
    /// Returns a function that turns an I/O error into a job's error about a file or directory.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    pub(super) fn damaged(path: impl Into<PathBuf>, wrong: impl Into<String>) -> Self {
        Self::Damaged { path: path.into(), wrong: wrong.into() }
    }
}
