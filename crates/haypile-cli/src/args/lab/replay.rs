//! The arguments of `haypile lab replay`.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use haypile_sim::trace::generate::Sizes;

use super::Measuring;
use crate::args::Reading;

#[derive(Debug, Args)]
#[command(after_help = "\
Each request of a trace reads its key and, on a miss, stores a value of the size that the key's first
request had. Every cache gets the same bytes and counts them as it counts. The table has byte hit
ratios, the best mean first. Two traces need no file: zipf and zipf-scan, a million requests each.

Examples:
  haypile lab replay zipf zipf-scan --blocks 1
  haypile lab replay OLTP.lis.zst --capacity 1,10,25 --subject memory:policy=lru,memory:policy=s3fifo
  haypile lab replay w106.trace.xz --rivals PROGRAM --subject memory,moka,quick_cache")]
pub(crate) struct Replay {
    /// Trace files, each read as one trace, compressed or not; or zipf, zipf-scan
    #[arg(required = true, value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// Capacities in per cent of the bytes of a trace's values, each key counted once
    #[arg(long, short, value_name = "PERCENT", value_delimiter = ',', default_value = "1,10,25")]
    #[arg(value_parser = capacity)]
    pub(crate) capacity: Vec<f64>,
    /// Sizes of values where a trace has none
    #[arg(long, value_name = "SIZES", default_value = "4096", value_parser = crate::args::assumed_sizes)]
    pub(crate) unsized_as: Sizes,
    #[command(flatten)]
    pub(crate) measuring: Measuring,
    #[command(flatten)]
    pub(crate) reading: Reading,
}

/// A capacity above nothing.
fn capacity(text: &str) -> anyhow::Result<f64> {
    match text.trim_end_matches('%').parse() {
        Ok(percent) if percent > 0.0 && percent <= 1000.0 => Ok(percent),
        _ => bail!("write a number above 0 and up to 1000, as in 10"),
    }
}
