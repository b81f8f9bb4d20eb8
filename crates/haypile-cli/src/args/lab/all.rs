//! The arguments of `haypile lab all`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Each experiment of experiments/ is done with what its file says. Caches that are not installed are left
out, and a line says how to get each. What an experiment prints is kept in DIR/NAME.txt, its results in
DIR/NAME.jsonl, and DIR/report.html shows all of it. An interruption keeps what is finished.

With --quick it is over within three minutes, and shows how things stand rather than how sure that is.

Exit status: 0 done; 1 something that was measured is an error; 2 an experiment could not be done.

Examples:
  haypile lab all --quick --output results
  haypile lab all --quick --embedded --output results
  haypile lab all --quick --trace traces/redis-build.csv.zst --output results
  haypile lab all --output results --only ratio,workload")]
pub(crate) struct All {
    /// The directory for results; it is made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// As quick as it can be while it says something
    #[arg(long)]
    pub(crate) quick: bool,
    /// Only the caches of this program
    #[arg(long)]
    pub(crate) embedded: bool,
    /// Simulate eviction policies on this trace as well
    #[arg(long, value_name = "TRACE")]
    pub(crate) trace: Option<PathBuf>,
    /// Only these experiments
    #[arg(long, value_name = "EXPERIMENTS", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
}
