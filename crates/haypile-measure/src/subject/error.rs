//! Errors of subjects.

use std::error::Error as StdError;

use haypile::url::CacheUrl;

/// The cause of an error of a cache under test: the error of the cache or of its client library.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// The error of a subject (cache under test) that cannot be opened, or cannot do what a job needs.
/// Messages name subjects without passwords.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubjectError {
    /// No subject of this runner has the name.
    #[error("unknown subject '{name}' (known: {allowed})")]
    Unknown {
        /// The name given.
        name: String,
        /// The names that this runner has.
        allowed: String,
    },
    /// The name is known, and the options after it are wrong.
    #[error("the subject '{subject}' is invalid: {wrong}")]
    Spec {
        /// The subject given.
        subject: String,
        /// The error, and the allowed range.
        wrong: String,
    },
    /// The cache could not be opened.
    #[error("the subject '{subject}' cannot be opened: {source}")]
    Open {
        /// The subject given.
        subject: String,
        /// The reason.
        source: Cause,
    },
    /// The cache could not be cleared.
    #[error("the measured cache could not be cleared: {0}")]
    Clear(#[source] Cause),
    /// The cache was lost while it was used.
    #[error("the measured cache failed, and can no longer be used: {0}")]
    Lost(#[source] Cause),
    /// The cache's files could not be dropped from the system's memory.
    #[error("the files of the measured cache cannot be dropped from the system's page cache: {0}")]
    Cool(#[source] Cause),
    /// Writing the cache's contents to disk failed.
    #[error("the contents of the measured cache could not be written to disk: {0}")]
    Flush(#[source] Cause),
    /// The cache is one process's own.
    #[error(
        "{subject} cannot be shared by processes, and the job has {processes}; ask for \
         --processes 1"
    )]
    Processes {
        /// The subject.
        subject: String,
        /// The number of processes of the job.
        processes: u32,
    },
    /// The cache cannot be used by several threads at once.
    #[error(
        "{subject} can be used by {limit} threads at most, not by {threads}; ask for --threads \
         {limit}"
    )]
    Threads {
        /// The subject.
        subject: String,
        /// The number of threads that it allows.
        limit: usize,
        /// The number of threads of the job.
        threads: usize,
    },
}

impl SubjectError {
    /// Returns a function for `map_err` that turns a cache's error into a subject's error: the
    /// subject could not be opened.
    pub fn open<E: Into<Cause>>(subject: impl ToString) -> impl FnOnce(E) -> Self {
        move |source| Self::Open {
            subject: CacheUrl::redacted_text(&subject.to_string()),
            source: source.into(),
        }
    }
}
