//! The experiments as commands of `haypile lab`: their list gives each its arguments.

use clap::{ArgMatches, Command, Error, FromArgMatches, Subcommand};
use haypile_lab::experiment::Known;

/// An experiment with the arguments that the user wrote.
#[derive(Debug)]
pub(crate) struct ExperimentCommand {
    pub(crate) experiment: Known,
    pub(crate) line: ArgMatches,
}

impl Subcommand for ExperimentCommand {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(Known::all().map(Known::command))
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
