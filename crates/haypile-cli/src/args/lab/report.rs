//! The arguments of `haypile lab report`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
The page needs no network and no scripts: it can be sent by mail or put on any server. What is in it is
computed from the rows alone, so that the same rows give the same page.

Examples:
  haypile lab report results.jsonl
  haypile lab report record/2026-11-22-2core-amd-epyc --output report.html --plots plots
  haypile simulate trace.csv --size 1MiB,8MiB --json > simulate.json
  haypile lab report micro.jsonl simulate.json --output - | gzip > report.html.gz")]
pub(crate) struct Report {
    /// Files of rows (*.jsonl), files that simulate --json printed (*.json), directories of such
    #[arg(required = true, value_name = "RESULTS")]
    pub(crate) results: Vec<PathBuf>,
    /// The page to write; - is standard output
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// A directory that gets each plot as SVG and as PNG; it is made if it is not there
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) plots: Option<PathBuf>,
}
