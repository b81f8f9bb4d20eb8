//! Arguments of `haypile lab all`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
The command runs each experiment with the options of its file (haypile lab experiments). It skips caches that
are not installed, and prints how to install each. It writes the output of an experiment to
DIR/NAME.txt, its results to DIR/NAME.jsonl, and all results to DIR/report.html. An interruption
keeps the finished experiments.

With --quick the command takes at most three minutes; the results show tendencies, with wide
confidence intervals.

Exit status: 0 done; 1 a measurement ended in an error; 2 an experiment could not run.

Examples:
  haypile lab all --quick --output results
  haypile lab all --quick --embedded --output results
  haypile lab all --quick --trace traces/redis-build.csv.zst --output results
  haypile lab all --output results --only ratio,workload")]
pub(crate) struct All {
    /// Directory for the results and the report of the experiments; created if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Make the measurements of each experiment as short as is meaningful
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measure only the caches of this program, not those of other programs
    #[arg(long)]
    pub(crate) embedded: bool,
    /// Also simulate eviction policies on this trace
    #[arg(long, value_name = "TRACE")]
    pub(crate) trace: Option<PathBuf>,
    /// Run only these experiments
    #[arg(long, value_name = "EXPERIMENTS", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
}
