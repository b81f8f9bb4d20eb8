//! What all experiments are told alike.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use haypile_lab::result::Asked;
use haypile_lab::subject::{SubjectSpec, split_list};

use crate::args::value::count;

/// Whom to measure, how often, and where the results go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Measuring")]
pub(crate) struct Measuring {
    /// The caches to measure, as haypile lab subjects lists them, separated by commas; the others
    /// are shown relative to the first [default: memory, or what the experiment is about]
    #[arg(long, short, visible_alias = "subjects", value_name = "SUBJECTS", value_parser = SubjectList::from_str)]
    pub(crate) subject: Vec<SubjectList>,
    /// A file that says what is asked and with which options, in the form of those in the folder
    /// experiments/; what is written here comes before it [default: the experiment's own]
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) experiment: Option<PathBuf>,
    /// What that file asks; it has been read for its options
    #[arg(skip)]
    pub(crate) asked: Option<Asked>,
    /// As quick as it can be while it says something: what the experiment's file has for that
    #[arg(long)]
    pub(crate) quick: bool,
    /// Of what the file names, only the caches of this program
    #[arg(long)]
    pub(crate) embedded: bool,
    /// Programs that run further caches; those of this checkout that are installed are known (haypile
    /// rivals list)
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) rivals: Vec<PathBuf>,
    /// Another build of haypile, which measures its own caches in turns with this one; results
    /// call it LABEL
    #[arg(long, value_name = "[LABEL=]PROGRAM", value_parser = Build::from_str)]
    pub(crate) against: Option<Build>,
    /// How many times each subject does each case; in each block all come once, in random order
    #[arg(long, short, value_name = "N", default_value = "5", value_parser = count)]
    pub(crate) blocks: u64,
    /// What keys, operations and orders are drawn from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Where caches that keep files have them: /dev/shm, or a directory on the disk that is to be
    /// measured; nothing is left there [default: the system's for temporary files]
    #[arg(long, short, value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,
    /// Seconds after which a runner is given up, for its preparation and for the rest
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// Append each result to this file as soon as it is there, one line of JSON each
    #[arg(long, short, value_name = "FILE.jsonl")]
    pub(crate) out: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Measuring {
    /// The subjects that were asked for, or else those that the experiment is about.
    pub(crate) fn subjects(&self, default: &str) -> Vec<SubjectSpec> {
        if self.subject.is_empty() {
            return split_list(default).expect("experiments name subjects");
        }
        self.subject.iter().flat_map(|list| list.0.clone()).collect()
    }
}

/// Subjects that were written between commas.
#[derive(Clone, Debug)]
pub(crate) struct SubjectList(pub(crate) Vec<SubjectSpec>);

impl FromStr for SubjectList {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        split_list(text).map(Self).map_err(|error| anyhow!(error))
    }
}

/// A build of this program.
#[derive(Clone, Debug)]
pub(crate) struct Build {
    pub(crate) label: String,
    pub(crate) program: PathBuf,
}

impl FromStr for Build {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (label, program) = match text.split_once('=') {
            Some((label, program)) if !label.contains('/') => (label, program),
            _ => ("against", text),
        };
        if label.is_empty() || program.is_empty() {
            bail!("write a program, or a label and a program as in main=/tmp/main/haypile");
        }
        if label == crate::command::lab::OWN_LABEL {
            bail!("results call this program {label}; choose another label");
        }
        Ok(Self { label: label.to_owned(), program: program.into() })
    }
}

/// Seconds, with a fraction or without.
pub(in crate::args) fn seconds(text: &str) -> anyhow::Result<Duration> {
    let seconds = text.parse().ok().context("write a number of seconds, such as 60 or 0.5")?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => bail!("a time is above 0 and at most 10^19 seconds"),
    }
}
