//! The servers behind the proxy.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, Version};
use hyper::body::{Body as _, Incoming};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self as client, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::connection::{Connector, Used};
use super::expect::{Awaited, Silence};
use super::health::{DownAfter, Health, Sent};
use super::limits::Limits;
use super::metrics::{AskedOrigin, DownOrigins, Metrics};
use super::pause;
use super::request::canonical;
use super::upload::OriginsTurn;
use crate::cache::{Body, BoxError, CloseDelimited, Origin, causes};
use crate::semantics::remove_hop_by_hop;

/// The origin server of a proxy for one host, or for all hosts that have none of their own: `http://127.0.0.1:8000`, or
/// `example.org=https://127.0.0.1:8443`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginServer {
    /// The host name of requests for this origin, in lower case, with its port unless it is the scheme's default;
    /// `None` for all other hosts.
    pub host: Option<String>,
    scheme: Scheme,
    authority: Authority,
    /// The name that the origin's certificate has to be for.
    name: ServerName<'static>,
}

impl FromStr for OriginServer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, url) = match text.to_ascii_lowercase().split_once("=http") {
            Some((host, _)) => (Some(asked_host(host)?), &text[host.len() + 1..]),
            None => (None, text),
        };
        let example = "for example http://127.0.0.1:8000, or example.org=http://127.0.0.1:8000";
        let uri: Uri = url.parse().map_err(|error| format!("{error}; {example}"))?;
        let scheme = uri.scheme().filter(|scheme| [Scheme::HTTP, Scheme::HTTPS].contains(scheme));
        let (Some(scheme), Some(authority)) = (scheme, uri.authority()) else {
            return Err(format!("this is not the URL of a server; {example}"));
        };
        if uri.path() != "/" || uri.query().is_some() || authority.as_str().contains('@') {
            return Err(format!("an origin has no user, path or query; {example}"));
        }
        let names_port = authority.as_str().len() > authority.host().len();
        if names_port && authority.port_u16().is_none_or(|port| port == 0) {
            return Err(format!("the port is not between 1 and 65535; {example}"));
        }
        let name = server_name(host.as_deref(), authority)
            .map_err(|error| format!("this is not a host: {error}; {example}"))?;
        Ok(Self { host, scheme: scheme.clone(), authority: authority.clone(), name })
    }
}

/// Returns a host as those of requests are compared with it.
fn asked_host(text: &str) -> Result<String, String> {
    if text.contains('*') {
        let all = "an origin without HOST= is for all hosts that have none of their own";
        return Err(format!("'{text}' is not a host, and * stands for nothing; {all}"));
    }
    let host = text.parse().ok().and_then(canonical);
    let host =
        host.ok_or("before '=' stands the host that clients ask for, such as example.org")?;
    Ok(host.as_str().to_owned())
}

/// Returns the name by which an origin's certificate is verified: the host of its URL; where that is
/// an address, the host that it answers for, if it is for one only.
fn server_name(
    host: Option<&str>,
    authority: &Authority,
) -> Result<ServerName<'static>, InvalidDnsNameError> {
    let name = |host: &str| {
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        ServerName::try_from(host).map(|name| name.to_owned())
    };
    let of_url = name(authority.host())?;
    match host.and_then(|host| host.parse::<Authority>().ok()) {
        Some(host) if matches!(of_url, ServerName::IpAddress(_)) => name(host.host()),
        _ => Ok(of_url),
    }
}

impl fmt::Display for OriginServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://{}", self.scheme, self.authority)
    }
}

/// The reason why an origin's response did not arrive.
#[derive(Debug, thiserror::Error)]
pub(super) enum OriginError {
    #[error("the origin {0} did not begin its response within {1:?}")]
    TooSlow(String, Duration),
    #[error("the origin {0} cannot be reached: {1}")]
    NotConnected(String, String),
    #[error("the origin {0} broke off its response: {1}")]
    Failed(String, String),
    /// The origin was not asked, because it is down.
    #[error("the origin {0} counts as down after failures; it is tried again in {1:?}")]
    Down(String, Duration),
    /// The client failed to send the whole request.
    #[error(
        "the client did not send its whole request, so that the origin {0} did not get it: {1}"
    )]
    Request(String, String),
}

/// The most fields of a response.
const MOST_FIELDS: usize = 1000;

