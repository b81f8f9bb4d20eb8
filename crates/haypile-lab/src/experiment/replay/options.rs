//! Options of `haypile lab replay`.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::bail;
use clap::Args;
use haypile::ByteSize;
use haypile_sim::trace::format::Format;

use crate::experiment::value::size;

/// Command-line options of the experiment `replay`.
#[derive(Clone, Debug, Args)]
#[command(about = "Replay traces on caches and compare their hit ratios")]
#[command(after_help = "\
Each request of a trace reads its key and, after a miss, stores a value of the size of the key's
first request. Every cache has the same capacity in bytes and its own way of counting them; the
results contain the memory that it takes. The table shows byte hit ratios, the best mean first; of
several traces, the mean is over all of them.

Two traces of a million requests need no file: zipf (100,000 keys, exponent 0.99) and zipf-scan (the
same for 80 % of the requests, while the others scan 100,000 further keys).

Examples:
  haypile lab replay zipf zipf-scan --blocks 1
  haypile lab replay OLTP.lis.zst u32le:w106.trace.xz --subject memory:policy=lru,memory:policy=sieve
  haypile lab replay cdn.csv.zst --rivals PROGRAM --subject memory,moka,quick_cache --capacity 5")]
pub struct ReplayOptions {
    /// Traces: zipf, zipf-scan, or files, plain or compressed; write a format that cannot be
    /// recognised before the file, as in u32le:w106.trace.xz [default: those of the experiment]
    #[arg(value_name = "TRACE")]
    pub traces: Vec<TraceName>,
    /// Capacities as percentages of the bytes of a trace's values, each key counted once
    #[arg(long, short, value_name = "PERCENT", value_delimiter = ',', default_value = "1,10,25")]
    #[arg(value_parser = capacity)]
    pub capacity: Vec<f64>,
    /// Size of values if a trace has no sizes; the default is a disk block
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = size)]
    pub value_size: ByteSize,
}

/// The name of a trace, with the format that the user may have written before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceName {
    /// The format of the trace; `None` if it is to be recognised from the content.
    pub format: Option<Format>,
    /// The path of the trace, or the name of a generated trace.
    pub path: PathBuf,
}

impl FromStr for TraceName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let format = text.split_once(':').and_then(|(format, path)| {
            Some(Self { format: Some(format.parse().ok()?), path: path.into() })
        });
        Ok(format.unwrap_or_else(|| Self { format: None, path: text.into() }))
    }
}

/// Parses a capacity above 0.
fn capacity(text: &str) -> anyhow::Result<f64> {
    match text.strip_suffix('%').unwrap_or(text).parse() {
        Ok(percent) if percent > 0.0 && percent <= 1000.0 => Ok(percent),
        _ => bail!(
            "write a capacity as a percentage of the trace's bytes, above 0 and up to 1000, as in \
             10"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_may_stand_before_a_file() {
        let name = |text: &str| text.parse::<TraceName>().unwrap();
        let path = |path: &str, format| TraceName { format, path: path.into() };
        assert_eq!(name("u32le:w106.xz"), path("w106.xz", Some(Format::U32Le)));
        assert_eq!(name("w106.xz"), path("w106.xz", None));
        assert_eq!(name("old:w106.xz"), path("old:w106.xz", None));
    }
}
