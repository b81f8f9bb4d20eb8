//! The assignment of a runner.

use std::path::Path;

use crate::subject::SubjectSpec;

/// The work of a runner's process: a job, the subject (cache) to do it on, and the number of the
/// process.
#[derive(Clone, Copy, Debug)]
pub struct Assignment<'a> {
    /// The directory that contains the job to do.
    pub directory: &'a Path,
    /// The subject (cache) that the job is done on.
    pub subject: &'a SubjectSpec,
    /// The number of this process among the processes of the job, from 0; `None` in a job of one
    /// process.
    pub process: Option<u32>,
}

impl<'a> Assignment<'a> {
    /// Creates the assignment of a job to a runner that is the job's only process.
    pub fn new(directory: &'a Path, subject: &'a SubjectSpec) -> Self {
        Self { directory, subject, process: None }
    }

    /// Returns the assignment for one of several processes of the job, by its number.
    #[must_use]
    pub fn with_process(self, process: u32) -> Self {
        Self { process: Some(process), ..self }
    }
}
