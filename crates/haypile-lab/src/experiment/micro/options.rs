//! Options of `haypile lab micro`.

use clap::Args;

use super::{Capacity, CaseKind, Distribution};

/// Command-line options of the experiment `micro`.
#[derive(Clone, Debug, Args)]
#[command(about = "Measure single operations: hits, misses, writes that evict, mixtures")]
#[command(after_help = "\
Cases (the documentation of haypile_lab::experiment::micro defines each operation of them):
  get-hit    reads existing keys; the cache has ample room for them
  get-miss   reads keys that were never set, in the same cache
  set        writes all keys by the distribution; the cache has the capacity
  overwrite  writes existing keys; the cache has ample room for them
  get-beside as get-hit, while the last of --processes overwrites; the results are the readers'
  set-evict  writes new keys into a full cache
  mix:S:G    writes S keys, reads G keys, and so on, of all keys by the distribution
  aside      reads all keys by the distribution, and writes after each miss

The command measures every combination of the lists. Each measurement has processes of its own,
which are not pinned to processors; the first of them verifies every value before and after. Memory
is the growth of resident memory from before the cache is opened until after the timed part; each
process counts memory that it shares with others.

Exit status: 0 done; 1 a measurement ended in an error; 2 wrong arguments, or a failure;
130 interrupted by Ctrl-C (128 + the number of the signal): the command prints and keeps the results
so far. A second signal ends it at once.

Examples:
  haypile lab micro --subject memory:policy=s3fifo,memory:policy=lru --case get-hit --threads 1,2
  haypile lab micro --rivals PROGRAM --subject memory,quick_cache,moka
  haypile lab micro --rivals PROGRAM --subject lmdb --processes 1,2 --directory /dev/shm
  haypile lab micro --against main=/tmp/main/haypile --blocks 20 --out results.jsonl")]
pub struct MicroOptions {
    /// Kinds of operation (cases) to measure, as listed below
    #[arg(long, short, value_name = "CASES", value_delimiter = ',')]
    #[arg(default_value = "get-hit,get-miss,set-evict,mix:1:10")]
    pub case: Vec<CaseKind>,
    /// Number of distinct keys among which the operations choose
    #[arg(long, value_name = "KEYS", value_delimiter = ',', default_value = "100000")]
    pub keys: Vec<u32>,
    /// Length of each key, in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "36")]
    pub key_bytes: Vec<u32>,
    /// Size of each value that the measured caches store, in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_value = "160")]
    pub value_bytes: Vec<u32>,
    /// Distribution of the requested keys: uniform, or zipf and its exponent
    #[arg(long, value_name = "DISTRIBUTIONS", value_delimiter = ',', default_value = "zipf:0.99")]
    pub distribution: Vec<Distribution>,
    /// Capacity of each measured cache: a share of the bytes of all keys and values (50%), or a
    /// size
    #[arg(long, value_name = "CAPACITIES", value_delimiter = ',', default_value = "50%")]
    pub capacity: Vec<Capacity>,
    /// Number of threads in each process that use the cache
    #[arg(long, value_name = "THREADS", value_delimiter = ',', default_value = "1")]
    pub threads: Vec<u32>,
    /// Number of processes that share the cache
    #[arg(long, value_name = "PROCESSES", value_delimiter = ',', default_value = "1")]
    pub processes: Vec<u32>,
    /// Number of operations of each thread in one measurement
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1_000_000)]
    pub operations: u32,
    /// Also time each operation singly, for percentiles of latency, in a separate pass
    #[arg(long)]
    pub latency: bool,
}
