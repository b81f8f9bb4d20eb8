//! The arguments of `haypile lab micro`.

use clap::Args;
use haypile_lab::experiment::micro::{Capacity, CaseKind, Distribution};

use super::Measuring;

#[derive(Debug, Args)]
#[command(after_help = "\
Cases (the documentation of haypile_lab::experiment::micro defines them to the operation):
  get-hit    reads of keys that are there; the cache has ample room for them
  get-miss   reads of keys that were never set; the same cache
  set        writes of all keys by the distribution; the cache holds the capacity
  overwrite  writes of keys that are there; the cache has ample room for them
  get-beside as get-hit, while the last of --processes overwrites: rows are of the readers
  set-evict  writes of new keys into a full cache
  mix:S:G    S writes, G reads and so on, of all keys by the distribution
  aside      reads of all keys by the distribution, and a write after each miss

Every list is multiplied with the others. Each measurement is made by processes of its own, which
are bound to no processor; the first of them checks every value before and after. Memory is what is
resident after the timed part beyond what was before the cache was opened; where processes share
memory, each counts it.

Exit status: 0 done; 1 something that was measured is an error; 2 wrong arguments, a failure, or
interrupted: what is finished is shown and kept.

Examples:
  haypile lab micro --subject memory:policy=s3fifo,memory:policy=lru --case get-hit --threads 1,2
  haypile lab micro --rivals PROGRAM --subject memory,quick_cache,moka
  haypile lab micro --rivals PROGRAM --subject lmdb --processes 1,2 --directory /dev/shm
  haypile lab micro --against main=/tmp/main/haypile --blocks 20 --out results.jsonl")]
pub(crate) struct Micro {
    /// What is measured
    #[arg(long, short, value_name = "CASES", value_delimiter = ',')]
    #[arg(default_value = "get-hit,get-miss,set-evict,mix:1:10")]
    pub(crate) case: Vec<CaseKind>,
    /// How many keys there are
    #[arg(long, value_name = "KEYS", value_delimiter = ',', default_value = "100000")]
    pub(crate) keys: Vec<u32>,
    /// How long they are
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "36")]
    pub(crate) key_bytes: Vec<u32>,
    /// How large values are
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "160")]
    pub(crate) value_bytes: Vec<u32>,
    /// Which keys are asked for: uniform, or zipf and its exponent
    #[arg(long, value_name = "DISTRIBUTIONS", value_delimiter = ',', default_value = "zipf:0.99")]
    pub(crate) distribution: Vec<Distribution>,
    /// How much the cache holds: a share of the bytes of all keys and values (50%), or a size
    #[arg(long, value_name = "CAPACITIES", value_delimiter = ',', default_value = "50%")]
    pub(crate) capacity: Vec<Capacity>,
    /// How many threads of each process use the cache
    #[arg(long, value_name = "THREADS", value_delimiter = ',', default_value = "1")]
    pub(crate) threads: Vec<u32>,
    /// How many processes use the cache at the same time: one that they share
    #[arg(long, value_name = "PROCESSES", value_delimiter = ',', default_value = "1")]
    pub(crate) processes: Vec<u32>,
    /// How many operations each thread does in one measurement
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1_000_000)]
    pub(crate) operations: u32,
    /// Time single operations as well, in a pass of their own
    #[arg(long)]
    pub(crate) latency: bool,
    #[command(flatten)]
    pub(crate) measuring: Measuring,
}