type OriginClient = Client<HttpsConnector<Connector>, Body>;

/// The origin servers of a proxy, by the host of requests.
#[derive(Debug)]
pub(super) struct Origins {
    by_host: HashMap<String, Upstream>,
    other: Option<Upstream>,
}

/// The way to an origin.
#[derive(Debug)]
struct Way {
    server: OriginServer,
    /// The HTTP client of this origin alone: a connection that was verified for one host must not
    /// serve another.
    client: OriginClient,
    /// The same, with a new connection for each request.
    new_connections: OriginClient,
    limits: Limits,
    silence: Silence,
    health: Health,
    metrics: Arc<Metrics>,
}

/// The origin server that answers the requests for one host.
#[derive(Clone, Debug)]
pub(super) struct Upstream(Arc<Way>);

impl Origins {
    pub(super) fn new(
        servers: Vec<OriginServer>,
        limits: Limits,
        down_after: DownAfter,
        metrics: &Arc<Metrics>,
    ) -> Result<Self, BoxError> {
        let speaks_tls = servers.iter().any(|server| server.scheme == Scheme::HTTPS);
        let tls = tls(speaks_tls)?;
        let mut by_host = HashMap::new();
        let mut other = None;
        for server in servers {
            let client = new_client(&server, &tls, limits, usize::MAX);
            let new_connections = new_client(&server, &tls, limits, 0);
            let (health, metrics) = (Health::new(down_after), Arc::clone(metrics));
            let silence = Silence::default();
            let way = Way { server, client, new_connections, limits, silence, health, metrics };
            let upstream = Upstream(Arc::new(way));
            let server = &upstream.0.server;
            let before: Option<Upstream> = match &server.host {
                Some(host) => by_host.insert(host.clone(), upstream.clone()),
                None => other.replace(upstream.clone()),
            };
            if let Some(Upstream(before)) = before {
                let before = &before.server;
                return Err(format!("{before} and {server} are origins of the same host").into());
            }
        }
        Ok(Self { by_host, other })
    }

    /// Returns the counts of origin servers that are down, and of requests that were not sent to them.
    pub(super) fn down(&self) -> DownOrigins {
        let all = || self.by_host.values().chain(&self.other).map(|upstream| &upstream.0.health);
        DownOrigins {
            origins: all().filter(|health| health.is_down()).count() as u64,
            unsent: all().map(Health::refused).sum(),
        }
    }

    /// Returns the host of the proxy's only origin, for requests without a `Host` field (HTTP/1.0); `None` if there are
    /// several origins.
    pub(super) fn only_host(&self) -> Option<Authority> {
        let mut all = self.by_host.values().chain(&self.other);
        let (only, None) = (all.next()?, all.next()) else { return None };
        let server = &only.0.server;
        let host = server.host.as_deref().map(str::parse).and_then(Result::ok);
        host.or_else(|| canonical(server.authority.clone()))
    }

    /// Returns the origin server for requests with this host, which is given with its port unless that is the scheme's
    /// default.
    pub(super) fn of(&self, host: &str) -> Option<Upstream> {
        self.by_host.get(host).or(self.other.as_ref()).cloned()
    }
}

impl Origin for Upstream {
    async fn send(self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let server = &self.0.server;
        let trial = self.0.health.begin(request.uri().path_and_query());
        let trial = trial.map_err(|pause| OriginError::Down(server.to_string(), pause))?;
        let sent = self.send_bounded(request).await;
        let (asked, outcome) = match sent.as_ref().map_err(|error| error.downcast_ref()) {
            Ok(_) => (AskedOrigin::Answered, Sent::Answered),
            Err(Some(OriginError::NotConnected(..))) => (AskedOrigin::Failed, Sent::NotConnected),
            Err(Some(OriginError::TooSlow(..))) => (AskedOrigin::Failed, Sent::Slow),
            Err(_) => (AskedOrigin::Failed, Sent::Broken),
        };
        self.0.metrics.asked(asked);
        match trial.end(outcome) {
            Some(true) => log::warn!("the origin {server} is down, and tried until it answers"),
            Some(false) => log::warn!("the origin {server} answers again"),
            None => {}
        }
        sent
    }
}

