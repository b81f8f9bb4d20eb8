//! Access logs of web servers, in the common and the combined format of Apache httpd and nginx:
//!
//! `host ident user [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/1.0" 200 2326 ...`
//!
//! The key is the request target as logged, query and escapes included; two spellings of one resource are two keys.
//! A virtual host before the client (`%v` of Apache), or in the place of the ident (OVH), belongs to the key. Request lines that
//! are not HTTP, which every public server logs, are left out: `-` where a client sent nothing in time (408), and the
//! first bytes of TLS.
//!
//! Envoy and Istio, which begin with the time, are read here too: `[2016-04-15T20:17:00.310Z] "GET /a HTTP/1.1" 200 - 0 154 ...`,
//! with the bytes received before those sent, and the host in the sixth column after them.
//!
//! `haypile proxy` logs what its cache did behind the user agent, as in `Cache-Status`, and the seconds until the response had ended:
//! `"fwd=uri-miss; stored" 0.052114`. These are the cost of a miss. Of requests that it refused there is only a `detail`, and they
//! are left out. What else follows the size is ignored.

use std::net::IpAddr;

use super::super::bad::Bad;
use super::super::field::decimal;
use super::super::options::TimeUnit;
use super::quoted::{Columns, split_quoted};
use super::time::{CommonLog, any as any_time};
use super::{Exchange, Line, Lines, Why, cost_ns, request_line, size, split_at_byte, status};

#[derive(Debug, Default)]
pub(super) struct Ncsa {
    time: CommonLog,
}

impl Lines for Ncsa {
    fn read<'a>(&'a mut self, line: &'a [u8]) -> Result<Line<'a>, Bad<'a>> {
        if line.starts_with(b"#") {
            return Ok(Line::Nothing);
        }
        if let Some(line) = envoy(line) {
            return Ok(line);
        }
        let shape = || Bad::new("host ident user [time] \"request\" status bytes", line);
        // The blank keeps an IPv6 host in brackets apart from the time.
        let open = memchr::memmem::find(line, b" [").ok_or_else(shape)?;
        let (time, rest) = split_at_byte(&line[open + 2..], b']').ok_or_else(shape)?;
        let rest = after_duration(rest.trim_ascii_start());
        let rest = rest.strip_prefix(b"\"").ok_or_else(shape)?;
        let (request, rest) = split_quoted(rest).ok_or_else(shape)?;
        let mut columns = rest.split(|&byte| byte == b' ').filter(|column| !column.is_empty());
        let (Some(status_text), Some(size_text)) = (columns.next(), columns.next()) else {
            return Err(shape());
        };
        let (status, size_bytes) = (status(status_text)?, size(size_text)?);
        let by_proxy = ByProxy::of(rest);
        if by_proxy.is_refused && (400..600).contains(&status) {
            return Ok(Line::LeftOut(Why::Refused));
        }
        let Some((method, target)) = request_line(request) else {
            return Ok(Line::LeftOut(Why::NotHttp));
        };
        let time_us = self.time.time_us(time)?;
        Ok(Line::Exchange(Exchange {
            host: virtual_host(&line[..open]),
            was_hit: by_proxy.was_hit,
            cost_ns: by_proxy.cost_ns,
            ..Exchange::new(method, target, status, size_bytes, time_us)
        }))
    }
}

/// Reads a line in the default format of Envoy or Istio; `None` if it is not one.
fn envoy(line: &[u8]) -> Option<Line<'_>> {
    let (time, rest) = split_at_byte(line.strip_prefix(b"[")?, b']')?;
    let (request, rest) = split_quoted(rest.strip_prefix(b" \"")?)?;
    // A connection without HTTP has "- - -".
    let Some((method, target)) = request_line(request) else {
        return Some(Line::LeftOut(Why::NotHttp));
    };
    let columns: Vec<&[u8]> = Columns(rest).collect();
    let status = status(columns.first()?).ok()?;
    // The status and the flags; in Istio's lines also reasons; then the bytes received and those sent.
    let numbers = columns.iter().enumerate().skip(2);
    let mut numbers = numbers.filter_map(|(at, column)| Some((at, decimal(column)?)));
    let (at, sent_bytes) = numbers.nth(1)?;
    // Two durations, the client, its program, the request's id, and the host.
    let host = columns.get(at + 6).copied().filter(|host| !matches!(*host, b"" | b"-"));
    let exchange = Exchange::new(method, target, status, Some(sent_bytes), any_time(time)?);
    Some(Line::Exchange(Exchange { host, ..exchange }))
}

/// Returns the virtual host of what precedes the time, if it has one: `host client ident user`, or `client host user`.
fn virtual_host(text: &[u8]) -> Option<&[u8]> {
    let mut words = Columns(text);
    let (first, second) = (words.next()?, words.next()?);
    let is_longer = words.nth(1).is_some();
    // Before the client; a user may have two words.
    let has_client = second.iter().any(|byte| b".:".contains(byte));
    let word = if is_longer { Some(first).filter(|_| has_client) } else { Some(second) };
    let host = without_port(word?);
    is_name(host, host.len() < word?.len()).then_some(host)
}

