//! Options that all experiments on caches share.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;

use crate::experiment::value::{count, seconds};
use crate::measure::OWN_LABEL;
use crate::subject::{SubjectSpec, split_list};

/// Options for the subjects, the number of samples, and the place of the results.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Measuring")]
pub struct Measuring {
    /// Caches to measure, as haypile lab subjects lists them, separated by commas; the output shows
    /// the others relative to the first [default: those of the experiment]
    #[arg(long, short, visible_alias = "subjects", value_name = "SUBJECTS", value_parser = SubjectList::from_str)]
    pub subject: Vec<SubjectList>,
    /// File with the question and the options, like those that haypile lab experiments prints;
    /// options on the command line take precedence [default: the experiment's own]
    #[arg(long, value_name = "FILE.toml")]
    pub experiment: Option<PathBuf>,
    /// Use the experiment file's options for a run as brief as is still meaningful
    #[arg(long)]
    pub quick: bool,
    /// Of the caches that the file names, measure only those of this program
    #[arg(long)]
    pub embedded: bool,
    /// Runners of further caches, in addition to this checkout's installed rivals (haypile rivals list)
    #[arg(long, value_name = "PROGRAM")]
    pub rivals: Vec<PathBuf>,
    /// Another build of haypile, which measures its own caches in turn with this one; the results
    /// call it LABEL
    #[arg(long, value_name = "[LABEL=]PROGRAM", value_parser = Build::from_str)]
    pub against: Option<Build>,
    /// Number of blocks: in each block, each subject does each case once, in random order
    #[arg(long, short, value_name = "N", default_value = "5", value_parser = count)]
    pub blocks: u64,
    /// Number of untimed executions before each measurement, on a cache of its own: for languages that
    /// compile while they run
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub warm_up: u64,
    /// Seed of keys, operations and orders
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Directory for the files of caches: /dev/shm, or a directory on the disk to measure; the command
    /// removes them [default: the system's directory for temporary files]
    #[arg(long, short, value_name = "DIRECTORY")]
    pub directory: Option<PathBuf>,
    /// Seconds after which a runner is stopped, for its preparation and again for the rest
    #[arg(long, value_name = "SECONDS", default_value = "600", value_parser = seconds)]
    pub timeout: Duration,
    /// Append each result to this file at once, as a line of JSON
    #[arg(long, short, value_name = "FILE.jsonl")]
    pub out: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

/// Subjects separated by commas.
#[derive(Clone, Debug)]
pub struct SubjectList(pub Vec<SubjectSpec>);

impl FromStr for SubjectList {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        split_list(text).map(Self).map_err(|error| anyhow!(error))
    }
}

/// A build of this program.
#[derive(Clone, Debug)]
pub struct Build {
    /// Name of the program in results.
    pub label: String,
    /// Its path.
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
            bail!("the results call this program '{label}'; choose another label");
        }
        Ok(Self { label: label.to_owned(), program: program.into() })
    }
}
