//! Arguments of `haypile lab first`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
The command measures hits, misses and writes in memory, in a file, and in memcached, Redis and SQLite where they are
installed; two threads instead of one; opening a file again; and a file whose writers are killed. It prints one table and
a line each. Each figure has its 95 % interval; other work on the machine is named before the figures that it disturbs.

Exit status: 0 done; 1 something was lost or wrong, or a measurement ended in an error; 2 a measurement could not run.

Examples:
  haypile lab first
  haypile lab first --out first.jsonl
  haypile lab first --json")]
pub(crate) struct First {
    /// Append each measured result to this file, as a line of JSON
    #[arg(long, short, value_name = "FILE.jsonl")]
    pub(crate) out: Option<PathBuf>,
    /// Print all measured figures as JSON, with all digits
    #[arg(long)]
    pub(crate) json: bool,
}
