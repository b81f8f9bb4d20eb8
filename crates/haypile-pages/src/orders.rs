//! The orders of a loader, and its reports: lines of JSON.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The first line that a loader reads. Then come orders, which it answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageOrders {
    /// The path of the site, as JSON.
    pub site: PathBuf,
    /// The path of the checksums of the bodies, as JSON: one number for each resource.
    pub checksums: PathBuf,
    /// The path of the same checksums by CRC-32, which a loader in any language can compute.
    #[serde(default)]
    pub crc32: PathBuf,
    /// Whether the loader of a browser reads and compares all bodies, which takes a part of the time of a load. Our own
    /// always does.
    #[serde(default)]
    pub compares_bodies: bool,
    /// The cache below the HTTP cache, as subjects are named; its file lies in the working directory.
    pub cache: String,
    /// The longest body that is stored, in bytes.
    pub largest_body_bytes: u64,
    /// Whether the file of another loader is used, and not a new one.
    pub is_kept: bool,
    /// The address that leads to the hosts of `http` URLs.
    pub plain: SocketAddr,
    /// The address that leads to the hosts of `https` URLs.
    pub tls: SocketAddr,
    /// The protocol to all hosts.
    #[serde(default)]
    pub protocol: Protocol,
    /// The number of connections to a host; 1 over HTTP/2.
    pub connections: usize,
    /// Whether each top-level site has a part of the cache for itself, as in browsers.
    pub is_partitioned: bool,
}

/// A version of HTTP. TLS costs its round trip by the scheme of a URL, whatever the version is.
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
    /// Returns the name of the protocol in options and rows.
    pub fn name(self) -> &'static str {
        match self {
            Self::H1 => "h1",
            Self::H2 => "h2",
        }
    }

    /// Returns the number of connections to a host: `wanted` over HTTP/1.1, and 1 over HTTP/2.
    pub fn connections(self, wanted: usize) -> usize {
        match self {
            Self::H1 => wanted,
            Self::H2 => 1,
        }
    }

    /// Checks that a number of connections was asked for only where that means something.
    pub fn check(self, is_number_written: bool) -> anyhow::Result<()> {
        if self == Self::H2 && is_number_written {
            anyhow::bail!("--connections is for HTTP/1.1: over HTTP/2 a host has one connection");
        }
        Ok(())
    }
}

/// A line after the first. The loader answers each with a line.
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

/// The report on the load of one page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReport {
    /// The time from the first request to the last byte that the page waits for; later loads of the page are not in it.
    pub wall_ns: u64,
    /// The processor time of the loader in the meantime.
    pub cpu_ns: u64,
    /// The number of requests.
    pub requests: u64,
    /// The number of responses from the cache without a request to the origin.
    pub hits: u64,
    /// The hits by level of the cache.
    pub by_level: BTreeMap<String, u64>,
    /// The number of stored responses that the origin confirmed by a 304.
    pub revalidated: u64,
    /// The number of bytes of all bodies.
    pub body_bytes: u64,
    /// The number of bytes of the bodies of hits.
    pub hit_bytes: u64,
    /// The number of responses with another status or other bytes than the site has.
    pub wrong: u64,
    /// The number of requests that were sent again, because the cache evicted a part of the response while it was read.
    pub again: u64,
    /// The number of requests without a whole response.
    pub failed: u64,
    /// The text of the first failure.
    pub first_failure: Option<String>,
}

/// The cache on disk as a browser found it when it started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemainsReport {
    /// The number of files of entries.
    pub entries: u64,
    /// The work that the index of the cache's entries needs: `read` it, `update` it by the files of all entries, or
    /// `rebuild` it from them.
    pub index: String,
}

/// The report on writing the cache to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FlushReport {
    /// The time that writing took, in nanoseconds.
    pub(super) wall_ns: u64,
}
