//! The arguments of `haypile lab search`.

use clap::Args;
use haypile_lab::experiment::search::MAX_ENTRIES;

use super::Measuring;

#[derive(Debug, Args)]
#[command(after_help = "\
How long does a cache search that does not have the entry? It is as large as its entries need, and
some of them are there. Document 000 wanted to know that, for its caches were nearly empty.

Examples:
  haypile lab search
  haypile lab search --entries 1000000 --fill 0,100 --subjects memory,file,memcached")]
pub(crate) struct Search {
    /// For how many entries the cache is
    #[arg(
        long,
        value_name = "ENTRIES",
        value_delimiter = ',',
        default_value = "1000,100000,1000000"
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ENTRIES)))]
    pub(crate) entries: Vec<u32>,
    /// How many per cent of them are there
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', default_value = "0,50,100")]
    #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(crate) fill: Vec<u8>,
    /// How large values are
    #[arg(long, value_name = "BYTES", default_value = "160")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1 << 30))]
    pub(crate) value_bytes: u32,
    /// How many lookups there are in one measurement
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1_000_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub(crate) operations: u32,
    #[command(flatten)]
    pub(crate) measuring: Measuring,
}
