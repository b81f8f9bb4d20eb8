//! Access logs of web servers, in the common and the combined format of Apache httpd and nginx:
//!
//! `host ident user [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/1.0" 200 2326 ...`
//!
//! The key is the request target as logged, query and escapes included; two spellings of one resource are two keys.
//! A virtual host before the client (`%v` of Apache), or in the place of the ident (OVH), belongs to the key. Request lines that
//! are not HTTP, which every public server logs, are left out: `-` where a client sent nothing in time (408), and the
//! first bytes of TLS. So are requests that `haypile proxy` refused: it logs what its cache did behind the user
//! agent, and of these only a `detail`. What else follows the size is ignored.

use std::net::IpAddr;

use super::super::bad::Bad;
use super::quoted::{Columns, split_quoted};
use super::time::CommonLog;
use super::{Exchange, Line, Lines, Why, request_line, size, split_at_byte, status};

#[derive(Debug, Default)]
pub(super) struct Ncsa {
    time: CommonLog,
}

impl Lines for Ncsa {
    fn read<'a>(&'a mut self, line: &'a [u8]) -> Result<Line<'a>, Bad<'a>> {
        if line.starts_with(b"#") {
            return Ok(Line::Nothing);
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
        if is_refused(status, rest) {
            return Ok(Line::LeftOut(Why::Refused));
        }
        let Some((method, target)) = request_line(request) else {
            return Ok(Line::LeftOut(Why::NotHttp));
        };
        let time_us = self.time.time_us(time)?;
        Ok(Line::Exchange(Exchange {
            host: virtual_host(&line[..open]),
            ..Exchange::new(method, target, status, size_bytes, time_us)
        }))
    }
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

/// Whether `haypile proxy` refused the request of a line, from what follows the request.
fn is_refused(status: u16, mut rest: &[u8]) -> bool {
    if !(400..600).contains(&status) {
        return false;
    }
    let mut quoted = std::iter::from_fn(|| {
        let begin = memchr::memchr(b'"', rest)?;
        let (text, behind) = split_quoted(&rest[begin + 1..])?;
        rest = behind;
        Some(text)
    });
    // Behind the referrer and the user agent.
    quoted.nth(2).is_some_and(|cache| cache.starts_with(b"detail="))
}

#[cfg(test)]
mod tests {
    use super::*;

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
