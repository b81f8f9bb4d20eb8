//! Access logs of web servers, in the common and the combined format of Apache httpd and nginx:
//!
//! `host ident user [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/1.0" 200 2326 ...`
//!
//! The key is the request target as logged, query and escapes included; two spellings of one
//! resource are two keys. The size is what was sent; where nothing was (`-`, a `304`, a HEAD), or
//! only a part (`206`), it is not known, and a trace gives such a request the last size of its key.
//! GET and HEAD are reads, PUT, POST and PATCH writes, DELETE deletes. Requests of other methods,
//! such as OPTIONS, are left out and counted, and so are request lines that are not HTTP, which every
//! public server logs: `-` where a client sent nothing in time (408), and the first bytes of TLS, and
//! requests that `haypile proxy` refused: it logs what its cache did behind the user agent, and of these
//! only a `detail`. What else follows the size is ignored, and so is what precedes the time, which lets
//! a virtual host be logged first.

use std::path::Path;

use haypile_number::grouped;
use jiff::fmt::strtime;

use super::super::{Key, Op, Request};
use super::bad::Bad;
use super::entry::{LineParser, Parsed};
use super::field;

#[derive(Default)]
pub(super) struct AccessLog {
    /// The time last parsed and its text: consecutive lines often have the same second.
    last_time: Option<(Vec<u8>, u64)>,
    /// Lines without a request that is HTTP.
    not_http: u64,
    /// Lines with a method that no cache stores.
    other_methods: u64,
    /// Lines of requests that never got to a cache.
    refused: u64,
}

impl LineParser for AccessLog {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Bad<'a>> {
        if line.trim_ascii().is_empty() {
            return Ok(Parsed::Nothing);
        }
        let shape = || Bad::new("host ident user [time] \"request\" status bytes", line);
        // The blank keeps an IPv6 host in brackets apart from the time.
        let open = memchr::memmem::find(line, b" [").ok_or_else(shape)?;
        let (time, rest) = split_at_byte(&line[open + 2..], b']').ok_or_else(shape)?;
        let rest = rest.trim_ascii_start().strip_prefix(b"\"").ok_or_else(shape)?;
        let (request, rest) = split_quoted(rest).ok_or_else(shape)?;
        let mut columns = rest.split(|&byte| byte == b' ').filter(|column| !column.is_empty());
        let (Some(status), Some(size)) = (columns.next(), columns.next()) else {
            return Err(shape());
        };
        if status.len() != 3 || field::decimal(status).is_none() {
            return Err(Bad::new("a status of three digits", status));
        }
        let size_bytes = match size {
            b"-" => None,
            _ => Some(
                field::decimal(size)
                    .ok_or_else(|| Bad::new("a size in bytes (decimal number or -)", size))?,
            ),
        };
        if is_refused(status, rest) {
            self.refused += 1;
            return Ok(Parsed::Nothing);
        }
        let (op, target) = match request_line(request) {
            RequestLine::Cached(op, target) => (op, target),
            RequestLine::OtherMethod => {
                self.other_methods += 1;
                return Ok(Parsed::Nothing);
            }
            RequestLine::NotHttp => {
                self.not_http += 1;
                return Ok(Parsed::Nothing);
            }
        };
        // What was sent otherwise is not what the URL holds.
        let has_body = ![&b"304"[..], b"206"].contains(&status) && !request.starts_with(b"HEAD ");
        Ok(Parsed::One(Request {
            key: Key::Text(target),
            size_bytes: size_bytes.filter(|_| has_body),
            op,
            time_us: Some(self.time_us(time)?),
        }))
    }
}

impl AccessLog {
    /// Returns a note about the lines that were left out, if there were any.
    pub(super) fn note(&self, path: &Path) -> Option<String> {
        let left_out = [
            (self.not_http, "without a request that is HTTP"),
            (self.other_methods, "with a method that no cache stores"),
            (self.refused, "that the proxy refused"),
        ];
        let parts: Vec<String> = left_out
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", grouped(*count)))
            .collect();
        let path = path.display();
        (!parts.is_empty()).then(|| format!("{path}: left out lines: {}", parts.join(", ")))
    }

    fn time_us<'a>(&mut self, text: &'a [u8]) -> Result<u64, Bad<'a>> {
        if let Some((last, time_us)) = &self.last_time
            && last == text
        {
            return Ok(*time_us);
        }
        let time_us = strtime::parse("%d/%b/%Y:%H:%M:%S %z", text)
            .and_then(|parts| parts.to_timestamp())
            .ok()
            .and_then(|time| u64::try_from(time.as_microsecond()).ok())
            .ok_or_else(|| {
                Bad::new("a time like 10/Oct/2000:13:55:36 -0700, from 1970 on", text)
            })?;
        self.last_time = Some((text.to_vec(), time_us));
        Ok(time_us)
    }
}

/// The request of a line.
enum RequestLine<'a> {
    /// One that a cache can answer or that changes what it holds.
    Cached(Op, &'a [u8]),
    /// HTTP with a method that no cache stores.
    OtherMethod,
    /// Anything else.
    NotHttp,
}

/// `METHOD target HTTP/version`; the version may be missing, as in HTTP/0.9. A target may contain
/// blanks: servers log what they were sent.
fn request_line(request: &[u8]) -> RequestLine<'_> {
    let Some((method, rest)) = split_at_byte(request, b' ') else { return RequestLine::NotHttp };
    let version = memchr::memmem::rfind(rest, b" HTTP/");
    let target = version.map_or(rest, |at| &rest[..at]);
    let op = match method {
        b"GET" | b"HEAD" => Op::Read,
        b"PUT" | b"POST" | b"PATCH" => Op::Write,
        b"DELETE" => Op::Delete,
        // Only a line that says HTTP may have another method.
        _ => {
            let is_method =
                method.iter().all(|byte| b"-_".contains(byte) || byte.is_ascii_uppercase());
            return if is_method && version.is_some() && !target.is_empty() {
                RequestLine::OtherMethod
            } else {
                RequestLine::NotHttp
            };
        }
    };
    if target.is_empty() { RequestLine::NotHttp } else { RequestLine::Cached(op, target) }
}

/// Whether `haypile proxy` refused the request of a line, from what follows the request.
fn is_refused(status: &[u8], mut rest: &[u8]) -> bool {
    if !status.starts_with(b"4") && !status.starts_with(b"5") {
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

fn split_at_byte(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(byte, text)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Splits at the closing quote, the first one without a backslash before it.
fn split_quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', &text[from..])?;
        if text[at] == b'"' {
            return Some((&text[..at], &text[at + 1..]));
        }
        from = at + 2;
        if from > text.len() {
            return None;
        }
    }
}
