//! Files in addition to the results: timelines, hyperfine's form, Markdown.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, ValueEnum};
use haypile_measure::result::Sample;

use super::{hyperfine, printout, timelines};
use crate::experiment::Host;

/// Command-line options for files that are written in addition to the results: a timeline, tables
/// in Markdown, and times in hyperfine's JSON.
#[derive(Clone, Debug, Args)]
#[command(about = None, long_about = None)]
pub struct ExportOptions {
    /// File for a picture (SVG) of the started processes over time, side by side for each condition
    #[arg(long, value_name = "FILE.svg")]
    pub timeline: Option<PathBuf>,
    /// File for the tables of results as Markdown
    #[arg(long, value_name = "FILE.md")]
    pub export_markdown: Option<PathBuf>,
    /// File for the times of all starts in the JSON format of hyperfine
    #[arg(long, value_name = "FILE.json")]
    pub export_hyperfine: Option<PathBuf>,
    /// Version of hyperfine's JSON format in that file: 1, or that of hyperfine 2.0
    #[arg(long, value_name = "VERSION", default_value = "1", value_enum)]
    pub hyperfine_schema: HyperfineSchema,
}

/// A version of hyperfine's JSON format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HyperfineSchema {
    /// That of hyperfine 1.
    #[value(name = "1")]
    One,
    /// That of hyperfine 2.
    #[value(name = "2")]
    Two,
}

impl ExportOptions {
    /// Checks that the files that the user asked for, in addition to the results, can be written.
    pub(super) fn check(&self, host: &dyn Host) -> anyhow::Result<()> {
        let all = [&self.timeline, &self.export_markdown, &self.export_hyperfine];
        all.into_iter().flatten().try_for_each(|path| host.check_output(path))
    }

    /// Writes the files that the user asked for in addition to the results: a timeline, Markdown,
    /// hyperfine's JSON.
    ///
    /// # Errors
    ///
    /// A file cannot be written; no start was watched, so that there is no timeline.
    pub(super) fn write(&self, samples: &[Sample], host: &dyn Host) -> anyhow::Result<()> {
        if let Some(path) = &self.export_hyperfine {
            match hyperfine::export(samples, self.hyperfine_schema)? {
                Some(text) => fs::write(path, text).with_context(|| path.display().to_string())?,
                // The results of an earlier run are worth more than an empty file.
                None => host.note(&format!(
                    "warning: the file {} is not written, because no start of the command has a \
                     result",
                    path.display()
                )),
            }
        }
        if let Some(path) = &self.export_markdown {
            let text = printout::printout(samples, true).markdown();
            fs::write(path, text).with_context(|| path.display().to_string())?;
        }
        if let Some(path) = &self.timeline {
            let svg = timelines::svg(samples)?;
            fs::write(path, svg).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }
}
