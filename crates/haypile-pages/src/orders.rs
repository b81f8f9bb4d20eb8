//! The orders of a loader, and its reports: lines of JSON.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The settings of a loader, which it reads as its first line; lines after it are orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageOrders {
    /// The path of the JSON file with the site.
    pub site: PathBuf,
    /// The path of the JSON file with the bodies' checksums: one number for each resource.
    pub checksums: PathBuf,
    /// The path of the file with the bodies' CRC-32 checksums, which a loader in any language can
    /// compute.
    #[serde(default)]
    pub crc32: PathBuf,
    /// Whether a browser's loader compares all bodies with their checksums, which slows a load
    /// down. Our own loader always does.
    #[serde(default)]
    pub compares_bodies: bool,
    /// The cache on which the HTTP cache is based, named like a subject; its file is in the working
    /// directory.
    pub cache: String,
    /// The length of the longest body that is stored, in bytes.
    pub largest_body_bytes: u64,
    /// Whether the loader opens the cache file of an earlier loader instead of a new one.
    pub is_kept: bool,
    /// The address that stands for all hosts of `http` URLs.
    pub plain: SocketAddr,
    /// The address that stands for all hosts of `https` URLs.
    pub tls: SocketAddr,
    /// The version of HTTP for all hosts.
    #[serde(default)]
    pub protocol: Protocol,
    /// The number of connections to a host; 1 over HTTP/2.
    pub connections: usize,
    /// Whether the cache is partitioned by top-level site, as in browsers.
    pub is_partitioned: bool,
}

/// A version of HTTP. TLS adds its round trip by the scheme of a URL, whatever the version is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// HTTP/1.1, one request after the other over each connection.
    #[default]
    H1,
    /// HTTP/2, all requests to a host over one connection.
    H2,
}

impl Protocol {
    /// Returns the name of the HTTP version in options and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::H1 => "h1",
            Self::H2 => "h2",
        }
    }

    /// Returns the number of connections to a host: `wanted` with HTTP/1.1, and 1 with HTTP/2.
    pub fn connections(self, wanted: usize) -> usize {
        match self {
            Self::H1 => wanted,
            Self::H2 => 1,
        }
    }

    /// Returns an error if the user set a number of connections with HTTP/2, which has one.
    pub fn check(self, is_number_written: bool) -> anyhow::Result<()> {
        if self == Self::H2 && is_number_written {
            anyhow::bail!("--connections is for HTTP/1.1: over HTTP/2 a host has one connection");
        }
        Ok(())
    }
}

/// An order to a loader, such as to load a page. The loader answers each with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Order {
    /// Loads the page of this number. The answer is a [`LoadReport`].
    Load(usize),
    /// Writes the cache to disk. The answer is a [`FlushReport`].
    Flush,
    /// Reports the state of the cache that the browser found when it started. The answer is a [`RemainsReport`].
    Remains,
}

/// A report on loading one page: times and counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReport {
    /// The time from the first request to the last byte that the page waits for, in nanoseconds;
    /// loads after that are left out.
    pub wall_ns: u64,
    /// The processor time of the loader during the page load, in nanoseconds.
    pub cpu_ns: u64,
    /// The number of requests of the page load.
    pub requests: u64,
    /// The number of responses from the cache that needed no request to the origin.
    pub hits: u64,
    /// The number of hits by level of the cache.
    pub by_level: BTreeMap<String, u64>,
    /// The number of stored responses that the origin confirmed by a 304.
    pub revalidated: u64,
    /// The total length of all bodies in bytes.
    pub body_bytes: u64,
    /// The total length of the bodies of hits in bytes.
    pub hit_bytes: u64,
    /// The number of responses whose status or bytes differ from the site's.
    pub wrong: u64,
    /// The number of requests that were repeated because the cache evicted a part of the response
    /// while it was read.
    pub again: u64,
    /// The number of requests without a complete response.
    pub failed: u64,
    /// The text of the page load's first failure.
    pub first_failure: Option<String>,
}

/// The state of the disk cache that a browser found when it started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemainsReport {
    /// The number of files with cache entries.
    pub entries: u64,
    /// The work that the browser's cache index needs: `read` it, `update` it from the files of all
    /// entries, or `rebuild` it from them.
    pub index: String,
}

/// The report on writing the cache to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FlushReport {
    /// The time that writing the cache to disk took, in nanoseconds.
    pub(super) wall_ns: u64,
}
