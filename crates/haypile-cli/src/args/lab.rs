//! The arguments of `haypile lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use haypile_lab::subject::SubjectSpec;

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the caches that can be measured
    Subjects(Subjects),
    /// Do a job, as the runner of this program's own caches
    #[command(hide = true)]
    RunJob(RunJob),
    /// List the subjects of this runner for programs
    #[command(hide = true)]
    ListSubjects,
}

#[derive(Debug, Args)]
pub(crate) struct Subjects {
    /// Programs that run further caches
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) rivals: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunJob {
    /// The directory of the job
    pub(crate) directory: PathBuf,
    /// The subject
    pub(crate) subject: SubjectSpec,
}
