//! Arguments that all experiments share.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use haypile_lab::result::Asked;
use haypile_lab::subject::{SubjectSpec, split_list};

use crate::args::value::count;

/// Options for the subjects, the number of samples, and the place of the results.
#[derive(Debug, Args)]
#[command(next_help_heading = "Measuring")]
pub(crate) struct Measuring {
    /// Caches to measure, as haypile lab subjects lists them, separated by commas; the output shows
    /// the others relative to the first [default: those of the experiment, or memory]
    #[arg(long, short, visible_alias = "subjects", value_name = "SUBJECTS", value_parser = SubjectList::from_str)]
    pub(crate) subject: Vec<SubjectList>,
    /// File with the question and the options, like those in the folder experiments/; options on the
    /// command line take precedence [default: the experiment's own]
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) experiment: Option<PathBuf>,
    /// Question of that file, whose options have been read
    #[arg(skip)]
    pub(crate) asked: Option<Asked>,
    /// Use the experiment file's options for a run as brief as is still meaningful
    #[arg(long)]
    pub(crate) quick: bool,
    /// Of the caches that the file names, measure only those of this program
    #[arg(long)]
    pub(crate) embedded: bool,
    /// Runners of further caches, in addition to this checkout's installed rivals (haypile rivals list)
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) rivals: Vec<PathBuf>,
    /// Another build of haypile, which measures its own caches in turn with this one; the results
    /// call it LABEL
    #[arg(long, value_name = "[LABEL=]PROGRAM", value_parser = Build::from_str)]
    pub(crate) against: Option<Build>,
    /// Number of blocks: in each block, each subject does each case once, in random order
    #[arg(long, short, value_name = "N", default_value = "5", value_parser = count)]
    pub(crate) blocks: u64,
    /// Seed of keys, operations and orders
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Directory for the files of caches: /dev/shm, or a directory on the disk to measure; the command
    /// removes them [default: the system's directory for temporary files]
    #[arg(long, short, value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,
    /// Seconds after which a runner is stopped, for its preparation and again for the rest
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// Append each result to this file at once, as a line of JSON
    #[arg(long, short, value_name = "FILE.jsonl")]
    pub(crate) out: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Measuring {
    /// Returns the requested subjects, or else the `default` ones of the experiment.
    pub(crate) fn subjects(&self, default: &str) -> Vec<SubjectSpec> {
        if self.subject.is_empty() {
            return split_list(default).expect("the experiments' own lists of subjects parse");
        }
        self.subject.iter().flat_map(|list| list.0.clone()).collect()
    }
}

/// Subjects separated by commas.
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
            bail!("write a program, or a label and a program, as in main=/tmp/main/haypile");
        }
        if label == crate::command::lab::OWN_LABEL {
            bail!("the results call this program '{label}'; choose another label");
        }
        Ok(Self { label: label.to_owned(), program: program.into() })
    }
}

/// Parses a number of seconds, which may have a fraction.
pub(in crate::args) fn seconds(text: &str) -> anyhow::Result<Duration> {
    let seconds = text.parse().ok().context("write a number of seconds, such as 60 or 0.5")?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => bail!("write a time above 0 and up to 10^19 seconds"),
    }
}
