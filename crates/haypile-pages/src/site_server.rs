//! The server of a site, the link to it, and the counts of its requests.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use haypile_origin::link::{LinkEmulator, LinkOrigins, LinkProfile};
use haypile_origin::server::{
    Alpn, BodySource, OriginCounts, PathCounts, Reply, Script, ScriptedOrigin, TlsAuthority,
};
use http::header::CONTENT_ENCODING;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use url::Url;
use xxhash_rust::xxh3::xxh3_64;

use super::orders::{CheckIdentity, HttpsOrders, Protocol};
use super::wire::WireNames;
use crate::site::{Resource, Site};

/// Bodies of a smaller site stay in memory, so that making them takes no time from loading them.
const MOST_IN_MEMORY: u64 = 512 << 20;

/// An HTTP server of a site on the loopback device, which clients reach directly or over an
/// emulated network link.
pub struct SiteServer {
    origin: ScriptedOrigin,
    link: Option<LinkEmulator>,
    /// The place of each resource.
    places: Vec<Place>,
    /// The orders about its certificates, if it has any.
    https: Option<HttpsOrders>,
    files: tempfile::TempDir,
}

/// Scheme, host and path with query of requests for a resource, as they reach the server.
struct Place {
    is_over_tls: bool,
    host: String,
    path: String,
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
    /// Number of the requests that came over TLS.
    pub tls_requests: u64,
    /// Number of the requests that came over HTTP/2.
    pub http2_requests: u64,
}

impl SiteServer {
    /// Starts a server of a site for our own loader, and writes the files that it needs to know about the site. The
    /// server has no TLS: a link emulates its round trip.
    ///
    /// # Errors
    ///
    /// A resource that cannot be served, or what the system says.
    pub fn start(site: &Site, protocol: Protocol) -> anyhow::Result<Self> {
        let mut script = Script::new([Reply::empty(StatusCode::NOT_FOUND)]);
        if protocol == Protocol::H2 {
            script = script.over_http2();
        }
        let names = WireNames::of(site);
        Self::serving(site, script, None, |url| {
            let host = names.get(url).context("a URL without a host")?.to_owned();
            Ok(Place { is_over_tls: false, host, path: path(url) })
        })
    }

    /// Starts a server of a site for browsers. It serves `https` over TLS, with HTTP/2 or HTTP/1.1, and `http` over
    /// HTTP/1.1, as all browsers do.
    ///
    /// # Errors
    ///
    /// A resource that cannot be served, or what the system says.
    pub fn for_browsers(site: &Site, protocol: Protocol) -> anyhow::Result<Self> {
        let mut script = Script::new([Reply::empty(StatusCode::NOT_FOUND)]);
        let mut https = None;
        if site.has_https() {
            let authority = TlsAuthority::new().context("no certificates can be made")?;
            https = Some(https_orders(site, &authority)?);
            let alpn = match protocol {
                Protocol::H1 => Alpn::Http1,
                Protocol::H2 => Alpn::Http2,
            };
            script = script.with_tls(Arc::new(authority), alpn);
        }
        Self::serving(site, script, https, |url| {
            let host = url.host_str().context("a URL without a host")?.to_owned();
            Ok(Place { is_over_tls: url.scheme() == "https", host, path: path(url) })
        })
    }

    fn serving(
        site: &Site,
        mut script: Script,
        https: Option<HttpsOrders>,
        place: impl Fn(&Url) -> anyhow::Result<Place>,
    ) -> anyhow::Result<Self> {
        let total: u64 = site.resources.iter().map(Resource::body_len).sum();
        let mut places = Vec::with_capacity(site.resources.len());
        let mut checksums = Vec::with_capacity(site.resources.len());
        let mut crc32 = Vec::with_capacity(site.resources.len());
        for resource in &site.resources {
            let url = Url::parse(&resource.url).with_context(|| resource.url.clone())?;
            let place = place(&url).with_context(|| resource.url.clone())?;
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
            script = if place.is_over_tls {
                script.on_https_host(&place.host, place.path.clone(), [reply])
            } else {
                script.on_host(&place.host, place.path.clone(), [reply])
            };
            places.push(place);
        }
        let files = tempfile::tempdir().context("there is no directory for a site")?;
        fs::write(files.path().join(SITE), serde_json::to_vec(site)?)?;
        fs::write(files.path().join(CHECKSUMS), serde_json::to_vec(&checksums)?)?;
        fs::write(files.path().join(CRC32), serde_json::to_vec(&crc32)?)?;
        let origin = ScriptedOrigin::start_in_thread(script).context("no site can be served")?;
        Ok(Self { origin, link: None, places, https, files })
    }

