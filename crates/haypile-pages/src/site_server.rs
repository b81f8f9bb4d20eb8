//! The server of a site, the link to it, and the counts of its requests.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use bytes::Bytes;
use haypile_origin::link::{LinkEmulator, LinkProfile};
use haypile_origin::server::{BodySource, OriginCounts, Reply, Script, ScriptedOrigin};
use http::header::CONTENT_ENCODING;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use super::orders::Protocol;
use super::wire::WireNames;
use crate::site::{Resource, Site};

/// Bodies of a smaller site stay in memory, so that making them takes no time from loading them.
const MOST_IN_MEMORY: u64 = 512 << 20;

/// An HTTP server of a site on the loopback device, which clients reach directly or over an
/// emulated network link.
pub struct SiteServer {
    origin: ScriptedOrigin,
    link: Option<LinkEmulator>,
    /// Host and path of each resource.
    places: Vec<(String, String)>,
    files: tempfile::TempDir,
}

/// The counts of a site's server during one page load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct LoadCounts {
    /// The number of requests that the server answered during the page load.
    pub requests: u64,
    /// The number of bytes of bodies that the server sent during the page load.
    pub body_bytes: u64,
    /// The number of responses without a body (304) to conditional requests, during the page load.
    pub not_modified: u64,
    /// The number of requests for the rest of a response, a part of which the cache evicted while
    /// it was read.
    pub rests: u64,
    /// The number of connections that the server accepted during the page load.
    pub connections: u64,
}

impl SiteServer {
    /// Starts an HTTP server of a site, and writes the files about the site that page loaders read.
    ///
    /// # Errors
    ///
    /// A resource that cannot be served, or what the system says.
    pub fn start(site: &Site, protocol: Protocol) -> anyhow::Result<Self> {
        let total: u64 = site.resources.iter().map(Resource::body_len).sum();
        let mut script = Script::new([Reply::empty(StatusCode::NOT_FOUND)]);
        let names = WireNames::of(site);
        let mut places = Vec::with_capacity(site.resources.len());
        let mut checksums = Vec::with_capacity(site.resources.len());
        let mut crc32 = Vec::with_capacity(site.resources.len());
        for resource in &site.resources {
            let place = place(&names, &resource.url).with_context(|| resource.url.clone())?;
            let body = Bytes::from(resource.body_bytes());
            checksums.push(xxh3_64(&body));
            crc32.push(crc32fast::hash(&body));
            let body = if total <= MOST_IN_MEMORY {
                BodySource::from(body)
            } else {
                let body = resource.body.clone();
                BodySource::from_fn(body.len(), Arc::new(move || body.bytes().into()))
            };
            let reply = reply(resource, body).with_context(|| resource.url.clone())?;
            script = script.on_host(&place.0, place.1.clone(), [reply]);
            places.push(place);
        }
        if protocol == Protocol::H2 {
            script = script.over_http2();
        }
        let files = tempfile::tempdir().context("there is no directory for a site")?;
        fs::write(files.path().join(SITE), serde_json::to_vec(site)?)?;
        fs::write(files.path().join(CHECKSUMS), serde_json::to_vec(&checksums)?)?;
        fs::write(files.path().join(CRC32), serde_json::to_vec(&crc32)?)?;
        let origin = ScriptedOrigin::start_in_thread(script).context("no site can be served")?;
        Ok(Self { origin, link: None, places, files })
    }

    /// Changes the emulated network link over which clients reach the server.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn over(&mut self, profile: &LinkProfile, seed: u64) -> io::Result<()> {
        self.link = None;
        if *profile != LinkProfile::unshaped() {
            let origin = self.origin.address();
            self.link = Some(LinkEmulator::start_in_thread(profile.clone(), seed, origin)?);
        }
        Ok(())
    }

    /// Returns the addresses of the server: one for `http`, and one for `https`.
    pub fn addresses(&self) -> (SocketAddr, SocketAddr) {
        match &self.link {
            Some(link) => (link.address(), link.tls_address()),
            None => (self.origin.address(), self.origin.address()),
        }
    }

    /// Returns the path of the JSON file, written at the server's start, that describes the site
    /// for page loaders.
    pub fn site_file(&self) -> PathBuf {
        self.file(SITE)
    }

    /// Returns the path of the file with the checksums of the site's bodies, for page loaders.
    pub fn checksums_file(&self) -> PathBuf {
        self.file(CHECKSUMS)
    }

    /// Returns the path of the file with the CRC-32 checksums of the site's bodies, for page
    /// loaders.
    pub fn crc32_file(&self) -> PathBuf {
        self.file(CRC32)
    }

    fn file(&self, name: &str) -> PathBuf {
        Path::new(self.files.path()).join(name)
    }

    /// Returns the counts of the server since its start, to be subtracted from later ones.
    pub fn counts(&self) -> OriginCounts {
        self.origin.counts()
    }

    /// Returns the number of requests for each resource of the site since the server's start.
    pub fn requests_by_resource(&self) -> Vec<u64> {
        let requests = |(host, path): &(String, String)| self.origin.requests_for_host(host, path);
        self.places.iter().map(requests).collect()
    }
}

impl LoadCounts {
    /// Returns the numbers of requests and body bytes of the page load, by which cache
    /// configurations differ.
    pub fn seen(self) -> (u64, u64) {
        (self.requests, self.body_bytes)
    }
}

impl From<OriginCounts> for LoadCounts {
    fn from(counts: OriginCounts) -> Self {
        Self {
            requests: counts.requests,
            body_bytes: counts.body_bytes,
            not_modified: counts.replies_304,
            rests: counts.replies_206,
            connections: counts.connections,
        }
    }
}

const SITE: &str = "site.json";
const CHECKSUMS: &str = "checksums.json";
const CRC32: &str = "crc32.json";

/// Returns host and path with query, as requests for a URL have them.
fn place(names: &WireNames, url: &str) -> anyhow::Result<(String, String)> {
    let url = Url::parse(url)?;
    let host = names.get(&url).context("a URL without a host")?.to_owned();
    let query = url.query().map_or_else(String::new, |query| format!("?{query}"));
    Ok((host, format!("{}{query}", url.path())))
}

fn reply(resource: &Resource, body: BodySource) -> anyhow::Result<Reply> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(resource.status)?;
    for (name, value) in &resource.headers {
        let (name, value) = (HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
        response.headers_mut().append(name, value);
    }
    if let Some(coding) = resource.body.coding() {
        response.headers_mut().append(CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
    }
    Ok(Reply::from(response).answering_conditions().answering_ranges())
}
