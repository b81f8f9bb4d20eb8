//! The assignment of a runner.

use std::path::Path;

use crate::subject::SubjectSpec;

/// A job, the subject that does it, and the part of this process.
#[derive(Clone, Copy, Debug)]
pub struct Assignment<'a> {
    /// The directory of the job.
    pub directory: &'a Path,
    /// The subject (cache) that the job is done on.
    pub subject: &'a SubjectSpec,
    /// The number of this process among those of the job, from 0; `None` in a job of one process.
    pub process: Option<u32>,
}

impl<'a> Assignment<'a> {
    /// Returns the assignment of a job for one process.
    pub fn new(directory: &'a Path, subject: &'a SubjectSpec) -> Self {
        Self { directory, subject, process: None }
    }

    /// Returns the assignment for one of several processes, by its number.
    #[must_use]
    pub fn with_process(self, process: u32) -> Self {
        Self { process: Some(process), ..self }
    }
}
