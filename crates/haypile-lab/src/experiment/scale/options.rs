//! Options of `haypile lab scale`.

use clap::Args;

use crate::experiment::micro::CaseKind;

/// Command-line options of the experiment `scale`.
#[derive(Clone, Debug, Args)]
#[command(about = "Measure operations per second by number of threads and processes")]
#[command(after_help = "\
The cases are those of haypile lab micro. Every worker, a thread or a process, does --operations on
one cache. Speed-up is the operations per second of all workers divided by those of the fewest;
efficiency is the speed-up per worker. Caches that live in one process are measured with threads
only.

Examples:
  haypile lab scale
  haypile lab scale --threads 1,2,4,8 --processes 1 --subjects memory,moka
  haypile lab scale --case overwrite --threads 1 --processes 1,2,4 --subjects file,lmdb")]
pub struct ScaleOptions {
    /// Kinds of operation (cases) to measure, as in haypile lab micro
    #[arg(long, short, value_name = "CASES", value_delimiter = ',')]
    #[arg(default_value = "get-hit,overwrite")]
    pub case: Vec<CaseKind>,
    /// Numbers of threads in one process [default: 1, 2, 4 and so on, up to the processors]
    #[arg(long, value_name = "THREADS", value_delimiter = ',')]
    pub threads: Vec<u32>,
    /// Numbers of processes with one thread each [default: 1, 2, 4 and so on, up to the processors]
    #[arg(long, value_name = "PROCESSES", value_delimiter = ',')]
    pub processes: Vec<u32>,
    /// Number of distinct keys among which the operations choose
    #[arg(long, value_name = "KEYS", default_value_t = 100_000)]
    pub keys: u32,
    /// Size of each value that the measured caches store, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 160)]
    pub value_bytes: u32,
    /// Number of operations of each worker (thread or process) in one measurement
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1_000_000)]
    pub operations: u32,
}
