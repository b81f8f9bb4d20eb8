//! The experiments as commands of `haypile lab`, and one as `haypile bench`: their list gives each its arguments.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};
use haypile_lab::experiment::Known;

/// An experiment of the laboratory, with the arguments that the user wrote on the command line.
#[derive(Debug)]
pub(crate) struct ExperimentCommand {
    pub(crate) experiment: Known,
    pub(crate) line: ArgMatches,
}

/// The experiment `bench`, which is a command of the program as well: `haypile bench`.
#[derive(Debug)]
pub(crate) struct Bench(pub(crate) ExperimentCommand);

/// Its name.
const BENCH: &str = "bench";

impl Bench {
    fn experiment() -> Known {
        Known::named(BENCH).expect("the experiment is in the list")
    }
}

impl Args for Bench {
    fn augment_args(command: Command) -> Command {
        Self::experiment().arguments(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Bench {
    fn from_arg_matches(line: &ArgMatches) -> Result<Self, Error> {
        Ok(Self(ExperimentCommand { experiment: Self::experiment(), line: line.clone() }))
    }

    fn update_from_arg_matches(&mut self, line: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(line)?;
        Ok(())
    }
}

impl Subcommand for ExperimentCommand {
    fn augment_subcommands(command: Command) -> Command {
        // What has a command of its own is not listed a second time.
        let is_hidden = |known: &Known| known.name() == BENCH;
        command.subcommands(Known::all().map(|known| known.command().hide(is_hidden(&known))))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Known::named(name).is_some()
    }
}

impl FromArgMatches for ExperimentCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let named = matches.subcommand().and_then(|(name, line)| Some((Known::named(name)?, line)));
        let (experiment, line) =
            named.ok_or_else(|| Error::new(clap::error::ErrorKind::MissingSubcommand))?;
        Ok(Self { experiment, line: line.clone() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
