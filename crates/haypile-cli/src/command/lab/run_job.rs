//! `haypile lab run-job`, `run-pages`, `run-icons`, `run-start`, `run-trace`, `run-torture` and `list-subjects`: this program as a runner.

use std::io;
use std::process::ExitCode;

use haypile_lab::experiment;
use haypile_measure::runner::{self, Assignment};
use haypile_measure::torture::role;
use haypile_pages as pages;
use haypile_startup as startup;
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::args::lab::{RunJob, RunTorture, RunTrace};
use crate::output;

/// Executes a laboratory job (operations on a cache) and prints its results.
pub(crate) fn run(arguments: &RunJob) -> anyhow::Result<()> {
    let RunJob { directory, subject, process } = arguments;
    runner::run(&haypile_lab::subjects(), &Assignment { directory, subject, process: *process })?;
    Ok(())
}

/// Loads web pages in this process, as the orders of the laboratory on standard input request.
pub(crate) fn pages() -> anyhow::Result<()> {
    // The end of standard input is read after a load, which may take minutes.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    pages::serve(&mut io::stdin().lock(), &mut io::stdout().lock())
}

/// Loads icons in this process, as the orders of the laboratory on standard input request.
pub(crate) fn icons() -> anyhow::Result<()> {
    experiment::icons::serve(&mut io::stdin().lock(), &mut io::stdout().lock())
}

/// Starts a command and measures its start, as the orders of the laboratory on standard input
/// request.
pub(crate) fn start() -> anyhow::Result<()> {
    startup::serve()
}

/// Runs a command, and writes a trace of its system calls to a file.
pub(crate) fn trace(arguments: &RunTrace) -> anyhow::Result<ExitCode> {
    let status = startup::serve_trace(&arguments.file, &arguments.command)?;
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX)))
}

/// Runs a process of the experiment `torture` in the role that its orders name.
pub(crate) fn torture(arguments: &RunTorture) -> anyhow::Result<()> {
    let orders = role::Orders::parse(&arguments.orders)?;
    role::run(&orders, &role::open_ours)?;
    Ok(())
}

/// Prints the list of the caches that this program can measure.
pub(crate) fn list() -> anyhow::Result<()> {
    output::text(&runner::list(&haypile_lab::subjects()))?;
    Ok(())
}
