//! Arguments of `haypile lab loop` and `haypile lab sequence`.

use clap::{Args, ValueEnum};
use haypile_lab::experiment::necko::SIZES;

use super::Measuring;

/// Target of the calls of the Necko benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Over {
    /// The caches themselves.
    Cache,
}

#[derive(Debug, Args)]
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
pub(crate) struct Loop {
    /// Sizes of values in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = SIZES)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1 << 30))]
    pub(crate) sizes: Vec<u32>,
    /// Number of repetitions of an operation; fewer with large values
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub(crate) runs: u32,
    /// Target of the calls: caches; the benchmarks' calls over HTTP are not implemented
    #[arg(long, value_enum, default_value_t = Over::Cache)]
    pub(crate) over: Over,
    #[command(flatten)]
    pub(crate) measuring: Measuring,
}

#[derive(Debug, Args)]
#[command(after_help = "\
test_timing_cache_sequence of the Necko benchmarks, on caches: it loads 101 resources one after the
other, and then all of them again.
  miss (no-store)  lookups, and computing the values without writing them
  miss             lookups, and writes of the values
  hit              the same lookups again

Examples:
  haypile lab sequence
  haypile lab sequence --blocks 50 --subjects memory,file")]
pub(crate) struct Sequence {
    /// Sizes of values in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = SIZES)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1 << 30))]
    pub(crate) sizes: Vec<u32>,
    /// Target of the calls: caches; the benchmarks' calls over HTTP are not implemented
    #[arg(long, value_enum, default_value_t = Over::Cache)]
    pub(crate) over: Over,
    #[command(flatten)]
    pub(crate) measuring: Measuring,
}
