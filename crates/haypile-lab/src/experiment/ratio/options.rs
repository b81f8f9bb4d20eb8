//! Options of `haypile lab ratio`.

use std::str::FromStr;

use clap::Args;

use super::Ratio;

/// Command-line options of the experiment `ratio`.
#[derive(Clone, Debug, Args)]
#[command(
    about = "Measure sets and gets at 1:1, 1:10 and 1:100, as a table of Perl's Benchmark.pm"
)]
#[command(after_help = "\
The Perl cache benchmark: 2,000 keys of 36 bytes; one set, then 1, 10 or 100 gets of other keys, and
so on; every get is a hit. Values are small (16 bytes), medium (160) or large (1,600). The first
table of each case is that of Perl's Benchmark.pm, from the client's processor time only, as in the
source; the second one includes the work of a server and the waiting for it.

If all eight caches of the source are installed, the command compares each of its six tables with
ours and lists the pairs in the opposite order.

Examples:
  haypile lab ratio --subjects memory,file,memcached,memory+memcached
  haypile rivals install chi libmemcached fastmmap && haypile lab ratio
  haypile lab ratio '1:100 medium' --subjects chi-l1,memory+memcached:127.0.0.1:0")]
pub struct RatioOptions {
    /// Cases, such as '1:10 medium', separated by commas [default: all]
    #[arg(value_name = "CASE", value_delimiter = ',', value_parser = Ratio::from_str)]
    pub cases: Vec<Ratio>,
    /// Number of operations in one measurement, sets and gets together
    #[arg(long, short = 'n', value_name = "N", default_value_t = 200_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub operations: u32,
}