/// Whether this is the name of a host. An address is more often that of another client on the way, which must not tell keys apart.
fn is_name(host: &[u8], has_port: bool) -> bool {
    let is_of_names = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_".contains(byte);
    let is_address = str::from_utf8(host).is_ok_and(|host| host.parse::<IpAddr>().is_ok());
    let is_whole = has_port || host.contains(&b'.') || host == b"localhost";
    is_whole && host.iter().all(is_of_names) && !is_address
}

/// Returns a host without its port; an IPv6 address keeps all it has.
fn without_port(host: &[u8]) -> &[u8] {
    let mut parts = host.split(|&byte| byte == b':');
    let (name, _port, more) = (parts.next(), parts.next(), parts.next());
    name.filter(|_| more.is_none()).unwrap_or(host)
}

/// Returns what follows the time that a response took, `(0 s)`, which Gandi logs.
fn after_duration(text: &[u8]) -> &[u8] {
    let parts = text.strip_prefix(b"(").and_then(|text| split_at_byte(text, b')'));
    parts.map_or(text, |(_, rest)| rest.trim_ascii_start())
}

/// The log of `haypile proxy` about its cache; empty for the lines of other servers.
#[derive(Debug, Default, PartialEq)]
struct ByProxy {
    is_refused: bool,
    was_hit: Option<bool>,
    cost_ns: Option<u64>,
}

impl ByProxy {
    /// Reads what follows the request: the status, the size, and behind the referrer and the user agent the cache.
    fn of(mut rest: &[u8]) -> Self {
        let mut cache = None;
        for _ in 0..3 {
            let quoted = memchr::memchr(b'"', rest).and_then(|at| split_quoted(&rest[at + 1..]));
            let Some((text, behind)) = quoted else { return Self::default() };
            (cache, rest) = (Some(text), behind);
        }
        let cache = cache.unwrap_or_default();
        if cache.starts_with(b"detail=") {
            return Self { is_refused: true, ..Self::default() };
        }
        let is_hit = cache == b"hit" || cache.starts_with(b"hit;");
        if !is_hit && !cache.starts_with(b"fwd=") {
            return Self::default();
        }
        let says = |part: &[u8]| memchr::memmem::find(cache, part).is_some();
        // What the origin confirmed was in the cache, and who waited for another request waited for a part of its time.
        let was_hit = is_hit || says(b"; fwd-status=304");
        let seconds = rest.split(|byte| *byte == b' ').find(|column| !column.is_empty());
        let cost_ns = seconds.and_then(|text| cost_ns(text, TimeUnit::Seconds));
        Self {
            is_refused: false,
            was_hit: Some(was_hit),
            cost_ns: cost_ns.filter(|_| !was_hit && !says(b"; collapsed")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_logs_its_cache_behind_the_user_agent() {
        let of = |rest: &str| ByProxy::of(rest.as_bytes());
        let hit = of(" 200 5 \"-\" \"curl\" \"hit; ttl=40\" 0.000142");
        assert_eq!(hit, ByProxy { was_hit: Some(true), ..ByProxy::default() });
        let miss =
            of(" 200 5 \"-\" \"a \\\"b\\\"\" \"fwd=uri-miss; fwd-status=200; stored\" 0.052114");
        let cost_ns = Some(52_114_000);
        assert_eq!(miss, ByProxy { was_hit: Some(false), cost_ns, ..ByProxy::default() });
        let collapsed = of(" 200 5 \"-\" \"-\" \"fwd=uri-miss; fwd-status=200; collapsed\" 0.04");
        assert_eq!(collapsed, ByProxy { was_hit: Some(false), ..ByProxy::default() });
        let confirmed = of(" 200 5 \"-\" \"-\" \"fwd=stale; fwd-status=304; stored\" 0.01");
        assert_eq!(confirmed, ByProxy { was_hit: Some(true), ..ByProxy::default() });
        assert!(of(" 502 5 \"-\" \"-\" \"detail=no origin\" 0.01").is_refused);
        for other in
            [" 200 5", " 200 5 \"-\" \"-\"", " 200 5 \"-\" \"-\" \"a=b\" 7", " 200 5 \"-\" \"-"]
        {
            assert_eq!(of(other), ByProxy::default(), "{other}");
        }
    }

    #[test]
    fn virtual_hosts_come_first_or_in_the_place_of_the_ident() {
        for (text, host) in [
            ("1.2.3.4 - user", None),
            ("::1 - -", None),
            ("- - -", None),
            ("1.2.3.4 - John Smith", None),
            ("www.example.com 1.2.3.4 - user", Some("www.example.com")),
            ("localhost:443 178.20.184.42 1j0vhgd jsmith", Some("localhost")),
            ("1.2.3.4 www.example.com user", Some("www.example.com")),
            ("web-1:80 203.0.113.1 - -", Some("web-1")),
            // Addresses that a balancer has passed on.
            ("203.0.113.1, 70.41.3.18 - -", None),
            ("203.0.113.1 10.0.0.1 - -", None),
            ("203.0.113.1:82 10.0.0.1 - -", None),
            ("2001:db8::1 10.0.0.1 - -", None),
            ("10.0.0.1 203.0.113.1 user", None),
            ("- 1.2.3.4 - user", None),
            ("1.2.3.4", None),
        ] {
            assert_eq!(virtual_host(text.as_bytes()), host.map(str::as_bytes), "{text}");
        }
    }
}
