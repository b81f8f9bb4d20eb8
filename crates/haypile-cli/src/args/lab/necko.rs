//! The arguments of `haypile lab loop` and `haypile lab sequence`.

use clap::{Args, ValueEnum};
use haypile_lab::experiment::necko::SIZES;

use super::Measuring;

/// What the calls of document 000 go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Over {
    /// Caches themselves.
    Cache,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Document 000's test_timing_cache, on caches: one operation, again and again, on one key.
  call             a lookup in an empty cache
  call + clear     the same after clearing the cache
  miss (clear)     clearing, a lookup, and a write of the value
  miss (no-store)  a lookup, and the value made, which is not written
  hit              a lookup of an entry that is there
The first three are measured with the first size alone. Nothing comes over a network here: a row says
what the cache costs, not what it saves.

Examples:
  haypile lab loop
  haypile lab loop --sizes 50,1024 --subjects memory,file,memcached")]
pub(crate) struct Loop {
    /// Sizes of values, in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = SIZES)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1 << 30))]
    pub(crate) sizes: Vec<u32>,
    /// How often an operation is repeated; of large values fewer times
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub(crate) runs: u32,
    /// What is called: caches; the source's calls over HTTP are not there yet
    #[arg(long, value_enum, default_value_t = Over::Cache)]
    pub(crate) over: Over,
    #[command(flatten)]
    pub(crate) measuring: Measuring,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Document 000's test_timing_cache_sequence, on caches: 101 resources are loaded one after the other, and
then all of them again.
  miss (no-store)  lookups, and the values made, which are not written
  miss             lookups, and writes of the values
  hit              the same lookups again

Examples:
  haypile lab sequence
  haypile lab sequence --blocks 50 --subjects memory,file")]
pub(crate) struct Sequence {
    /// Sizes of values, in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = SIZES)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1 << 30))]
    pub(crate) sizes: Vec<u32>,
    /// What is called: caches; the source's calls over HTTP are not there yet
    #[arg(long, value_enum, default_value_t = Over::Cache)]
    pub(crate) over: Over,
    #[command(flatten)]
    pub(crate) measuring: Measuring,
}
