//! The assignment of a runner.

use std::path::Path;

use crate::subject::SubjectSpec;

/// A job, who does it, and which part of it is this process's.
#[derive(Clone, Copy, Debug)]
pub struct Assignment<'a> {
    /// The directory of the job.
    pub directory: &'a Path,
    /// The subject.
    pub subject: &'a SubjectSpec,
    /// The number of this process among those of the job, from 0; `None` where nobody said it,
    /// which is right for a job of one process.
    pub process: Option<u32>,
}

impl<'a> Assignment<'a> {
    /// A job of one process.
    pub fn new(directory: &'a Path, subject: &'a SubjectSpec) -> Self {
        Self { directory, subject, process: None }
    }

    /// The same for one of several processes.
    #[must_use]
    pub fn with_process(self, process: u32) -> Self {
        Self { process: Some(process), ..self }
    }
}
