//! Options of an experiment, filled from its file first, then from the command line.
//!
//! Both are parsed once, by the same parsers; what the user writes on the command line takes
//! precedence over the file, and the file over the defaults of the options.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command};
use haypile_measure::result::Asked;

use super::{Experiment, ExperimentFile, Setting};

/// The arguments of an experiment's run, from its experiment file and the command line.
pub(crate) struct Filled {
    /// Values of the experiment file, and defaults.
    file: ArgMatches,
    /// Values that the user wrote, without defaults.
    line: ArgMatches,
    /// Question, source and method of a user's experiment file; `None` if the run uses the
    /// experiment's built-in file.
    pub(crate) asked: Option<Asked>,
}

impl Filled {
    /// Reads the arguments of a run from the command line, and from the experiment file that it
    /// names, or else from the built-in one.
    pub(crate) fn new(experiment: &dyn Experiment, line: &ArgMatches) -> anyhow::Result<Self> {
        let name = experiment.name();
        let path = line.try_get_one::<PathBuf>("experiment").ok().flatten();
        let read = path.map(|path| ExperimentFile::read(path)).transpose()?;
        let built_in = ExperimentFile::built_in(name);
        let file = read.as_ref().or(built_in).context("the experiment has no file")?;
        let origin = path.map_or_else(|| format!("{name}.toml"), |path| path.display().to_string());
        let filled = Self::from_file(experiment, file, &origin, line)?;
        Ok(Self { asked: path.map(|path| file.asked(path)), ..filled })
    }

    /// Reads the arguments of a run from this experiment file and the command line; `origin` is the
    /// file's name in errors.
    pub(crate) fn from_file(
        experiment: &dyn Experiment,
        file: &ExperimentFile,
        origin: &str,
        line: &ArgMatches,
    ) -> anyhow::Result<Self> {
        let name = experiment.name();
        if file.experiment != name {
            let other = &file.experiment;
            bail!(
                "{origin} describes the experiment '{other}'; run: haypile lab {other} \
                 --experiment {origin}"
            );
        }
        let command = experiment.arguments(Command::new(name)).no_binary_name(true);
        let is_quick = line.try_get_one::<bool>("quick").ok().flatten() == Some(&true);
        let words = words(file, &command, is_quick, origin)?;
        let matches = command.try_get_matches_from(words);
        let matches = matches.map_err(|error| anyhow!("{origin}: {}", first_sentence(&error)))?;
        Ok(Self { file: matches, line: written(line), asked: None })
    }

    /// Returns the arguments of the run, parsed into the option type of the experiment.
    pub(crate) fn get<O: Args>(&self) -> anyhow::Result<O> {
        let mut options = O::from_arg_matches(&self.file)?;
        options.update_from_arg_matches(&self.line)?;
        Ok(options)
    }

    /// Whether the user wrote this argument on the command line.
    pub(crate) fn is_written(&self, argument: &str) -> bool {
        self.line.try_contains_id(argument).unwrap_or(false)
    }
}

/// Returns the values that a user wrote, without the defaults.
fn written(line: &ArgMatches) -> ArgMatches {
    let mut line = line.clone();
    let ids: Vec<String> = line.ids().map(|id| id.as_str().to_owned()).collect();
    for id in ids {
        if line.value_source(&id) != Some(ValueSource::CommandLine) {
            // An argument that is not there is cleared already.
            let _ = line.try_clear_id(&id);
        }
    }
    line
}

/// Returns the options of a file as words of a command line.
fn words(
    file: &ExperimentFile,
    command: &Command,
    is_quick: bool,
    origin: &str,
) -> anyhow::Result<Vec<OsString>> {
    let mut words = Vec::new();
    let mut last: Vec<OsString> = Vec::new();
    for (name, setting) in file.options(is_quick) {
        let argument = command.get_arguments().find(|argument| name_of(argument) == Some(&name));
        let argument = argument.with_context(|| {
            let allowed: Vec<_> = command.get_arguments().filter_map(name_of).collect();
            format!(
                "{origin}: unknown option '{name}' of haypile lab {} (known: {})",
                file.experiment,
                allowed.join(", ")
            )
        })?;
        if setting == Setting::Flag(false) {
            continue;
        }
        let mut values = setting.texts();
        // A list is one word if the option separates its values by commas.
        if argument.get_value_delimiter().is_some() || name == "subject" {
            values = vec![values.join(",")];
        }
        // A command with arguments of its own comes at the end.
        if argument.is_last_set() {
            last.push("--".into());
            last.extend(values.into_iter().map(OsString::from));
            continue;
        }
        words.extend(values.into_iter().map(|value| match argument.get_long() {
            Some(long) if setting == Setting::Flag(true) => OsString::from(format!("--{long}")),
            Some(long) => format!("--{long}={value}").into(),
            None => value.into(),
        }));
    }
    words.extend(last);
    Ok(words)
}

/// Returns the name of an argument in files; `None` if files cannot set it.
fn name_of(argument: &Arg) -> Option<&str> {
    match argument.get_long() {
        Some("help" | "experiment" | "quick") => None,
        Some(long) => Some(long),
        None => argument.is_positional().then(|| argument.get_id().as_str()),
    }
}

/// Returns what is wrong, without the usage of the command.
fn first_sentence(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}

#[cfg(test)]
mod tests;
