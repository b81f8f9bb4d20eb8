//! What a subject cannot do.

use std::error::Error as StdError;

/// What a cache or its client library said.
pub type Cause = Box<dyn StdError + Send + Sync>;

/// A subject that cannot be opened, or not used as a job needs it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubjectError {
    /// No subject of this runner has the name.
    #[error("there is no subject '{name}' here; there are {allowed}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names that this runner has.
        allowed: String,
    },
    /// The name is right, and what follows it is not.
    #[error("the subject '{subject}' is wrong: {wrong}")]
    Spec {
        /// What was asked for.
        subject: String,
        /// What is wrong, and what is allowed.
        wrong: String,
    },
    /// The cache could not be opened.
    #[error("the subject '{subject}' cannot be opened: {source}")]
    Open {
        /// What was asked for.
        subject: String,
        /// Why not.
        source: Cause,
    },
    /// The cache could not be cleared.
    #[error("the cache could not be cleared: {0}")]
    Clear(#[source] Cause),
    /// The cache was lost while it was used.
    #[error("the cache was lost: {0}")]
    Lost(#[source] Cause),
    /// What the cache holds could not be written to disk.
    #[error("the cache could not be written to disk: {0}")]
    Flush(#[source] Cause),
    /// The cache is one process's own.
    #[error(
        "{subject} cannot be shared by processes, and the job has {processes}; ask for \
         --processes 1"
    )]
    Processes {
        /// The subject.
        subject: String,
        /// How many processes the job has.
        processes: u32,
    },
    /// The cache cannot be used by several threads at once.
    #[error(
        "{subject} can be used by {limit} threads at most, not by {threads}; ask for --threads {limit}"
    )]
    Threads {
        /// The subject.
        subject: String,
        /// How many threads it allows.
        limit: usize,
        /// How many the job has.
        threads: usize,
    },
}

impl SubjectError {
    /// For `map_err`: this subject could not be opened because of what the cache said.
    pub fn open<E: Into<Cause>>(subject: impl ToString) -> impl FnOnce(E) -> Self {
        move |source| Self::Open { subject: subject.to_string(), source: source.into() }
    }
}
