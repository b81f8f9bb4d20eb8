//! The child's side: does one job on one subject, in this process.
//!
//! A program becomes a runner by one call of [`main`]. It is started as
//!
//! - `PROGRAM list-subjects`, and prints a line for each of its subjects: name, usage, language,
//!   version and what it is, with tabs between them;
//! - `PROGRAM run-job DIRECTORY SUBJECT`, and speaks the protocol of `docs/job.md` on its standard
//!   input and output.

use std::path::Path;
use std::process::ExitCode;

use crate::subject::{SubjectSpec, Subjects};

/// The whole program of a runner: reads its arguments and does what they say. Its exit status is 0
/// if the job was done, else 2; why not is said on standard error.
pub fn main(subjects: &Subjects) -> ExitCode {
    let _ = subjects;
    todo!()
}

/// Does a job and speaks the protocol on standard input and output.
///
/// # Errors
///
/// What is wrong with the job, with the subject, or with whoever started this.
pub fn run(subjects: &Subjects, directory: &Path, subject: &SubjectSpec) -> std::io::Result<()> {
    let _ = (subjects, directory, subject);
    todo!()
}

/// The subjects that are not hidden, one per line, as `list-subjects` prints them.
pub fn list(subjects: &Subjects) -> String {
    let shown = subjects.kinds().filter(|kind| !kind.hidden);
    let line = |kind: &crate::subject::Kind| {
        [kind.name, kind.usage, kind.language, kind.version, kind.help].join("\t") + "\n"
    };
    shown.map(line).collect()
}