impl Upstream {
    async fn send_bounded(&self, mut request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let name = self.0.server.to_string();
        let uri = request.uri();
        // The origin is told the host that the client asked for.
        let host = uri.authority().map(|host| host.as_str().parse()).transpose()?;
        let path = uri.path_and_query().cloned();
        let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
        *request.uri_mut() = Uri::builder()
            .scheme(self.0.server.scheme.clone())
            .authority(self.0.server.authority.clone())
            .path_and_query(path)
            .build()?;
        if let Some(host) = host {
            request.headers_mut().insert(HOST, host);
        }
        *request.version_mut() = Version::HTTP_11;
        let failed = |error: client::Error| {
            let is_request = hyper_error(&error).is_some_and(hyper::Error::is_user);
            let kind = match (is_request, error.is_connect()) {
                (true, _) => OriginError::Request,
                (false, true) => OriginError::NotConnected,
                (false, false) => OriginError::Failed,
            };
            kind(name.clone(), causes(&error))
        };
        let body = request.body();
        if !body.is_end_stream() && body.size_hint().exact().is_none() {
            // Without it, hyper sends no body of a GET.
            let chunked = HeaderValue::from_static("chunked");
            request.headers_mut().insert(TRANSFER_ENCODING, chunked);
        }
        let asks_for_other = request.headers().contains_key(UPGRADE);
        let limit = self.0.limits.first_byte;
        let (parts, body) = request.into_parts();
        let (turn, body) = OriginsTurn::begin(body);
        let request = Request::from_parts(parts, body);
        let (awaited, request) = Awaited::begin(request, &self.0.silence, limit);
        let request = self.request(request);
        let Some(sent) = turn.bound(limit, request).await else {
            return Err(OriginError::TooSlow(name, limit).into());
        };
        let response = sent.map_err(failed)?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS && !asks_for_other {
            // What its client sends next would go through unread.
            let error = "it switches protocols unasked".into();
            return Err(OriginError::Failed(name, error).into());
        }
        let response =
            receive(response, self.0.limits).map_err(|error| OriginError::Failed(name, error))?;
        Ok(match awaited {
            None => response,
            Some(awaited) => awaited.answered(response),
        })
    }

    /// Sends a request, a second time if the origin has closed a connection on which it had answered before: it may
    /// not have seen the request. All kept connections may be closed, so that the second time has a new one. Only a
    /// request that does the same twice as once is sent again (RFC 9110, section 9.2.2).
    async fn request(&self, request: Request<Body>) -> Result<Response<Incoming>, client::Error> {
        let may_repeat = request.method().is_idempotent() && request.body().is_end_stream();
        let (parts, body) = request.into_parts();
        let again = may_repeat.then(|| Request::from_parts(parts.clone(), Body::empty()));
        let request = Request::from_parts(parts, body);
        let mut sent = self.0.client.request(request).await;
        if let Err(error) = &sent
            && Used::of(error)
            && hyper_error(error).is_none_or(|error| !error.is_parse())
            && let Some(again) = again
        {
            sent = self.0.new_connections.request(again).await;
        }
        if let Ok(response) = &sent {
            Used::note(response.extensions());
        }
        sent
    }
}

/// Returns what connects to an origin, and keeps at most this many idle connections.
fn new_client(
    server: &OriginServer,
    tls: &ClientConfig,
    limits: Limits,
    most_kept: usize,
) -> OriginClient {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(limits.connect));
    connector.set_nodelay(true);
    connector.enforce_http(false);
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls.clone())
        .https_or_http()
        .with_server_name_resolver(FixedServerNameResolver::new(server.name.clone()))
        .enable_http1()
        // The wait for the response ends first, and says why.
        .wrap_connector(Connector {
            http: connector,
            patience: limits.first_byte.saturating_mul(2),
        });
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(Duration::from_secs(30))
        .pool_max_idle_per_host(most_kept)
        .http1_max_headers(MOST_FIELDS)
        .build(connector)
}

