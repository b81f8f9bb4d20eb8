//! The arguments of `haypile lab torture`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use haypile::ByteSize;
use haypile_lab::subject::SubjectSpec;
use haypile_lab::torture::Case;

use super::measuring::seconds;
use crate::args::value::{count, size};

#[derive(Debug, Args)]
#[command(after_help = "\
Processes share a cache. Writers say each operation on a pipe, before it and after it, so that it is
known what has to be found; values say what they are, so that a torn one is seen. Beside them others
read, and others open the cache and close it.
  keep     writers are killed (SIGKILL) at random instants; all fits: what was acknowledged is found
  evict    the same with a full cache: nothing wrong is found, and it hits as often as without kills
  stop     a writer is stopped (SIGSTOP), again and again: the others go on, perhaps with Busy
  all      everybody is killed at once; new processes find what was acknowledged
  compute  who computes a value for others is killed: one of the others computes
keep and evict come with controls: the same lives, ended in order. Hits may be 1 point below these.

Exit status: 0 nothing is wrong; 1 something is; 2 wrong arguments, or interrupted.

Examples:
  haypile lab torture --quick
  haypile lab torture --kills 10000 --size 256MiB --out torture.jsonl
  haypile lab torture file lmdb --rivals target/rivals/rust/release/haypile-rivals")]
pub(crate) struct Torture {
    /// The caches: file, or file: and its options without path and size, or those of --rivals [default:
    /// file]
    #[arg(value_name = "SUBJECT")]
    pub(crate) subjects: Vec<SubjectSpec>,
    /// Seconds and not minutes, on a small cache; hit ratios are not judged
    #[arg(long)]
    pub(crate) quick: bool,
    /// Kills in each of keep and evict [default: 1000; 40 with --quick]
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) kills: Option<u64>,
    /// The size of the caches [default: 32MiB; 4MiB with --quick]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) size: Option<ByteSize>,
    /// What is done to them, separated by commas [default: keep,evict,stop,all,compute]
    #[arg(long, value_name = "CASES", value_delimiter = ',')]
    pub(crate) case: Vec<Case>,
    /// Writers at a time; all but one of them are killed
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u64).range(2..=64))]
    pub(crate) writers: u64,
    /// Readers at a time
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(crate) readers: u64,
    /// Seconds that a writer is stopped for [default: 2; 0.2 with --quick]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) stop: Option<Duration>,
    /// Let processes have this many boot ids in turn, as containers of their own do; for a build with
    /// --features test-hooks
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u64).range(0..=64))]
    pub(crate) boots: u64,
    /// Where the caches are [default: /dev/shm if it is there, or the system's directory for
    /// temporary files]
    #[arg(long, short, value_name = "DIRECTORY")]
    pub(crate) directory: Option<PathBuf>,
    /// Programs that run further caches
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) rivals: Vec<PathBuf>,
    /// What keys and lives are drawn from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Seconds that a process may say nothing
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) timeout: Duration,
    /// Append each result to this file as soon as it is there, one line of JSON each
    #[arg(long, short, value_name = "FILE.jsonl")]
    pub(crate) out: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
