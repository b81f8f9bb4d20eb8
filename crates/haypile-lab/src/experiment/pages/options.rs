//! Options of `haypile lab pages`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use haypile::ByteSize;
use haypile_origin::link::LinkProfile;

use crate::experiment::on_pages::options::{MIN_DISK_BYTES, Medium, disk_size, link};
use crate::experiment::session::RunOptions;
use crate::experiment::value::{count, size};
use haypile_pages::Protocol;
use haypile_pages::site::generate::Percentile;

/// Command-line options of the experiment `pages`.
#[derive(Clone, Debug, Args)]
#[command(about = "Load pages through an HTTP cache: memory, disk and both, by size and network")]
#[command(after_help = "\
The Tp4m page loads of a browser, for any site: pages that a browser recorded (a HAR of its
developer tools), or a generated site with the statistics of HTTP Archive. A loader loads them
through an HTTP cache that has none, memory, disk or both, over an emulated link. It has a browser's
private cache and connections; it runs no scripts and draws nothing.

First every column loads the pages over no link (unshaped), where the origin counts requests and
bytes: a cache that did not do what its name says is an error. Columns with equal counts go over a
link once, and the table shows them as equal. A load over a slow link takes as long as the link: the
command prints its estimate, and refuses to start what takes longer than --time. The pass over no link
has no estimate: it ends where --time is over. What was loaded by then is printed and kept.

With https, browsers shake hands by TLS 1.3 with the origin over the link, and --protocol h2 is for it alone; for our
own loader the link has one more round trip instead. So far Firefox alone loads pages by https, without the column
proxy: haypile proxy does not end TLS.

Links: unshaped, broadband, umts, gsm, cable, 4g, 3g, wifi, or properties between semicolons, as in
'down=5Mbit/s;up=1Mbit/s;rtt=30ms;jitter=5ms;loss=1%'.

Examples:
  haypile lab pages --quick
  haypile lab pages visit.har --links wifi,3g --out pages.jsonl
  haypile lab pages --pages 12 --percentile 50 --sizes 6MB,25%,100% --links wifi
  haypile lab pages --pages 100 --weight 12MB --rounds 2 --links unshaped --sizes 300MB,1GB
  haypile lab pages --query-per-visit --pages 12 --sizes 10MB --links wifi
  haypile lab pages --browser chromium,firefox --pages 4 --sizes 10MB --links wifi
  haypile lab pages --browser firefox --https --protocol h2 --pages 4 --sizes 10MB --links wifi
  haypile lab pages --disk-at ssd=/var/tmp --disk-at card=/media/card --kills 20")]
#[command(mut_arg("timeout", |arg| arg.default_value("300").help("Seconds after which a load is an error")))]
pub struct PagesOptions {
    /// HAR files with pages, each after the other [default: a generated site]
    #[arg(value_name = "HAR")]
    pub hars: Vec<PathBuf>,
    /// File with the order of the visits: the URL or name of a page on each line [default: groups
    /// of 4 pages, each three times before the next]
    #[arg(long, value_name = "FILE", conflicts_with = "rounds")]
    pub manifest: Option<PathBuf>,
    /// Visit all pages, and then all of them again, this many times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: Option<u32>,
    /// Number of generated pages
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pages: u32,
    /// Number of requests and bytes (weight) of generated pages, as a percentile of pages on the
    /// web: 10, 25, 50, 75, 90
    #[arg(long, value_name = "PERCENTILE", default_value = "25", value_parser = Percentile::from_str)]
    pub percentile: Percentile,
    /// Total bytes of a generated page's resources, instead of those of the percentile
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "percentile")]
    pub weight: Option<ByteSize>,
    /// Options of the visits to pages.
    #[command(flatten)]
    pub visits: VisitOptions,
    /// Options of generated pages.
    #[command(flatten)]
    pub generated: GeneratedOptions,
    /// Emulated networks (links) over which the pages are loaded, as listed below
    #[arg(long, value_name = "LINKS", value_delimiter = ',', default_value = "wifi", value_parser = link)]
    pub links: Vec<LinkProfile>,
    /// Sizes of the disk cache to measure; also in per cent of the pages' working set, as in 50%
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "6MB,10MB,100MB,300MB,1GB", value_parser = DiskSize::from_str)]
    pub sizes: Vec<DiskSize>,
    /// Size of the memory cache, in all cache configurations that have one
    #[arg(long, value_name = "SIZE", default_value = "51200KiB", value_parser = size)]
    pub memory: ByteSize,
    /// Medium for the disk cache; repeat the option to compare media [default: --directory]
    #[arg(long, value_name = "NAME=PATH", value_parser = Medium::from_str)]
    pub disk_at: Vec<Medium>,
    /// Only load the pages without the waits between resources (for scripts and timers) that a HAR
    /// file records [default: with them, and once more without]
    #[arg(long)]
    pub no_waits: bool,
    /// Protocol: h1 is HTTP/1.1, h2 is HTTP/2 with one connection to a host; of browsers for https alone
    #[arg(long, value_name = "PROTOCOL", default_value = "h1", value_enum)]
    pub protocol: Protocol,
    /// Number of connections that the loader opens to a host, over HTTP/1.1
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub connections: u16,
    /// Keep cached resources apart by the site of the page that loads them, as browsers do
    #[arg(long)]
    pub partition: bool,
    /// Also load the pages in these browsers, with their own caches: chromium, firefox, or a
    /// program that drives one, as rivals/chromium/run.py does
    #[arg(long = "browser", value_name = "BROWSERS", value_delimiter = ',')]
    pub browsers: Vec<String>,
    /// Number of blocks: each block loads all visits once with each cache, in random order
    #[arg(long, short, value_name = "N", default_value = "1", value_parser = count)]
    pub blocks: u64,
    /// Longest time for all loads, as in 20m: a link whose estimate is longer is skipped, and no
    /// further cache is measured when the time is over
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub time: Option<Duration>,
    /// Kill the loader, and Firefox if it is a browser of the run, this many times while the cache
    /// is written, and count what is left of the cache
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub kills: u32,
    /// Also print, for each medium and link, the smallest disk cache whose load time is within 2 %
    /// of the best
    #[arg(long)]
    pub advise: bool,
    /// Options that all experiments share.
    #[command(flatten)]
    pub run: RunOptions,
}

