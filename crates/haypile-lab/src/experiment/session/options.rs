//! Options of a run.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tempfile::TempDir;

use crate::experiment::value::seconds;

/// Command-line options that all experiments share. An experiment changes a default or a help text
/// by `mut_arg`.
// Their help is that of the experiment's command, so that they have no text of their own there.
#[derive(Clone, Debug, Args)]
#[command(about = None, long_about = None)]
pub struct RunOptions {
    /// Experiment file: a question with its options, in the form that haypile lab experiments
    /// prints; options on the command line take precedence [default: the experiment's own]
    #[arg(long, value_name = "FILE.toml")]
    pub experiment: Option<PathBuf>,
    /// Make the run as short as is meaningful, by the options that the experiment file has for that
    #[arg(long)]
    pub quick: bool,
    /// Seed of all random choices of a run: keys, operations, contents, and the order of
    /// measurements
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Directory for the files of caches: /dev/shm, or one on the disk to measure; the files are
    /// removed at the end [default: the system's directory for temporary files]
    #[arg(long, short, value_name = "DIRECTORY")]
    pub directory: Option<PathBuf>,
    /// Seconds without output after which a measuring process counts as failed
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    pub timeout: Duration,
    /// Append each result to this file as soon as it is measured, as a line of JSON
    #[arg(long, short, value_name = "FILE.jsonl")]
    pub out: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
    /// Print the figures of the result tables as JSON, with all digits
    #[arg(long, conflicts_with = "json")]
    pub findings: bool,
}

impl RunOptions {
    /// Returns the absolute path of the directory for the caches' files, which is the system's for
    /// temporary files if the user names none.
    ///
    /// # Errors
    ///
    /// There is no working directory.
    pub(crate) fn absolute_directory(&self) -> anyhow::Result<PathBuf> {
        let directory = self.directory.clone().unwrap_or_else(env::temp_dir);
        Ok(std::path::absolute(directory)?)
    }

    /// Creates a temporary folder, whose name begins with `prefix`, in the directory for the
    /// caches' files.
    ///
    /// # Errors
    ///
    /// The directory cannot be written.
    pub(crate) fn scratch(&self, prefix: &str) -> anyhow::Result<TempDir> {
        let directory = self.absolute_directory()?;
        let scratch = tempfile::Builder::new().prefix(prefix).tempdir_in(&directory);
        scratch.with_context(|| format!("no folder can be created in {}", directory.display()))
    }
}
