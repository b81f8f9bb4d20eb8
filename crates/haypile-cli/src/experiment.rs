//! Experiment files and the command line: the options of a file count as if the user had written
//! them, except those that the user has written.

mod available;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory};
use haypile_lab::experiment::{ExperimentFile, Setting};
use haypile_lab::result::Asked;

use crate::args::Arguments;

/// Command line with the options of its experiment's file.
#[derive(Debug, PartialEq)]
pub(crate) struct Expanded {
    pub(crate) line: Vec<OsString>,
    /// Question of the file; `None` if it is the experiment's own.
    pub(crate) asked: Option<Asked>,
}

impl From<Vec<OsString>> for Expanded {
    /// Wraps a command line to which a file of the user adds nothing.
    fn from(line: Vec<OsString>) -> Self {
        Self { line, asked: None }
    }
}

/// Adds the options of its experiment's file to a command line; those of other commands stay as
/// they are.
pub(crate) fn expand(line: Vec<OsString>) -> anyhow::Result<Expanded> {
    // Errors are reported later, once all options are in the line.
    let matches = Arguments::command().ignore_errors(true).try_get_matches_from(&line);
    let Ok(matches) = matches else { return Ok(line.into()) };
    let Some(("lab", lab)) = matches.subcommand() else { return Ok(line.into()) };
    let Some((name, given)) = lab.subcommand() else { return Ok(line.into()) };
    let Some(built_in) = ExperimentFile::built_in(name) else { return Ok(line.into()) };
    let path = given.try_get_one::<PathBuf>("experiment").ok().flatten();
    let read = path.map(|path| ExperimentFile::read(path)).transpose()?;
    let file = read.as_ref().unwrap_or(built_in);
    let origin =
        path.map_or_else(|| format!("experiments/{name}.toml"), |path| path.display().to_string());
    if file.experiment != name {
        let other = &file.experiment;
        bail!(
            "{origin} is a file of the experiment '{other}'; run: haypile lab {other} --experiment \
             {origin}"
        );
    }
    let command = Arguments::command();
    let command = command.find_subcommand("lab").and_then(|lab| lab.find_subcommand(name));
    let command = command.with_context(|| format!("the experiment '{name}' has no command"))?;
    let more = options(file, command, given, &origin)?;
    // Right after the name of the experiment, because options may stand in any order.
    let at = line.iter().position(|word| word == name).map_or(line.len(), |at| at + 1);
    let (before, after) = line.split_at(at);
    let line = [before, &more, after].concat();
    Ok(Expanded { line, asked: path.map(|path| file.asked(path)) })
}

/// Returns the words that a file adds to the given arguments.
fn options(
    file: &ExperimentFile,
    command: &Command,
    given: &ArgMatches,
    origin: &str,
) -> anyhow::Result<Vec<OsString>> {
    let is_given = |argument: &Arg| {
        given.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let is_set = |name: &str| given.try_get_one::<bool>(name).ok().flatten() == Some(&true);
    let mut words = Vec::new();
    for (name, setting) in file.options(is_set("quick")) {
        let argument = command.get_arguments().find(|argument| is_named(argument, &name));
        let argument = argument.with_context(|| {
            let allowed: Vec<_> = command.get_arguments().filter_map(name_of).collect();
            format!(
                "{origin}: unknown option '{name}' of haypile lab {} (known: {})",
                file.experiment,
                allowed.join(", ")
            )
        })?;
        if is_given(argument) {
            continue;
        }
        let mut values = setting.texts();
        if name == "subject" {
            let programs = given.try_get_many::<PathBuf>("rivals").ok().flatten();
            let programs: Vec<PathBuf> = programs.into_iter().flatten().cloned().collect();
            values = available::only(values, is_set("embedded"), &programs)?;
        }
        if setting == Setting::Flag(false) {
            continue;
        }
        // A list is one word if the option separates its values by commas.
        if argument.get_value_delimiter().is_some() || name == "subject" {
            values = vec![values.join(",")];
        }
        words.extend(values.into_iter().map(|value| match argument.get_long() {
            Some(long) if setting == Setting::Flag(true) => OsString::from(format!("--{long}")),
            Some(long) => format!("--{long}={value}").into(),
            None => value.into(),
        }));
    }
    Ok(words)
}

fn is_named(argument: &Arg, name: &str) -> bool {
    name_of(argument).is_some_and(|own| own == name)
}

/// Returns the name of an argument in files.
fn name_of(argument: &Arg) -> Option<&str> {
    match argument.get_long() {
        Some("help" | "experiment" | "quick") => None,
        Some(long) => Some(long),
        None => argument.is_positional().then(|| argument.get_id().as_str()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn line(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn every_built_in_file_is_a_command_line() {
        for file in ExperimentFile::all() {
            for quick in [&[][..], &["--quick"]] {
                let mut words = vec!["haypile", "lab", &file.experiment];
                // Otherwise the result depends on which of the file's own are installed.
                if file.experiment != "torture" {
                    words.extend(["--subjects", "memory,none"]);
                }
                words.extend(quick);
                let expanded = expand(line(&words)).unwrap();
                assert_eq!(expanded.asked, None);
                let parsed = Arguments::try_parse_from(&expanded.line);
                assert!(parsed.is_ok(), "{expanded:?}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn other_commands_stay_as_they_are() {
        for words in [&["haypile"][..], &["haypile", "lab", "subjects"], &["haypile", "lab", "rat"]]
        {
            assert_eq!(expand(line(words)).unwrap(), line(words).into());
        }
    }

    #[test]
    fn lists_have_the_form_that_their_option_takes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("mine.toml");
        let head = "experiment = 'replay'\nquestion = 'q?'\nsource = 's'\nmethod = 'm'\n";
        let options = "[options]\ntraces = ['a.csv', 'b.csv']\ncapacity = [1, 2]\njson = true\n";
        std::fs::write(&path, format!("{head}{options}")).unwrap();
        let path = path.to_str().unwrap();
        let given = line(&["haypile", "lab", "replay", "--experiment", path]);
        let expected = line(&[
            "haypile",
            "lab",
            "replay",
            "--capacity=1,2",
            "--json",
            "a.csv",
            "b.csv",
            "--experiment",
            path,
        ]);
        let asked = ["mine.toml", "q?", "s", "m"].map(str::to_owned);
        let [file, question, source, method] = asked;
        let asked = Some(Asked { file, question, source, method });
        assert_eq!(expand(given).unwrap(), Expanded { line: expected, asked });
    }
}
