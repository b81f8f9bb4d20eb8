//! Why a runner did not do its job.

use std::io;
use std::path::PathBuf;

use crate::job::JobError;
use crate::subject::SubjectError;
use crate::torture::role::OrdersError;

/// The error of a runner that could not do its job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunnerError {
    /// The arguments make no sense.
    #[error(
        "a runner is started as PROGRAM run-job DIRECTORY SUBJECT [--process NUMBER], PROGRAM \
         run-torture ORDERS, or PROGRAM list-subjects"
    )]
    Usage,
    /// The orders for a torture make no sense.
    #[error(transparent)]
    Orders(OrdersError),
    /// It was not said which part of a job is this process's.
    #[error(
        "{processes} processes share this job; name the number of this one, from 0, by --process \
         NUMBER"
    )]
    WhichProcess {
        /// The number of processes.
        processes: u32,
    },
    /// The job cannot be read.
    #[error(transparent)]
    Job(#[from] JobError),
    /// There is no place for the warm-up.
    #[error("the folder {} for the warm-up cannot be made or entered: {source}", path.display())]
    WarmUp {
        /// The folder.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The process that is killed when it has prepared the cache cannot be started or heard.
    #[error(
        "the process that fills the cache and is then killed could not be started, read or killed: \
         {0}"
    )]
    Prepared(#[source] io::Error),
    /// That process did not prepare the cache.
    #[error("the process that fills the cache and is then killed did not fill it: {0}")]
    NotPrepared(String),
    /// The subject cannot do it.
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// Whoever started the runner did not say what was due.
    #[error("the runner expected the line '{due}' on its standard input and got {got}")]
    NotDue {
        /// The line that was due.
        due: &'static str,
        /// The line that came instead.
        got: String,
    },
    /// Whoever started the runner cannot be spoken to.
    #[error("the runner cannot read from or write to the program that started it: {0}")]
    Parent(#[source] io::Error),
}
