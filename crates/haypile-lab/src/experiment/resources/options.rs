//! Options of `haypile lab resources`.

use std::path::PathBuf;

use clap::Args;
use haypile::ByteSize;
use haypile_origin::link::LinkProfile;

use crate::experiment::on_pages::options::{Medium, disk_size, link};
use crate::experiment::session::RunOptions;
use crate::experiment::value::{count, size};
use haypile_pages::Protocol;

/// Command-line options of the experiment `resources`.
#[derive(Clone, Debug, Args)]
#[command(about = "Load a list of resources, some of which cause others, through an HTTP cache")]
#[command(after_help = "\
The driver that the Necko benchmarks wished for: it loads all resources of a list and measures how
long that takes, first with an empty cache and then again. A line of a list has a URL, a size, and
words of Cache-Control; a deeper line is caused by the line above it that is less deep:

  http://site.test/index.html 20KB max-age=0 etag
    http://site.test/style.css 12KB max-age=86400
      http://site.test/font.woff2 40KB max-age=31536000
    http://site.test/app.js 90KB no-store

A HAR file (.har) works as well: its first page is loaded.

--browser firefox loads the same list in Firefox as well, through its own HTTP cache (Necko): none,
memory, disk, both, and none behind haypile proxy. Each resource is a request of the browser, made when
the one that causes it has come, so that no page is needed, and bodies are any bytes. Its rows are called
necko. All bodies are compared, and the requests to the origin counted. The list has http:// alone.

Examples:
  haypile lab resources
  haypile lab resources page.txt --links unshaped,wifi
  haypile lab resources page.txt --browser firefox --size 10MB
  haypile lab resources visit.har --connections 2 --size 20MB")]
#[command(mut_arg("timeout", |arg| arg.help("Seconds after which a load is an error")))]
pub struct ResourcesOptions {
    /// File with a list of resources, or a HAR file [default: a small page]
    #[arg(value_name = "LIST|HAR")]
    pub list: Option<PathBuf>,
    /// Emulated networks over which the list is loaded; haypile lab pages --help lists them
    #[arg(long, value_name = "LINKS", value_delimiter = ',', default_value = "unshaped", value_parser = link)]
    pub links: Vec<LinkProfile>,
    /// Size of the memory cache in which the loader keeps resources
    #[arg(long, value_name = "SIZE", default_value = "51200KiB", value_parser = size)]
    pub memory: ByteSize,
    /// Size of the disk cache in which the loader keeps resources
    #[arg(long, value_name = "SIZE", default_value = "100MB", value_parser = disk_size)]
    pub size: ByteSize,
    /// Leave out the waits between resources (for scripts and timers) that a HAR file records
    #[arg(long)]
    pub no_waits: bool,
    /// Protocol: h1 is HTTP/1.1, h2 is HTTP/2 with one connection to a host
    #[arg(long, value_name = "PROTOCOL", default_value = "h1", value_enum)]
    pub protocol: Protocol,
    /// Number of connections that the loader opens to a host, over HTTP/1.1
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub connections: u16,
    /// Also load the list in this browser, with its own caches: firefox, or a program that follows orders
    /// as rivals/firefox/lists.py does
    #[arg(long = "browser", value_name = "BROWSERS", value_delimiter = ',')]
    pub browsers: Vec<String>,
    /// Number of blocks: each block loads the list twice with each cache, in random order
    #[arg(long, short, value_name = "N", default_value = "5", value_parser = count)]
    pub blocks: u64,
    /// Medium for the disk cache; repeat the option to compare media [default: --directory]
    #[arg(long, value_name = "NAME=PATH")]
    pub disk_at: Vec<Medium>,
    /// Options that all experiments share.
    #[command(flatten)]
    pub run: RunOptions,
}
