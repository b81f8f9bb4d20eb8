//! `haypile lab`: one file per command.

mod compare;
mod run_job;
mod splice;
mod subjects;

use std::process::ExitCode;

use crate::args::lab::LabCommand;

/// Does what one of the laboratory's commands says.
pub(crate) fn run(command: &LabCommand) -> anyhow::Result<ExitCode> {
    match command {
        LabCommand::Subjects(arguments) => subjects::run(arguments),
        LabCommand::RunJob(arguments) => run_job::run(arguments),
        LabCommand::ListSubjects => run_job::list(),
        LabCommand::Compare(arguments) => return compare::run(arguments),
        LabCommand::Splice(arguments) => return splice::run(arguments),
    }?;
    Ok(ExitCode::SUCCESS)
}
