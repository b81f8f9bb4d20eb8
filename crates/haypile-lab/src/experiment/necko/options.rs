//! Options of `haypile lab loop` and `haypile lab sequence`.

use clap::{Args, ValueEnum};

use super::SIZES;

/// Target of the calls of the Necko benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Over {
    /// The caches themselves.
    Cache,
}

/// Options of the experiment.
#[derive(Clone, Debug, Args)]
#[command(about = "Repeat one operation: calls, clears, misses and hits, by size")]
#[command(after_help = "\
test_timing_cache of the Necko benchmarks, on caches: one operation, repeated on one key.
  call             a lookup in an empty cache
  call + clear     the same after clearing the cache
  miss (clear)     clearing, a lookup, and a write of the value
  miss (no-store)  a lookup, and computing the value without writing it
  hit              a lookup of an existing entry
The command measures the first three with the first size only. Nothing comes over a network: a
result is the cost of the cache, not its savings.

Examples:
  haypile lab loop
  haypile lab loop --sizes 50,1024 --subjects memory,file,memcached")]
pub struct LoopOptions {
    /// Sizes of values in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = SIZES)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1 << 30))]
    pub sizes: Vec<u32>,
    /// Number of repetitions of an operation; fewer with large values
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub runs: u32,
    /// Target of the calls: caches; the benchmarks' calls over HTTP are not implemented
    #[arg(long, value_enum, default_value_t = Over::Cache)]
    pub over: Over,
}

/// Options of the experiment.
#[derive(Clone, Debug, Args)]
#[command(about = "Read 101 entries, which miss and then hit, by size")]
#[command(after_help = "\
test_timing_cache_sequence of the Necko benchmarks, on caches: it loads 101 resources one after the
other, and then all of them again.
  miss (no-store)  lookups, and computing the values without writing them
  miss             lookups, and writes of the values
  hit              the same lookups again

Examples:
  haypile lab sequence
  haypile lab sequence --blocks 50 --subjects memory,file")]
pub struct SequenceOptions {
    /// Sizes of values in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = SIZES)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1 << 30))]
    pub sizes: Vec<u32>,
    /// Target of the calls: caches; the benchmarks' calls over HTTP are not implemented
    #[arg(long, value_enum, default_value_t = Over::Cache)]
    pub over: Over,
}
