//! `haypile lab run-job` and `list-subjects`: this program as a runner.

use haypile_lab::runner::{self, Assignment};
use haypile_lab::subject::Subjects;

use crate::args::lab::RunJob;
use crate::output;

/// Executes a job and prints its results.
pub(crate) fn run(arguments: &RunJob) -> anyhow::Result<()> {
    let RunJob { directory, subject, process } = arguments;
    runner::run(&Subjects::ours(), &Assignment { directory, subject, process: *process })?;
    Ok(())
}

/// Lists the subjects of this runner.
pub(crate) fn list() -> anyhow::Result<()> {
    output::text(&runner::list(&Subjects::ours()))?;
    Ok(())
}
