//! `haypile lab`: its commands, one file each.

mod all;
mod compare;
mod crossover;
pub(crate) mod measuring;
mod micro;
mod necko;
mod persist;
mod ratio;
mod replay;
mod report;
mod run_job;
mod search;
mod splice;
mod stampede;
mod subjects;
mod torture;
mod workload;

use std::process::ExitCode;

use crate::args::lab::LabCommand;

/// Name of this program in results.
pub(crate) const OWN_LABEL: &str = "haypile";

/// Runs one of the laboratory's commands.
pub(crate) fn run(command: &LabCommand) -> anyhow::Result<ExitCode> {
    match command {
        LabCommand::Subjects(arguments) => subjects::run(arguments),
        LabCommand::RunJob(arguments) => run_job::run(arguments),
        LabCommand::RunTorture(arguments) => torture::role(arguments),
        LabCommand::ListSubjects => run_job::list(),
        LabCommand::Report(arguments) => report::run(arguments),
        LabCommand::Micro(arguments) => return micro::run(arguments),
        LabCommand::All(arguments) => return all::run(arguments),
        LabCommand::Ratio(arguments) => return ratio::run(arguments),
        LabCommand::Loop(arguments) => return necko::run_loop(arguments),
        LabCommand::Sequence(arguments) => return necko::run_sequence(arguments),
        LabCommand::Search(arguments) => return search::run(arguments),
        LabCommand::Crossover(arguments) => return crossover::run(arguments),
        LabCommand::Stampede(arguments) => return stampede::run(arguments),
        LabCommand::Workload(arguments) => return workload::run(arguments),
        LabCommand::Persist(arguments) => return persist::run(arguments),
        LabCommand::Replay(arguments) => return replay::run(arguments),
        LabCommand::Torture(arguments) => return torture::run(arguments),
        LabCommand::Compare(arguments) => return compare::run(arguments),
        LabCommand::Splice(arguments) => return splice::run(arguments),
    }?;
    Ok(ExitCode::SUCCESS)
}
