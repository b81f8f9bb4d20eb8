//! `haypile lab`: one file per command.

mod run_job;
mod subjects;

use crate::args::lab::LabCommand;

/// Does what one of the laboratory's commands says.
pub(crate) fn run(command: &LabCommand) -> anyhow::Result<()> {
    match command {
        LabCommand::Subjects(arguments) => subjects::run(arguments),
        LabCommand::RunJob(arguments) => run_job::run(arguments),
        LabCommand::ListSubjects => run_job::list(),
    }
}
