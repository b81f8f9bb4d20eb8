//! Options of `haypile lab search`.

use clap::Args;

use super::MAX_ENTRIES;
use crate::experiment::on_caches::OverHttp;

/// Command-line options of the experiment `search`.
#[derive(Clone, Debug, Args)]
#[command(about = "Measure lookups that find nothing, by entries and fill")]
#[command(after_help = "\
How long does a lookup take that finds nothing? The cache is as large as its entries need, and holds
some of them. The Necko benchmarks left this open, because their caches were nearly empty.

With --http entries are stored responses, and a lookup is a request that allows nothing else
(only-if-cached): the search in an HTTP cache, without the way to an origin.

Examples:
  haypile lab search
  haypile lab search --http --fill 0,10,50,100 --subjects memory,file,memory+file
  haypile lab search --entries 1000000 --fill 0,100 --subjects memory,file,memcached
  haypile lab search --http --killed --subjects necko:memory,size=500MB,necko:disk,memory,file \
      --entries 10000 -n 1000")]
pub struct SearchOptions {
    /// Number of entries for which the measured cache has capacity
    #[arg(
        long,
        value_name = "ENTRIES",
        value_delimiter = ',',
        default_value = "1000,100000,1000000"
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ENTRIES)))]
    pub entries: Vec<u32>,
    /// Percentage of --entries that the cache holds when keys are looked up
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_value = "0,50,100")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    pub fill: Vec<u8>,
    /// Size of each value that the measured caches store, in bytes
    #[arg(long, value_name = "BYTES", default_value = "160")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1 << 30))]
    pub value_bytes: u32,
    /// Number of lookups (reads of a key) in one measurement
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1_000_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub operations: u32,
    /// Also look keys up after the process that set them was killed, in caches that keep files
    #[arg(long)]
    pub killed: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub http: OverHttp,
}
