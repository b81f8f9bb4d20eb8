//! Requests of clients: which ones are passed on, and in which form.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, HeaderValue, MAX_FORWARDS,
    TRANSFER_ENCODING, VIA,
};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, Method, Response, StatusCode, Uri, Version, request};

use super::raw_targets;
use crate::semantics::{HopByHop, remove_those};

/// Fields by which a client could make the origin answer for another address, host, path or method
/// than the one under which the response is stored; and all that begin with [`FORWARDING`].
const OVERRIDES: [&str; 8] = [
    "forwarded",
    "x-original-url",
    "x-rewrite-url",
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-host",
    "x-real-ip",
];
const FORWARDING: &str = "x-forwarded-";
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Whether a field is one of those. Origins behind CGI and WSGI take `_` for `-`.
fn is_override(name: &str) -> bool {
    let name = name.as_bytes();
    let begins_with = |other: &str| {
        let same = |(own, other): (&u8, u8)| *own == other || (*own == b'_' && other == b'-');
        name.len() >= other.len() && name.iter().zip(other.bytes()).all(same)
    };
    begins_with(FORWARDING)
        || OVERRIDES.iter().any(|other| name.len() == other.len() && begins_with(other))
}

/// Whether a field means to origins behind CGI and WSGI what no client may say: the proxy that they
/// use themselves (`HTTP_PROXY`), or the length or coding of the body.
fn is_disguised(name: &str) -> bool {
    let is_other = |other: &&str| name.replace('_', "-") == **other;
    name == "proxy"
        || (name.contains('_') && ["content-length", "transfer-encoding"].iter().any(is_other))
}

/// The client of one connection to the proxy: its address, its `Host`, and whether the connection is about to end.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) address: IpAddr,
    /// The client's address as a field tells it to the origin.
    field: HeaderValue,
    /// Whether the proxy is shutting down, so that the next response is the last one.
    is_ending: AtomicBool,
    /// The first `Host` of the connection, and what it means: most connections have one.
    host: OnceLock<(Box<[u8]>, Authority)>,
}

impl Client {
    pub(super) fn new(address: IpAddr) -> Self {
        let field = HeaderValue::try_from(address.to_string()).expect("an address is text");
        Self { address, field, is_ending: AtomicBool::new(false), host: OnceLock::new() }
    }

    /// Makes the next response on this client's connection the last one, with `Connection: close`.
    pub(super) fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// Adds `Connection: close` to a response, if it is the last one on the client's connection.
    pub(super) fn announce_end<B>(&self, response: &mut Response<B>) {
        let is_other_protocol = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        if self.is_ending.load(Ordering::Relaxed) && !is_other_protocol {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
    }
}

/// The name that a proxy adds to the `Via` field, by which it recognizes messages that have passed it before.
#[derive(Debug)]
pub(super) struct OwnName {
    name: String,
    via: HeaderValue,
    /// The `Via` field for messages that came in HTTP/1.0.
    old_via: HeaderValue,
}

impl OwnName {
    /// Creates the proxy's name for the `Via` field; `name` has no blanks.
    pub(super) fn new(name: String) -> Self {
        let via =
            |version| HeaderValue::try_from(format!("{version} {name}")).expect("a name is text");
        Self { via: via("1.1"), old_via: via("1.0"), name }
    }

    /// Adds this proxy to the `Via` field of a message, with the HTTP version in which the message came here.
    pub(super) fn append_to(&self, headers: &mut HeaderMap, version: Version) {
        let via = if version == Version::HTTP_10 { &self.old_via } else { &self.via };
        headers.append(VIA, via.clone());
    }
}

/// A header field of clients that is forwarded, although it could make an origin answer for another
/// address, host, path or method than the one under which the response is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedField(HeaderName);

impl FromStr for TrustedField {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = HeaderName::from_bytes(text.as_bytes()).ok();
        name.filter(|name| is_override(name.as_str())).map(Self).ok_or_else(|| {
            let names = OVERRIDES.join(", ");
            format!("only these are removed otherwise: {FORWARDING}*, {names}")
        })
    }
}

/// The refusal of a client's request, with the status code and the reason.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) StatusCode, pub(super) &'static str);

