//! The loader, which loads pages as a browser does, as far as its cache is concerned.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use haypile::Cache;
use haypile_http::{Body, BoxError, Forwarded, HttpCache, Origin, Status};
use http::header::CACHE_CONTROL;
use http::uri::Authority;
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use tokio::time::{Instant, sleep};
use url::Url;
use xxhash_rust::xxh3::Xxh3Default;

use super::orders::{LoadReport, NoVarySearch, Protocol};
use super::wire::WireNames;
use crate::client::{Http1Client, Http2Client};
use crate::site::{Resource, Site};

/// The user whose browser this is.
const USER: &str = "user";
/// A response that takes longer is a failure.
const LIMIT: Duration = Duration::from_mins(2);
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");

/// A source of the HTTP clients with which a page loader sends requests to a site's servers, by scheme and host.
pub(super) trait Origins {
    type Origin: Origin;

    /// Returns the origin of requests to this host, by its scheme.
    fn of(&self, uri: &Uri) -> Self::Origin;
}

/// HTTP clients for all hosts of a site, which connect to two addresses: one for `http`, one for `https`.
#[derive(Debug)]
pub(super) struct Hosts {
    plain: SocketAddr,
    tls: SocketAddr,
    names: WireNames,
    protocol: Protocol,
    connections: usize,
    no_vary_search: NoVarySearch,
    /// Clients by the names of their servers.
    clients: RefCell<HashMap<String, HostClient>>,
}

impl Hosts {
    pub(super) fn new(
        (plain, tls): (SocketAddr, SocketAddr),
        names: WireNames,
        (protocol, connections): (Protocol, usize),
        no_vary_search: NoVarySearch,
    ) -> Self {
        let clients = RefCell::default();
        Self { plain, tls, names, protocol, connections, no_vary_search, clients }
    }
}

/// An HTTP client of a page loader for one host.
#[derive(Clone, Debug)]
pub(super) struct HostClient {
    client: ProtocolClient,
    /// The name of the server in requests, where it is not the host of their URLs.
    name: Option<Authority>,
    /// Whether the HTTP cache in front of the client gets to see this response field.
    no_vary_search: NoVarySearch,
}

#[derive(Clone, Debug)]
enum ProtocolClient {
    Http1(Http1Client),
    Http2(Http2Client),
}

impl Origin for HostClient {
    async fn send(self, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        if self.name.is_some() {
            let mut parts = request.uri().clone().into_parts();
            parts.authority = self.name;
            *request.uri_mut() = Uri::from_parts(parts)?;
        }
        let mut response = match self.client {
            ProtocolClient::Http1(client) => client.send(request).await?,
            ProtocolClient::Http2(client) => client.send(request).await?,
        };
        if self.no_vary_search == NoVarySearch::Ignored {
            response.headers_mut().remove("no-vary-search");
        }
        Ok(response)
    }
}

impl Origins for Hosts {
    type Origin = HostClient;

    fn of(&self, uri: &Uri) -> HostClient {
        let host = uri.host().unwrap_or_default().to_ascii_lowercase();
        let url = Url::parse(&uri.to_string()).ok();
        let name = url.as_ref().and_then(|url| self.names.get(url)).unwrap_or(&host).to_owned();
        let address = if uri.scheme_str() == Some("https") { self.tls } else { self.plain };
        let mut clients = self.clients.borrow_mut();
        let new = |name: &String| HostClient {
            client: match self.protocol {
                Protocol::H1 => ProtocolClient::Http1(Http1Client::new(address, self.connections)),
                Protocol::H2 => ProtocolClient::Http2(Http2Client::new(address)),
            },
            name: name.parse().ok().filter(|_| *name != host),
            no_vary_search: self.no_vary_search,
        };
        clients.entry(name).or_insert_with_key(new).clone()
    }
}

/// A page loader, which loads the pages of a site through an HTTP cache.
pub(super) struct Loader<'a, O> {
    site: &'a Site,
    checksums: &'a [u64],
    cache: Cache,
    is_partitioned: bool,
    largest_body_bytes: u64,
    /// The HTTP cache of each top-level site, or a single one.
    caches: RefCell<HashMap<String, HttpCache>>,
    origins: O,
}

/// The outcome of one request.
struct Loaded {
    status: Status,
    body_bytes: u64,
    is_right: bool,
}

impl<'a, O: Origins> Loader<'a, O> {
    pub(super) fn new(
        site: &'a Site,
        checksums: &'a [u64],
        cache: Cache,
        (is_partitioned, largest_body_bytes): (bool, u64),
        origins: O,
    ) -> Self {
        let caches = RefCell::default();
        Self { site, checksums, cache, is_partitioned, largest_body_bytes, caches, origins }
    }

