//! `haypile rivals`: its commands, one file each.

mod check;
mod install;
mod list;

use std::process::ExitCode;

use haypile_lab::experiment::on_caches::LIST_LIMIT;
use haypile_measure::rival::{Rival, State};

use crate::args::rivals::RivalsCommand;
use crate::output::progress::Progress;

/// Executes one of the commands below `haypile rivals`.
pub(crate) fn run(command: &RivalsCommand) -> anyhow::Result<ExitCode> {
    match command {
        RivalsCommand::List(arguments) => {
            list::run(arguments)?;
            Ok(ExitCode::SUCCESS)
        }
        RivalsCommand::Install(arguments) => install::run(arguments),
        RivalsCommand::Check(arguments) => check::run(arguments),
    }
}

/// Returns the state of each rival; after `is_ended`, only of those that have been asked.
fn states<'a>(rivals: &[&'a Rival], is_ended: impl Fn() -> bool) -> Vec<(&'a Rival, State)> {
    let progress = Progress::towards(rivals.len() as u64, "asking rivals".to_owned());
    let state = |rival: &&'a Rival| {
        let state = rival.state(LIST_LIMIT);
        progress.advance(1);
        (*rival, state)
    };
    let states = rivals.iter().take_while(|_| !is_ended()).map(state).collect();
    progress.finish();
    states
}

/// Returns why a rival does not run, and how to install it.
fn advice(rival: &Rival, why: &str) -> String {
    format!("{}: {why}; run: {}", rival.name(), rival.how_to_get())
}
