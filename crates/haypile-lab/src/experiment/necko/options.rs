//! Options of `haypile lab loop` and `haypile lab sequence`.

use std::str::FromStr;
use std::time::Duration;

use anyhow::bail;
use clap::Args;

use super::{SIZES, over_http};
use crate::experiment::on_caches::OverHttp;

/// The operations of `loop`, as `--case` writes them.
const CASES: [&str; 6] = ["call", "call-clear", "miss-clear", "miss-no-store", "miss-query", "hit"];

impl LoopOptions {
    /// Returns whether the user wants the case with this name in the results of the experiment
    /// `loop`.
    pub(super) fn wants(&self, name: &str) -> bool {
        self.case.is_empty() || self.case.contains(&written(over_http::without_suffix(name).0))
    }
}

/// Returns the name of a case as `--case` writes it: its words, joined by dashes.
fn written(name: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    name.split(|c| !is_word(c)).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

/// Command-line options of the experiment `loop`.
#[derive(Clone, Debug, Args)]
#[command(about = "Repeat one operation: calls, clears, misses and hits, by size")]
#[command(after_help = "\
test_timing_cache of the Necko benchmarks: one operation, repeated on one key. Each is a request, as in
the source: an HTTP cache stands on each cache, and an origin server on the loopback device has what it lacks.
  call             a lookup in an empty cache
  call + clear     the same after clearing the cache
  miss (clear)     clearing, a lookup, and a write of the value
  miss (no-store)  a lookup, and computing the value without writing it
  hit              a lookup of an existing entry
  miss (query)     a new URL each time, which the source could not measure
The command measures the first three with the first size only. The source's origin took some 27 ms to
answer: only --origin-delay 27ms makes its ratios of misses to hits comparable.

With --http=false caches are measured themselves, those of others as well, and nothing comes over a
network: a result is the cost of the cache, not its savings.

Examples:
  haypile lab loop
  haypile lab loop --origin-delay 27ms --against main=/tmp/main/haypile
  haypile lab loop --subjects file,necko:disk,necko:none    # Firefox's cache; starts browsers
  haypile lab loop --case hit,miss-query --sizes 50,524288
  haypile lab loop --http=false --sizes 50,1024 --subjects memory,file,memcached")]
pub struct LoopOptions {
    /// Kinds of operation to measure, such as hit (a read that the cache answers) [default: all]
    #[arg(long, value_name = "CASES", value_delimiter = ',', value_parser = CASES)]
    pub case: Vec<String>,
    /// Sizes of the resources that are read and written, in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = SIZES)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1 << 30))]
    pub sizes: Vec<u32>,
    /// Number of times that a measurement repeats its operation; fewer with large values [default:
    /// 2000, and 50000 calls; 100000 with --http=false]
    #[arg(long, short = 'n', value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 28))]
    pub runs: Option<u32>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub http: OverHttp,
    /// Time that the HTTP origin takes to answer a request, such as 27ms [default: 0ms]
    #[arg(long, value_name = "TIME", value_parser = OriginDelay::from_str)]
    pub origin_delay: Option<OriginDelay>,
}

/// Command-line options of the experiment `sequence`.
#[derive(Clone, Debug, Args)]
#[command(about = "Read 101 entries, which miss and then hit, by size")]
#[command(after_help = "\
test_timing_cache_sequence of the Necko benchmarks, on caches: it loads 101 resources one after the
other, and then all of them again.
  miss (no-store)  lookups, and computing the values without writing them
  miss             lookups, and writes of the values
  hit              the same lookups again
With --http each is a request, as in the source, to an HTTP cache on each cache and an origin server
behind it. Between the passes everything is written to disk. One more row is new:
  hit, cold        the second pass with the cache's file dropped from the system's memory

Examples:
  haypile lab sequence
  haypile lab sequence --blocks 50 --subjects memory,file
  haypile lab sequence --http --directory /var/tmp
  haypile lab sequence --http --subjects file,necko:disk,necko:memory    # Firefox's cache; starts browsers")]
pub struct SequenceOptions {
    /// Sizes of the resources that are read one after the other, in bytes
    #[arg(long, value_name = "BYTES", value_delimiter = ',', default_values_t = SIZES)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1 << 30))]
    pub sizes: Vec<u32>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub http: OverHttp,
    /// Time that the HTTP origin takes to answer a request, such as 27ms [default: 0ms]
    #[arg(long, value_name = "TIME", value_parser = OriginDelay::from_str)]
    pub origin_delay: Option<OriginDelay>,
}

/// The time that an HTTP origin takes to answer, at most a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginDelay(pub Duration);

impl FromStr for OriginDelay {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        match humantime::parse_duration(text) {
            Ok(delay) if delay <= Duration::from_mins(1) => Ok(Self(delay)),
            _ => bail!("the delay of the origin has to be at most a minute, such as 27ms"),
        }
    }
}
