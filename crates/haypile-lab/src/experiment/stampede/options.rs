//! Options of `haypile lab stampede`.

use clap::Args;
use haypile_measure::job::MAX_PROCESSES;

use super::MAX_KEYS;

/// Command-line options of the experiment `stampede`.
#[derive(Clone, Debug, Args)]
#[command(about = "Count how often processes that share an expired entry compute it")]
#[command(after_help = "\
Several processes ask for an expired entry at once. With a cache that protects against stampedes,
one process computes the value while the others wait; without protection every process computes it.
Here, computing means waiting, as for a database.

Examples:
  haypile lab stampede
  haypile lab stampede --processes 2,8 --subjects file,memcached,fastmmap,diskcache")]
pub struct StampedeOptions {
    /// Number of processes that ask for the same missing keys at the same time
    #[arg(long, value_name = "PROCESSES", value_delimiter = ',', default_value = "4")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PROCESSES)))]
    pub processes: Vec<u32>,
    /// Number of missing keys that the processes ask for, one after the other
    #[arg(long, value_name = "KEYS", default_value = "100")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_KEYS)))]
    pub keys: u32,
    /// Milliseconds that a process takes to compute the value of a missing key
    #[arg(long, value_name = "MS", default_value = "10")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=60_000))]
    pub compute_ms: u64,
}
