//! Options of `haypile lab crossover`.

use clap::Args;
use haypile::ByteSize;

use crate::experiment::on_caches::OverHttp;
use crate::experiment::value::{percent, size};

/// Command-line options of the experiment `crossover`.
#[derive(Clone, Debug, Args)]
#[command(about = "Find the entry size from which one cache is clearly slower than another")]
#[command(after_help = "\
From which entry size on is a cache clearly slower than the first one? The command measures hits at
sizes from --min to --max, each four times the previous one, all caches in turn. A cache is clearly
slower if the whole 95 % confidence interval of its wall time is more than --margin above the first
one's. Between two sizes where the answer changes, the command bisects until they are --precision
apart.

The output also states whether a cache is slower at every size, at none, or only for small entries.

Examples:
  haypile lab crossover
  haypile lab crossover --http --subjects memory,file
  haypile lab crossover --subjects memory,file,sqlite,files --margin 20%")]
pub struct CrossoverOptions {
    /// Smallest size of values (cached objects) to measure
    #[arg(long, value_name = "SIZE", default_value = "16", value_parser = size)]
    pub min: ByteSize,
    /// Largest size of values (cached objects) to measure
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = size)]
    pub max: ByteSize,
    /// Margin by which a cache has to be slower than the first to count as slower, such as 0.1 for
    /// 10 %
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = percent)]
    pub margin: f64,
    /// Difference of the two value sizes around a crossover, in per cent of the smaller, at which
    /// the search ends
    #[arg(long, value_name = "PERCENT", default_value = "25%", value_parser = percent)]
    pub precision: f64,
    /// Total size of all keys and values of a measurement; the caches have room for all of them
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    pub total: ByteSize,
    /// Number of reads in one measurement; fewer for values above 16 KiB
    #[arg(long, short = 'n', value_name = "N", default_value_t = 500_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub operations: u32,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub http: OverHttp,
}
