//! The orders of a loader, and its reports: lines of JSON.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The settings of a page loader, which it reads as the first line of its standard input; the lines after it are
/// orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageOrders {
    /// The path of the JSON file that describes the site to load.
    pub site: PathBuf,
    /// The path of the JSON file with the checksums of the bodies of a site's resources: one number for each resource.
    pub checksums: PathBuf,
    /// The path of the file with the CRC-32 checksums of the site's bodies, which a loader in any language can compute.
    #[serde(default)]
    pub crc32: PathBuf,
    /// Whether the loader of a browser compares all bodies with their checksums, which slows a load down. Our own
    /// loader always does.
    #[serde(default)]
    pub compares_bodies: bool,
    /// The name of the cache to measure, as results have it, such as `memory:size=32MiB`; its file is in the working
    /// directory.
    pub cache: String,
    /// The length of the longest body that the HTTP cache stores, in bytes.
    pub largest_body_bytes: u64,
    /// Whether the HTTP cache knows the response field `No-Vary-Search`. Our own loader alone can leave it out.
    #[serde(default)]
    pub no_vary_search: NoVarySearch,
    /// Whether the loader opens the cache file of an earlier loader instead of a new one.
    pub is_kept: bool,
    /// The address to which the loader sends all requests for `http` URLs.
    pub plain: SocketAddr,
    /// The address to which the loader sends all requests for `https` URLs.
    pub tls: SocketAddr,
    /// The version of HTTP that the loader uses with all hosts.
    #[serde(default)]
    pub protocol: Protocol,
    /// The certificates for `https`; `None` if the site has no such URL, and for our own loader, whose
    /// link emulates TLS.
    #[serde(default)]
    pub https: Option<HttpsOrders>,
    /// The number of connections that the loader opens to a host; 1 over HTTP/2.
    pub connections: usize,
    /// Whether the HTTP cache is partitioned by the site of the page, as in browsers.
    pub is_partitioned: bool,
}

/// The effect of the response field `No-Vary-Search`, by which a response names query parameters that make no
/// difference to it, on an HTTP cache.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum NoVarySearch {
    /// The cache knows the field: a stored response answers all URLs that differ in these parameters alone.
    #[default]
    Heeded,
    /// The cache does not know the field.
    Ignored,
}

/// The certificates of a run, of which a browser knows nothing before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpsOrders {
    /// The certificate of the authority that the browser has to trust, DER in base64.
    pub authority: String,
    /// The identity of a host for the loader's own check page; `None` if the document of the site's first page is
    /// `http`.
    pub check: Option<CheckIdentity>,
}

/// The certificate of a host whose pages the loader serves itself, to check the browser's cache by them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckIdentity {
    /// The name of the host. It belongs to the same site as the document of the first page.
    pub host: String,
    /// The certificate of the host, DER in base64.
    pub certificate: String,
    /// The private key of the certificate, the DER of PKCS #8 in base64.
    pub key: String,
}

/// A version of HTTP: HTTP/1.1 or HTTP/2. TLS adds its round trip by the scheme of a URL, whatever the version is.
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

    /// Returns the number of connections that a loader opens to a host: `wanted` with HTTP/1.1, and 1 with HTTP/2.
    pub fn connections(self, wanted: usize) -> usize {
        match self {
            Self::H1 => wanted,
            Self::H2 => 1,
        }
    }

    /// Returns an error if the user set the number of connections, and HTTP/2 is used, which has one.
    pub fn check(self, is_number_written: bool) -> anyhow::Result<()> {
        if self == Self::H2 && is_number_written {
            anyhow::bail!("--connections is for HTTP/1.1: over HTTP/2 a host has one connection");
        }
        Ok(())
    }
}

/// An order to a page loader, such as to load a page. The loader answers each with a line on its standard output.
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

/// A loader's report on loading one page, with times and counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReport {
    /// The time from the page's first request to the last byte that the page waits for, in nanoseconds; loads after
    /// that are left out.
    pub wall_ns: u64,
    /// The processor time that the loader used during the page load, in nanoseconds.
    pub cpu_ns: u64,
    /// The number of requests that the page made, from the cache or the origin.
    pub requests: u64,
    /// The number of responses to the page that came from the cache, without a request to the origin.
    pub hits: u64,
    /// The number of responses to the page that came from the HTTP cache, by the cache's level (memory or file) that
    /// had them.
    pub by_level: BTreeMap<String, u64>,
    /// The number of stored responses that the origin confirmed by a 304, during the page load.
    pub revalidated: u64,
    /// The total length of the bodies of the page's responses, in bytes.
    pub body_bytes: u64,
    /// The total length of the bodies that came from the cache during the page load, in bytes.
    pub hit_bytes: u64,
    /// The number of responses to the page whose status or bytes differ from the site's.
    pub wrong: u64,
    /// The number of requests that the loader repeated because the cache evicted a part of the response while it was
    /// read.
    pub again: u64,
    /// The number of the page's requests without a complete response.
    pub failed: u64,
    /// The text of the first failure of a request during the page load.
    pub first_failure: Option<String>,
}

/// The state of the disk cache that a browser found when it started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemainsReport {
    /// The number of files with entries in the browser's disk cache.
    pub entries: u64,
    /// The work that the index of the browser's disk cache needs: `read` it, `update` it from the files of all entries,
    /// or `rebuild` it from them.
    pub index: String,
}

/// A loader's report on writing its HTTP cache to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FlushReport {
    /// The time that the loader took to write its HTTP cache to disk, in nanoseconds.
    pub(super) wall_ns: u64,
}