    /// Changes the emulated network link over which clients reach the server.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn over(&mut self, profile: &LinkProfile, seed: u64) -> io::Result<()> {
        self.link = None;
        if *profile != LinkProfile::unshaped() {
            let origins =
                LinkOrigins { plain: self.origin.address(), tls: self.origin.tls_address() };
            self.link = Some(LinkEmulator::start_in_thread(profile.clone(), seed, origins)?);
        }
        Ok(())
    }

    /// Returns the addresses of the server: one for `http`, and one for `https`.
    pub fn addresses(&self) -> (SocketAddr, SocketAddr) {
        if let Some(link) = &self.link {
            return (link.address(), link.tls_address());
        }
        let plain = self.origin.address();
        (plain, self.origin.tls_address().unwrap_or(plain))
    }

    /// Returns the orders about its certificates, if the server has TLS.
    pub(super) fn https(&self) -> Option<&HttpsOrders> {
        self.https.as_ref()
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
        let counts = |Place { is_over_tls, host, path }: &Place| -> PathCounts {
            if *is_over_tls {
                self.origin.counts_for_https_host(host, path)
            } else {
                self.origin.counts_for_host(host, path)
            }
        };
        self.places.iter().map(|place| counts(place).requests).collect()
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
            tls_requests: counts.tls_requests,
            http2_requests: counts.http2_requests,
        }
    }
}

const SITE: &str = "site.json";
const CHECKSUMS: &str = "checksums.json";
const CRC32: &str = "crc32.json";

/// Returns path and query, as requests for a URL have them.
fn path(url: &Url) -> String {
    let query = url.query().map_or_else(String::new, |query| format!("?{query}"));
    format!("{}{query}", url.path())
}

/// The beginning of the name of the host whose pages a browser's loader serves itself.
const CHECK_HOST: &str = "check";

/// Returns the orders about the certificates of a site.
fn https_orders(site: &Site, authority: &TlsAuthority) -> anyhow::Result<HttpsOrders> {
    let document = site.pages.first().and_then(|page| {
        let place = site.document_of(page)?;
        Some(&site.resources[page.loads[place].resource])
    });
    let check = match document.filter(|document| document.is_https()) {
        None => None,
        Some(document) => {
            let url = Url::parse(&document.url)?;
            let host = format!("{CHECK_HOST}.{}", url.host_str().context("a URL without a host")?);
            let identity = authority.identity(&host)?;
            Some(CheckIdentity {
                host,
                certificate: STANDARD.encode(&identity.certificate_der),
                key: STANDARD.encode(&identity.key_der),
            })
        }
    };
    Ok(HttpsOrders { authority: STANDARD.encode(authority.certificate_der()), check })
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

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::site::generate::{Generator, Percentile};
    use crate::site::list;

    fn generated(is_https: bool) -> Site {
        let generator = Generator::at_percentile(1, 1, Percentile::P10);
        Generator { is_https, ..generator }.generate(UNIX_EPOCH).unwrap()
    }

    #[test]
    fn browsers_get_an_authority_and_a_port_of_tls_where_a_site_has_https() {
        let plain = SiteServer::for_browsers(&generated(false), Protocol::H1).unwrap();
        assert_eq!(plain.https(), None);
        assert_eq!(plain.addresses().0, plain.addresses().1);
        for protocol in [Protocol::H1, Protocol::H2] {
            let mut server = SiteServer::for_browsers(&generated(true), protocol).unwrap();
            assert_ne!(server.addresses().0, server.addresses().1);
            let https = server.https().unwrap().clone();
            assert_eq!(https.check.unwrap().host, "check.www.site.test");
            // The DER of a certificate is a sequence with two bytes of length.
            assert!(https.authority.starts_with("MII"), "{}", https.authority);
            let direct = server.addresses();
            server.over(&"rtt=1ms".parse().unwrap(), 1).unwrap();
            let (plain, tls) = server.addresses();
            assert!(plain != tls && plain != direct.0 && tls != direct.1);
        }
        // Our own loader is served as ever.
        let own = SiteServer::start(&generated(true), Protocol::H1).unwrap();
        assert_eq!((own.https(), own.addresses().0), (None, own.addresses().1));
    }

    #[test]
    fn the_check_has_a_certificate_only_if_the_first_document_is_https() {
        let text = "[one]\nhttp://a.test/ 1KB\n  https://b.test/ 1KB\n";
        let site = list::parse(Path::new("site"), text.as_bytes()).unwrap().site;
        let server = SiteServer::for_browsers(&site, Protocol::H1).unwrap();
        assert_eq!(server.https().unwrap().check, None);
    }
}
