//! The arguments of `haypile lab ratio`.

use std::str::FromStr;

use clap::Args;
use haypile_lab::experiment::ratio::Ratio;

use super::Measuring;

#[derive(Debug, Args)]
#[command(after_help = "\
Document 002: 2,000 keys of 36 bytes; one set, then so many gets of other keys, again and again; every get
is a hit. Values are small (16 bytes), medium (160) or large (1,600). The first table of each case is
that of Perl's Benchmark.pm, from the client's processor time alone, as the document has it: what a
server does and the waiting for it are in the second one.

Where all eight caches of the document are there, each of its six tables is held against ours:
which pairs stand the other way round.

Examples:
  haypile lab ratio --subjects memory,file,memcached,memory+memcached
  haypile rivals install chi libmemcached fastmmap && haypile lab ratio
  haypile lab ratio '1:100 medium' --subjects chi-l1,memory+memcached:127.0.0.1:0")]
pub(crate) struct Ratios {
    /// Cases, such as '1:10 medium', separated by commas [default: all]
    #[arg(value_name = "CASE", value_delimiter = ',', value_parser = ratio)]
    pub(crate) cases: Vec<Ratio>,
    /// How many operations there are in one measurement, sets and gets together
    #[arg(long, short = 'n', value_name = "N", default_value_t = 200_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub(crate) operations: u32,
    #[command(flatten)]
    pub(crate) measuring: Measuring,
}

fn ratio(text: &str) -> Result<Ratio, String> {
    Ratio::from_str(text)
}