/// Checks a client's request and turns it into one for the origin: with an absolute URI, and without fields for this
/// connection only. Returns the host that the client asks for, which is `only_host` for an HTTP/1.0 request without
/// one.
pub(super) fn prepare(
    parts: &mut request::Parts,
    client: &Client,
    own: &OwnName,
    trusted: &[TrustedField],
    only_host: impl FnOnce() -> Option<Authority>,
) -> Result<String, Refused> {
    const BAD: StatusCode = StatusCode::BAD_REQUEST;
    if [Method::CONNECT, Method::TRACE].contains(&parts.method) {
        return Err(Refused(StatusCode::NOT_IMPLEMENTED, "this method is not passed on"));
    }
    let headers = &parts.headers;
    if headers.get_all(CONTENT_LENGTH).iter().count() > 1 {
        return Err(Refused(BAD, "there is more than one Content-Length"));
    }
    if parts.version == Version::HTTP_10 && headers.contains_key(TRANSFER_ENCODING) {
        return Err(Refused(BAD, "HTTP/1.0 has no Transfer-Encoding"));
    }
    if is_coded(headers) {
        return Err(Refused(BAD, "the only Transfer-Encoding here is chunked"));
    }
    let vias = headers.get_all(VIA).iter().filter_map(|via| via.to_str().ok());
    if vias
        .flat_map(|via| via.split(','))
        .any(|via| via.split_whitespace().nth(1) == Some(own.name.as_str()))
    {
        return Err(Refused(StatusCode::LOOP_DETECTED, "this request has been here before"));
    }
    // RFC 9112, section 3.2, demands it of HTTP/1.1 only: checks of load balancers have none.
    let may_have_none = parts.version == Version::HTTP_10 && parts.uri.authority().is_none();
    let host = if may_have_none && !headers.contains_key(HOST) {
        only_host().ok_or(Refused(BAD, "there is no Host, and more than one origin"))?
    } else {
        host(headers, &parts.uri, client)?
    };
    // RFC 9112, section 3.2.4. It would be stored as the path "/*".
    if parts.uri.path() == "*" && parts.method != Method::OPTIONS {
        return Err(Refused(BAD, "the target * is for OPTIONS only"));
    }
    let forwards = max_forwards(parts);
    if forwards == Some(0) {
        return Err(Refused(StatusCode::OK, "Max-Forwards is 0, so that the proxy answers itself"));
    }
    let uri = std::mem::take(&mut parts.uri).into_parts();
    let mut absolute = http::uri::Parts::default();
    absolute.scheme = Some(Scheme::HTTP);
    absolute.authority = Some(host.clone());
    absolute.path_and_query = uri.path_and_query.map(raw_targets::encoded);
    parts.uri = Uri::from_parts(absolute).map_err(|_| Refused(BAD, "the target is not a path"))?;
    let headers = &mut parts.headers;
    // Nearly every request has this one; others are looked for in one round.
    headers.remove(HOST);
    let hop_by_hop = HopByHop::of(headers);
    let is_trusted = |name: &HeaderName| trusted.iter().any(|TrustedField(other)| other == name);
    remove_those(headers, |name| {
        (is_override(name.as_str()) && !is_trusted(name))
            || is_disguised(name.as_str())
            || hop_by_hop.contains(name)
            || *name == EXPECT
            || *name == MAX_FORWARDS
    });
    if let Some(forwards) = forwards {
        headers.insert(MAX_FORWARDS, HeaderValue::from(forwards - 1));
    }
    // A trusted one names those before this client.
    headers.append(FORWARDED_FOR, client.field.clone());
    headers.entry(FORWARDED_PROTO).or_insert(HeaderValue::from_static("http"));
    own.append_to(headers, parts.version);
    Ok(host.as_str().to_owned())
}

/// Whether the body has a transfer coding besides one `chunked`. The origin gets the body without it,
/// so that it would be another body there.
fn is_coded(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(TRANSFER_ENCODING).iter();
    let is_chunked =
        |line: &HeaderValue| line.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    lines.next().is_some_and(|line| !is_chunked(line)) || lines.next().is_some()
}