/// Returns an origin's response as it goes on. One whose body is coded for this connection in a way
/// that is not understood is an error: without the coding, it would be another body.
fn receive(response: Response<Incoming>, limits: Limits) -> Result<Response<Body>, String> {
    let codings = response.headers().get_all(TRANSFER_ENCODING);
    let codings: Vec<&[u8]> = codings.iter().map(HeaderValue::as_bytes).collect();
    let is_chunked = match codings[..] {
        [] => false,
        [coding] if coding.trim_ascii().eq_ignore_ascii_case(b"chunked") => true,
        _ => return Err("its Transfer-Encoding is not just chunked".into()),
    };
    let is_marked = response.body().is_end_stream()
        || response.headers().contains_key(CONTENT_LENGTH)
        || (is_chunked && response.version() != Version::HTTP_10);
    let has_coding = !codings.is_empty();
    let mut response =
        response.map(|body| Body::wrap(pause::limit(body, limits.pause, limits.body)));
    if has_coding {
        // RFC 9112, section 6.3: the length does not count. For the client, which gets no coding, it
        // would.
        response.headers_mut().remove(CONTENT_LENGTH);
    } else {
        unify_lengths(response.headers_mut())?;
    }
    remove_hop_by_hop(response.headers_mut());
    if !is_marked {
        response.extensions_mut().insert(CloseDelimited);
    }
    Ok(response)
}

/// Replaces a length that is repeated, in a list or on several lines, by one (RFC 9110, section 8.6).
/// The body of a response to HEAD does not show whether it is right, so that two are an error there.
fn unify_lengths(headers: &mut HeaderMap) -> Result<(), String> {
    let lines = headers.get_all(CONTENT_LENGTH).iter();
    let members = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let lengths: Vec<&[u8]> = members.map(<[u8]>::trim_ascii).collect();
    let [first, others @ ..] = &lengths[..] else { return Ok(()) };
    let is_number = !first.is_empty() && first.iter().all(u8::is_ascii_digit);
    if !is_number || others.iter().any(|other| other != first) {
        return Err("its Content-Length is not one number".into());
    }
    if !others.is_empty() {
        let length = HeaderValue::from_bytes(first).expect("digits are text");
        headers.insert(CONTENT_LENGTH, length);
    }
    Ok(())
}

/// Returns by which certificates origins are known: those that the system trusts.
fn tls(is_needed: bool) -> Result<ClientConfig, BoxError> {
    let mut roots = RootCertStore::empty();
    if is_needed {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let errors: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
            return Err(format!(
                "the system trusts no certificates, by which an https origin could be known \
                 (Debian: apt-get install ca-certificates; SSL_CERT_FILE names others) {}",
                errors.join("; ")
            )
            .trim_end()
            .into());
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

fn hyper_error(error: &client::Error) -> Option<&hyper::Error> {
    error.source().and_then(|cause| cause.downcast_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_as_text() {
        for (text, expected) in [
            ("http://127.0.0.1:8000", Ok((None, "http://127.0.0.1:8000"))),
            ("HTTPS://Example.org/", Ok((None, "https://Example.org"))),
            ("A.example=http://b:1", Ok((Some("a.example"), "http://b:1"))),
            ("a.example:81=https://b", Ok((Some("a.example:81"), "https://b"))),
            ("a.example:80=https://b", Ok((Some("a.example"), "https://b"))),
            ("127.0.0.1:8000", Err(())),
            ("ftp://a", Err(())),
            ("http://a/b", Err(())),
            ("http://a?b", Err(())),
            ("http://u@a", Err(())),
            ("=http://a", Err(())),
            ("a b=http://a", Err(())),
            ("h:0081=http://b", Ok((Some("h:81"), "http://b"))),
            ("h:=http://b", Ok((Some("h"), "http://b"))),
            ("[::1]:080=http://[::1]:1", Ok((Some("[::1]"), "http://[::1]:1"))),
            ("a=HTTP://b", Ok((Some("a"), "http://b"))),
            ("u@h=http://b", Err(())),
            ("h:80:80=http://b", Err(())),
            ("h:99999=http://b", Err(())),
            ("*=http://b", Err(())),
            ("*.example=http://b", Err(())),
            ("http://b:99999", Err(())),
            ("http://b:0", Err(())),
            ("http://b:", Err(())),
            ("", Err(())),
        ] {
            let found = text.parse::<OriginServer>();
            let found = found.map(|server| (server.host.clone(), server.to_string()));
            let expected =
                expected.map(|(host, server)| (host.map(str::to_owned), server.to_owned()));
            assert_eq!(found.map_err(drop), expected, "{text}");
        }
    }
}
