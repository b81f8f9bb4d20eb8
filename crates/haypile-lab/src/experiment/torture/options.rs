//! Options of `haypile lab torture`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use haypile::ByteSize;
use haypile_measure::subject::SubjectSpec;
use haypile_measure::torture::TortureCase;

use crate::experiment::session::RunOptions;
use crate::experiment::value::{count, seconds, size};

/// Command-line options of the experiment `torture`.
#[derive(Clone, Debug, Args)]
#[command(
    about = "Kill and stop processes that share a cache, and find lost, wrong and stale entries"
)]
#[command(after_help = "\
Processes share a cache. Writers report each operation on a pipe, before and after it, so that the
command knows which entries have to exist; values describe themselves, so that it notices torn ones.
Other processes read, and others open and close the cache.
  keep     writers are killed (SIGKILL) at random instants; everything fits, so that every
           acknowledged write has to be found
  evict    the same with a full cache: no value is wrong, and the hit ratio is that without kills
  stop     a writer is stopped (SIGSTOP) repeatedly: the others continue, though they may meet Busy
  all      all processes are killed at once; new processes find every acknowledged write
  compute  a process that computes a value for others is killed: one of the others computes it
  invalidate  clients delete keys, invalidate groups and clear the cache while others compute and read
           what depends on them, and are killed and stopped at it: nobody may read a value that was
           computed before a removal that had been acknowledged (a stale value)
keep, evict and invalidate have controls: the same runs without kills. Hit ratios may be 1 point below theirs.

Exit status: 0 nothing is stale, lost or wrong; 1 something is; 2 wrong arguments; 130
interrupted by Ctrl-C (128 + the number of the signal).

Examples:
  haypile lab torture --quick
  haypile lab torture --kills 10000 --size 256MiB --out torture.jsonl
  haypile lab torture file lmdb --rivals target/rivals/rust/release/haypile-rivals")]
#[command(mut_arg("quick", |arg| arg.help(
    "Take seconds instead of minutes, with a small cache and without judging hit ratios"
)))]
#[command(mut_arg("directory", |arg| arg.help(
    "Directory for the caches [default: /dev/shm if it exists, or the system's directory for temporary files]"
)))]
#[command(mut_arg("timeout", |arg| arg.default_value("30")))]
pub struct TortureOptions {
    /// Caches to test: file, or file: with options other than path and size; memcached or redis,
    /// for the case invalidate; or those of --rivals [default: file]
    #[arg(value_name = "SUBJECT")]
    pub subjects: Vec<SubjectSpec>,
    /// Number of kills in each of the cases keep, evict and invalidate [default: 1000; 40 with
    /// --quick]
    #[arg(long, value_name = "N", value_parser = count)]
    pub kills: Option<u64>,
    /// Size of each tested cache [default: 32MiB; 4MiB with --quick]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<ByteSize>,
    /// Kinds of test (cases) to run, separated by commas [default:
    /// keep,evict,stop,all,compute,invalidate]
    #[arg(long, value_name = "CASES", value_delimiter = ',')]
    pub case: Vec<TortureCase>,
    /// Number of processes that write at the same time, or of clients in the case invalidate; all
    /// but one of them are killed
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u64).range(2..=64))]
    pub writers: u64,
    /// Number of processes that read the cache at the same time
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub readers: u64,
    /// Seconds for which a writing process is stopped (SIGSTOP) each time [default: 2; 0.2 with
    /// --quick]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub stop: Option<Duration>,
    /// Give the test's processes this number of boot ids in turn, as separate containers have;
    /// needs a build with --features test-hooks
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u64).range(0..=64))]
    pub boots: u64,
    /// Let the clients of the case invalidate write what they read from the database to the cache
    /// without a lease, as most programs do
    #[arg(long)]
    pub no_leases: bool,
    /// Programs (runners) through which further caches can be tested
    #[arg(long, value_name = "PROGRAM")]
    pub rivals: Vec<PathBuf>,
    /// Options that all experiments share.
    #[command(flatten)]
    pub run: RunOptions,
}
