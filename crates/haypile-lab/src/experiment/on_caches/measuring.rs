//! Options that all experiments on caches share.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{anyhow, bail};
use clap::Args;
use haypile_measure::measure::OWN_LABEL;
use haypile_measure::subject::{SubjectSpec, split_list};

use crate::experiment::session::RunOptions;
use crate::experiment::value::count;

/// Command-line options for the caches to measure and the number of samples.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Measuring")]
#[command(mut_arg("timeout", |arg| arg.default_value("600").help(
    "Seconds after which a runner is stopped, for its preparation and again for the rest"
)))]
pub struct Measuring {
    /// Caches to measure, separated by commas; haypile lab subjects lists them; tables show the
    /// others relative to the first [default: those of the experiment]
    #[arg(long, short, visible_alias = "subjects", value_name = "SUBJECTS", value_parser = SubjectList::from_str)]
    pub subject: Vec<SubjectList>,
    /// Of the caches that the experiment file names, measure only those of this program
    #[arg(long)]
    pub embedded: bool,
    /// Programs (runners) that measure further caches, in addition to the installed rivals of this
    /// checkout (see haypile rivals list)
    #[arg(long, value_name = "PROGRAM")]
    pub rivals: Vec<PathBuf>,
    /// Another build of haypile, whose caches are measured in turn with those of this one; results
    /// call it LABEL
    #[arg(long, value_name = "[LABEL=]PROGRAM", value_parser = Build::from_str)]
    pub against: Option<Build>,
    /// Also measure the caches of Firefox (necko) with another value of this preference, in turn
    /// with the default; results call the program NAME=VALUE
    #[arg(long, value_name = "NAME=VALUE", value_parser = preference)]
    pub necko_pref: Vec<String>,
    /// Number of blocks: each block measures each case on each cache once, in random order
    #[arg(long, short, value_name = "N", default_value = "5", value_parser = count)]
    pub blocks: u64,
    /// Number of untimed executions before each measurement, on a separate cache: for languages
    /// that compile at run time
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub warm_up: u64,
    /// Options that all experiments share.
    #[command(flatten)]
    pub run: RunOptions,
}

/// Checks the form of a browser's preference; the browser knows which ones there are.
fn preference(text: &str) -> anyhow::Result<String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text.to_owned()),
        _ => bail!(
            "write a preference and its value, as in browser.cache.disk.preload_chunk_count=0"
        ),
    }
}

/// A list of caches to measure (subjects), separated by commas.
#[derive(Clone, Debug)]
pub struct SubjectList(pub Vec<SubjectSpec>);

impl FromStr for SubjectList {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        split_list(text).map(Self).map_err(|error| anyhow!(error))
    }
}

/// Another build of this program, whose caches are compared with those of this build.
#[derive(Clone, Debug)]
pub struct Build {
    /// Name of the other build in results.
    pub label: String,
    /// Path of the other build's executable.
    pub program: PathBuf,
}

impl FromStr for Build {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (label, program) = match text.split_once('=') {
            Some((label, program)) if !label.contains('/') => (label, program),
            _ => ("against", text),
        };
        if label.is_empty() || program.is_empty() {
            bail!("write a program, or a label and a program, as in main=/tmp/main/haypile");
        }
        if label == OWN_LABEL {
            bail!("'{label}' is the name of this program in the results; choose another label");
        }
        Ok(Self { label: label.to_owned(), program: program.into() })
    }
}
