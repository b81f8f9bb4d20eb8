//! The arguments of `haypile lab crossover`.

use clap::Args;
use haypile::ByteSize;

use super::Measuring;
use crate::args::value::{percent, size};

#[derive(Debug, Args)]
#[command(after_help = "\
From which size of entries on is a cache clearly slower than the first one? Hits are measured at sizes
from --min to --max, each four times the one before, all caches in turns. Clearly slower is one whose
wall time is more than --margin above the first one's, with the whole 95 % interval. Between two
sizes where that changes, sizes are halved until they are --precision apart.

A cache can also be slower at every size, at none, or for small entries alone: then that is said.

Examples:
  haypile lab crossover
  haypile lab crossover --subjects memory,file,sqlite,files --margin 20%")]
pub(crate) struct Crossover {
    /// The smallest size of values
    #[arg(long, value_name = "SIZE", default_value = "16", value_parser = size)]
    pub(crate) min: ByteSize,
    /// The largest size of values
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = size)]
    pub(crate) max: ByteSize,
    /// By how much a cache has to be slower
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = percent)]
    pub(crate) margin: f64,
    /// How close the sizes around a crossover have to be
    #[arg(long, value_name = "PERCENT", default_value = "25%", value_parser = percent)]
    pub(crate) precision: f64,
    /// Bytes of all keys and values together; the caches have room for them
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    pub(crate) total: ByteSize,
    /// How many reads there are in one measurement; of large values fewer
    #[arg(long, short = 'n', value_name = "N", default_value_t = 500_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub(crate) operations: u32,
    #[command(flatten)]
    pub(crate) measuring: Measuring,
}