/// Returns the host that a request is for, in the only form in which the origin and the cache know
/// it. One that names two could mean one to this proxy and another to the origin.
fn host(headers: &HeaderMap, uri: &Uri, client: &Client) -> Result<Authority, Refused> {
    const BAD: StatusCode = StatusCode::BAD_REQUEST;
    let mut lines = headers.get_all(HOST).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Err(Refused(BAD, "there has to be one Host"));
    };
    let known = client.host.get().filter(|(text, _)| **text == *line.as_bytes());
    let host = if let Some((_, host)) = known {
        host.clone()
    } else {
        let host: Option<Authority> = line.to_str().ok().and_then(|host| host.parse().ok());
        let host = host.and_then(canonical).ok_or(Refused(BAD, "Host is not a host"))?;
        let _ = client.host.set((line.as_bytes().into(), host.clone()));
        host
    };
    if let Some(authority) = uri.authority()
        && canonical(authority.clone()).as_ref() != Some(&host)
    {
        return Err(Refused(BAD, "the target and Host name different hosts"));
    }
    if uri.scheme().is_some_and(|scheme| *scheme != Scheme::HTTP) {
        return Err(Refused(StatusCode::MISDIRECTED_REQUEST, "only http is spoken here"));
    }
    Ok(host)
}

/// Returns how often an OPTIONS request may be passed on; `None` if that is not said. For other
/// methods it does not matter (RFC 9110, section 7.6.2).
fn max_forwards(parts: &request::Parts) -> Option<u64> {
    let value = parts.headers.get(MAX_FORWARDS).filter(|_| parts.method == Method::OPTIONS)?;
    let digits = value.to_str().ok()?;
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Returns a host name in lower case, with its port if that is not 80, so that `a:`, `a:080` and
/// `A` are one host. Returns `None` if a user stands before it, or if the port is invalid.
pub(super) fn canonical(authority: Authority) -> Option<Authority> {
    let (text, host) = (authority.as_str(), authority.host());
    // A user would stand before the host.
    let behind = text.strip_prefix(host).filter(|_| !host.is_empty() && !text.contains('@'))?;
    let port: u16 = match behind.strip_prefix(':') {
        None if behind.is_empty() => 80,
        Some("") => 80,
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            digits.parse().ok()?
        }
        _ => return None,
    };
    let is_lower = !host.bytes().any(|byte| byte.is_ascii_uppercase());
    match port {
        80 if behind.is_empty() && is_lower => Some(authority),
        80 => host.to_ascii_lowercase().parse().ok(),
        _ => format!("{}:{port}", host.to_ascii_lowercase()).parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use http::Request;

    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn prepared(uri: &str, fields: &[(&str, &str)]) -> Result<(String, request::Parts), Refused> {
        prepared_trusting(uri, fields, &[])
    }

    fn prepared_trusting(
        uri: &str,
        fields: &[(&str, &str)],
        trusted: &[TrustedField],
    ) -> Result<(String, request::Parts), Refused> {
        let mut request = Request::get(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).expect("a request").into_parts();
        let (client, own) = (Client::new(CLIENT), OwnName::new("me".into()));
        prepare(&mut parts, &client, &own, trusted, || None).map(|host| (host, parts))
    }

    #[test]
    fn hosts() {
        for (uri, fields, expected) in [
            ("/a?b", &[("host", "Example.org")][..], Ok("example.org")),
            ("/", &[("host", "example.org:80")], Ok("example.org")),
            ("/", &[("host", "example.org:8080")], Ok("example.org:8080")),
            ("http://example.org/", &[("host", "EXAMPLE.org")], Ok("example.org")),
            ("http://example.org/", &[("host", "other.example")], Err(400)),
            ("https://example.org/", &[("host", "example.org")], Err(421)),
            ("/", &[], Err(400)),
            ("/", &[("host", "a"), ("host", "a")], Err(400)),
            ("/", &[("host", "a, b")], Err(400)),
            ("/", &[("host", "")], Err(400)),
            ("/", &[("host", "u@a")], Err(400)),
            ("/", &[("host", "a/b")], Err(400)),
            ("/", &[("host", "a:")], Ok("a")),
            ("/", &[("host", "A:080")], Ok("a")),
            ("/", &[("host", "a:00081")], Ok("a:81")),
            ("/", &[("host", "a:65536")], Err(400)),
            ("/", &[("host", "a:-1")], Err(400)),
            ("/", &[("host", "[::1]")], Ok("[::1]")),
            ("/", &[("host", "[2001:DB8::1]:81")], Ok("[2001:db8::1]:81")),
            ("http://a:80/", &[("host", "A")], Ok("a")),
            ("http://a:81/", &[("host", "a")], Err(400)),
            ("http://u@a/", &[("host", "a")], Err(400)),
        ] {
            let found = prepared(uri, fields);
            let found = found.map(|(host, _)| host).map_err(|refused| refused.0.as_u16());
            assert_eq!(found, expected.map(str::to_owned), "{uri} {fields:?}");
        }
    }

    /// The first host of a connection is not taken for a later one.
    #[test]
    fn several_hosts_of_one_connection() {
        let (client, own) = (Client::new(CLIENT), OwnName::new("me".into()));
        for (uri, text, expected) in [
            ("/", "A:80", Ok("a")),
            ("/", "b", Ok("b")),
            ("/", "A:80", Ok("a")),
            ("/", "a", Ok("a")),
            ("http://b/", "A:80", Err(400)),
            ("/", "A:80, b", Err(400)),
            ("/", "A:8", Ok("a:8")),
        ] {
            let request = Request::get(uri).header("host", text).body(()).expect("a request");
            let (mut parts, ()) = request.into_parts();
            let found = prepare(&mut parts, &client, &own, &[], || None);
            let found = found.map_err(|refused| refused.0.as_u16());
            assert_eq!(found, expected.map(str::to_owned), "{uri} {text}");
        }
    }

    #[test]
    fn what_is_not_passed_on() {
        let host = ("host", "a");
        for (field, expected) in [
            ([("content-length", "5"), ("content-length", "5")], 400),
            ([("via", "1.1 other"), ("via", "1.0 x, 1.1 me")], 508),
        ] {
            let found = prepared("/", &[host, field[0], field[1]]).map(drop);
            assert_eq!(found.map_err(|refused| refused.0.as_u16()), Err(expected), "{field:?}");
        }
        let names = [
            "forwarded",
            "x-original-url",
            "x-rewrite-url",
            "x-http-method-override",
            "x-forwarded-host",
            "connection",
            "upgrade",
            "te",
            "expect",
            "keep-alive",
        ];
        let mut fields: Vec<_> = names.iter().map(|name| (*name, "x")).collect();
        fields.extend([host, ("x-forwarded-for", "6.6.6.6"), ("cookie", "a=b")]);
        let (_, parts) = prepared("/a?b", &fields).expect("it is passed on");
        assert_eq!(parts.uri, "http://a/a?b");
        let mut left: Vec<_> = parts.headers.iter().collect();
        left.sort_unstable_by_key(|(name, _)| name.as_str());
        let left: Vec<_> = left
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().expect("text")))
            .collect();
        let expected = [
            ("cookie", "a=b"),
            ("via", "1.1 me"),
            ("x-forwarded-for", "192.0.2.1"),
            ("x-forwarded-proto", "http"),
        ];
        assert_eq!(left, expected);
    }

    #[test]
    fn fields_that_are_trusted() {
        let trusted = |names: &[&str]| -> Vec<TrustedField> {
            names.iter().map(|name| name.parse().expect("it is one")).collect()
        };
        let fields = [
            ("host", "a"),
            ("x-forwarded-for", "6.6.6.6"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "b"),
        ];
        let values = |names: &[&str], name: &str| -> Vec<String> {
            let (_, parts) = prepared_trusting("/", &fields, &trusted(names)).expect("a request");
            let lines = parts.headers.get_all(name).iter();
            lines.map(|value| value.to_str().expect("text").to_owned()).collect()
        };
        assert_eq!(values(&[], "x-forwarded-for"), ["192.0.2.1"]);
        assert_eq!(values(&["X-Forwarded-For"], "x-forwarded-for"), ["6.6.6.6", "192.0.2.1"]);
        assert_eq!(values(&["X-Forwarded-For"], "x-forwarded-proto"), ["http"]);
        assert_eq!(values(&["x-forwarded-proto"], "x-forwarded-proto"), ["https"]);
        assert!(values(&[], "x-forwarded-host").is_empty());
        assert_eq!(values(&["x-forwarded-host"], "x-forwarded-host"), ["b"]);
        for name in ["cookie", "", "x"] {
            let refused = name.parse::<TrustedField>().expect_err("it is none");
            assert!(refused.contains("x-forwarded-*"), "{refused}");
        }
    }
}