/// Options of the visits to pages, in addition to their order.
#[derive(Clone, Debug, Args)]
pub struct VisitOptions {
    /// Visit each page by links with another query parameter each time, which the page declares irrelevant
    /// (No-Vary-Search), and measure each cache also without knowledge of that field
    #[arg(long, conflicts_with_all = ["browsers", "kills"])]
    pub query_per_visit: bool,
}

/// Options of generated pages, in addition to their number and weight.
#[derive(Clone, Debug, Args)]
pub struct GeneratedOptions {
    /// Generate pages by https instead of http; pages of a HAR have the schemes that were recorded
    #[arg(long, conflicts_with = "hars")]
    pub https: bool,
}

/// The size of a disk cache: in bytes, or in per cent of the working set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DiskSize {
    /// A size in bytes.
    Bytes(u64),
    /// A part of the working set: 0.25 is a quarter.
    OfWorkingSet(f64),
}

impl DiskSize {
    /// Whether the disk cache would be smaller than the smallest cache file, and is therefore
    /// enlarged to that size.
    pub(super) fn is_raised(self, working_set_bytes: u64) -> bool {
        let is_below = |part: f64| part * (working_set_bytes as f64) < MIN_DISK_BYTES as f64;
        matches!(self, Self::OfWorkingSet(part) if is_below(part))
    }

    /// Returns the size of the disk cache in bytes, for pages whose working set has this size.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes below 2^53")]
    pub(super) fn bytes(self, working_set_bytes: u64) -> u64 {
        let bytes = match self {
            Self::Bytes(bytes) => bytes,
            // Rounded, so that people can read it.
            Self::OfWorkingSet(part) => (part * working_set_bytes as f64) as u64 / 10_000 * 10_000,
        };
        bytes.max(MIN_DISK_BYTES)
    }
}

impl fmt::Display for DiskSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => ByteSize(*bytes).fmt(f),
            Self::OfWorkingSet(part) => write!(f, "{} %", part * 100.0),
        }
    }
}

impl FromStr for DiskSize {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if let Some(percent) = text.strip_suffix('%') {
            return match percent.parse::<f64>() {
                Ok(percent) if percent > 0.0 && percent <= 1000.0 => {
                    Ok(Self::OfWorkingSet(percent / 100.0))
                }
                _ => bail!(
                    "write the size of a disk cache as a percentage of the working set, above 0 \
                     and up to 1000, such as 25%"
                ),
            };
        }
        disk_size(text).map(|ByteSize(bytes)| Self::Bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_parts_of_the_working_set() {
        assert_eq!("6MB".parse::<DiskSize>().unwrap().bytes(0), 6_000_000);
        assert_eq!("25%".parse::<DiskSize>().unwrap().bytes(40_000_000), 10_000_000);
        assert_eq!("25%".parse::<DiskSize>().unwrap().bytes(100), MIN_DISK_BYTES);
        let quarter: DiskSize = "25%".parse().unwrap();
        assert!(quarter.is_raised(4_000_000) && !quarter.is_raised(40_000_000));
        assert_eq!(quarter.to_string(), "25 %");
        assert!(!DiskSize::Bytes(MIN_DISK_BYTES).is_raised(0));
        for wrong in ["", "0%", "-1%", "x%", "1001%", "10KB", "0"] {
            assert!(wrong.parse::<DiskSize>().is_err(), "{wrong}");
        }
    }
}
