//! `haypile lab`: its commands, one file each.

mod all;
mod child;
mod compare;
pub(crate) mod experiment;
mod experiments;
mod first;
mod report;
mod run_job;
mod splice;
mod subjects;

use std::process::ExitCode;

use crate::args::lab::LabCommand;

/// Executes one of the commands below `haypile lab`.
pub(crate) fn run(command: &LabCommand) -> anyhow::Result<ExitCode> {
    match command {
        LabCommand::Experiments(arguments) => experiments::run(arguments),
        LabCommand::Subjects(arguments) => subjects::run(arguments),
        LabCommand::RunJob(arguments) => run_job::run(arguments),
        LabCommand::RunPages => run_job::pages(),
        LabCommand::RunIcons => run_job::icons(),
        LabCommand::RunStart => run_job::start(),
        LabCommand::RunTrace(arguments) => return run_job::trace(arguments),
        LabCommand::RunTorture(arguments) => run_job::torture(arguments),
        LabCommand::ListSubjects => run_job::list(),
        LabCommand::Report(arguments) => report::run(arguments),
        LabCommand::Experiment(arguments) => return experiment::run(arguments),
        LabCommand::All(arguments) => return all::run(arguments),
        LabCommand::First(arguments) => return first::run(arguments),
        LabCommand::Compare(arguments) => return compare::run(arguments),
        LabCommand::Splice(arguments) => return splice::run(arguments),
    }?;
    Ok(ExitCode::SUCCESS)
}
