//! Arguments of `haypile lab report`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
The page needs neither a network nor scripts: you can send it by mail or put it on any server. It
depends only on the rows, so that the same rows produce the same page.

Examples:
  haypile lab report results.jsonl
  haypile lab report record/2026-11-22-2core-amd-epyc --output report.html --plots plots
  haypile simulate trace.csv --size 1MiB,8MiB --json > simulate.json
  haypile lab report micro.jsonl simulate.json --output - | gzip > report.html.gz
  haypile lab report micro.jsonl --findings | jq '.findings[] | select(.figure == \"cpu\")'")]
pub(crate) struct Report {
    /// Result files (*.jsonl), output of simulate --json (*.json), or directories of such files
    #[arg(required = true, value_name = "RESULTS")]
    pub(crate) results: Vec<PathBuf>,
    /// Print the figures of all results as JSON, with all digits, and write no page
    #[arg(long, conflicts_with_all = ["output", "plots"])]
    pub(crate) findings: bool,
    /// HTML page to write; - is standard output
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// Directory that gets each plot of the report as an SVG file; created if it does not exist
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) plots: Option<PathBuf>,
}