    /// Loads the page with this index in the site through the HTTP cache, and returns the page load's times and counts.
    pub(super) async fn load(&self, page: usize) -> LoadReport {
        let loads = &self.site.pages[page].loads;
        let cache = self.cache_of(page);
        let mut report = LoadReport::default();
        let mut under_way = FuturesUnordered::new();
        let request = |number: usize| {
            let load = &loads[number];
            let (cache, resource) = (cache.clone(), &self.site.resources[load.resource]);
            let checksum = self.checksums[load.resource];
            async move {
                if !load.wait.is_zero() {
                    sleep(load.wait).await;
                }
                let loaded = tokio::time::timeout(LIMIT, self.twice(&cache, resource, checksum));
                let late = || (false, Err(format!("{} took longer than {LIMIT:?}", resource.url)));
                (number, loaded.await.unwrap_or_else(|_| late()))
            }
        };
        let begin = Instant::now();
        let mut needed = loads.iter().filter(|load| load.is_needed).count();
        let after = |number: Option<usize>| {
            let is_it = move |(_, load): &(usize, &crate::site::PageLoad)| load.after == number;
            loads.iter().enumerate().filter(is_it).map(|(number, _)| number)
        };
        under_way.extend(after(None).map(request));
        while let Some((number, (is_second, loaded))) = under_way.next().await {
            report.again += u64::from(is_second);
            report.add(loaded);
            needed -= usize::from(loads[number].is_needed);
            if needed == 0 && loads[number].is_needed {
                report.wall_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
            }
            // The loader requests children of a failed resource too: every column loads the same.
            under_way.extend(after(Some(number)).map(request));
        }
        report
    }

    /// The cache for a page: that of its top-level site, where the cache is partitioned.
    fn cache_of(&self, page: usize) -> HttpCache {
        let top = self.site.pages[page].loads.first();
        let top = top.filter(|_| self.is_partitioned).map(|load| {
            let url = Url::parse(&self.site.resources[load.resource].url);
            let host = url.ok().and_then(|url| Some(registrable(url.host_str()?).to_owned()));
            host.unwrap_or_default()
        });
        let partition = top.map_or_else(|| USER.to_owned(), |top| format!("{USER}@{top}"));
        let mut caches = self.caches.borrow_mut();
        let cache = caches.entry(partition).or_insert_with_key(|partition| {
            let cache = HttpCache::builder(self.cache.clone()).private(partition.clone());
            cache.largest_body(self.largest_body_bytes).build()
        });
        cache.clone()
    }

    /// Requests a resource, and once more, from the origin, if its body breaks off, as browsers do.
    /// Returns whether it did as well.
    async fn twice(
        &self,
        cache: &HttpCache,
        resource: &Resource,
        checksum: u64,
    ) -> (bool, Result<Loaded, String>) {
        match self.fetch(cache, resource, checksum, None).await {
            Ok(loaded) => (false, Ok(loaded)),
            Err(_) => (true, self.fetch(cache, resource, checksum, Some(NO_CACHE)).await),
        }
    }

    /// Requests a resource and reads its body.
    async fn fetch(
        &self,
        cache: &HttpCache,
        resource: &Resource,
        checksum: u64,
        cache_control: Option<HeaderValue>,
    ) -> Result<Loaded, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", resource.url);
        let uri: Uri = resource.url.parse().map_err(|error| failed(&error))?;
        let origin = self.origins.of(&uri);
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = uri;
        if let Some(value) = cache_control {
            request.headers_mut().insert(CACHE_CONTROL, value);
        }
        let response = cache.answer(origin, request).await.map_err(|error| failed(&error))?;
        let status = response.extensions().get::<Status>().cloned().unwrap_or_default();
        let code = response.status();
        let mut body = response.into_body();
        let (mut body_bytes, mut sum) = (0, Xxh3Default::new());
        while let Some(frame) = body.frame().await {
            if let Ok(piece) = frame.map_err(|error| failed(&error))?.into_data() {
                body_bytes += piece.len() as u64;
                sum.update(&piece);
            }
        }
        let is_expected = StatusCode::from_u16(resource.status).is_ok_and(|other| other == code);
        Ok(Loaded { status, body_bytes, is_right: is_expected && sum.digest() == checksum })
    }
}

impl LoadReport {
    fn add(&mut self, loaded: Result<Loaded, String>) {
        self.requests += 1;
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(failure) => {
                self.failed += 1;
                self.first_failure.get_or_insert(failure);
                return;
            }
        };
        let Loaded { status, body_bytes, is_right } = loaded;
        self.body_bytes += body_bytes;
        self.wrong += u64::from(!is_right);
        match status.forwarded {
            None => {
                self.hits += 1;
                self.hit_bytes += body_bytes;
                let level = status.level.as_deref().unwrap_or("cache").to_owned();
                *self.by_level.entry(level).or_default() += 1;
            }
            Some(Forwarded::Stale | Forwarded::Request) if status.origin_status == Some(304) => {
                self.revalidated += 1;
            }
            Some(_) => {}
        }
    }
}

/// The last two labels of a host: the site that it belongs to, where public suffixes have one label.
fn registrable(host: &str) -> &str {
    let mut dots = host.rmatch_indices('.').map(|(at, _)| at);
    let is_address = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match dots.nth(1) {
        Some(at) if !is_address => &host[at + 1..],
        _ => host,
    }
}

#[cfg(test)]
mod tests;
