//! `HAProxy`'s log of HTTP requests, with what syslog writes before it:
//!
//! `... 192.0.2.1:55008 [25/Sep/2018:06:05:27.584] front back/server 0/0/0/72/72 200 7456 - - ---- 5/4/0/1/0 0/0 {} {} "GET / HTTP/1.1"`
//!
//! The key is the request target. The size is what it sent, headers included. A miss costs the time until the server has sent
//! the head of its response. Its times have no zone: they are taken for UTC. Messages
//! that are not of a request are left out.

use super::super::bad::Bad;
use super::super::options::TimeUnit;
use super::{Exchange, Line, Lines, Why, cost_ns, request_line, size, split_at_byte, status, time};

#[derive(Debug)]
pub(super) struct Haproxy;

impl Lines for Haproxy {
    fn read<'a>(&'a mut self, line: &'a [u8]) -> Result<Line<'a>, Bad<'a>> {
        match exchange(line) {
            // Such as a handshake that failed, or the start of a proxy.
            Err(_) if memchr::memmem::find(line, b"haproxy[").is_some() => {
                Ok(Line::LeftOut(Why::NoValue))
            }
            read => read,
        }
    }

    fn counts_headers(&self) -> bool {
        true
    }
}

fn exchange(line: &[u8]) -> Result<Line<'_>, Bad<'_>> {
    let shape =
        || Bad::new("client:port [time] frontend backend/server timers status bytes ...", line);
    let open = memchr::memmem::find(line, b" [").ok_or_else(shape)?;
    let (time, rest) = split_at_byte(&line[open + 2..], b']').ok_or_else(shape)?;
    let time_us = time::without_zone(time).ok_or_else(shape)?;
    let mut columns = rest.split(u8::is_ascii_whitespace).filter(|column| !column.is_empty());
    let mut next = || columns.next().ok_or_else(shape);
    let (_frontend, server, timers, status_text, size_text) =
        (next()?, next()?, next()?, next()?, next()?);
    if !server.contains(&b'/') || !timers.contains(&b'/') {
        return Err(shape());
    }
    let request = rest.trim_ascii_end().strip_suffix(b"\"");
    let request = request.and_then(|text| Some(&text[memchr::memmem::rfind(text, b" \"")? + 2..]));
    let Some((method, target)) = request.and_then(request_line) else {
        return Ok(Line::LeftOut(Why::NotHttp));
    };
    if status_text == b"-1" {
        return Ok(Line::LeftOut(Why::NotHttp));
    }
    let (status, size_bytes) = (status(status_text)?, size(size_text)?);
    // The fourth is the time until the server has sent the head of its response.
    let of_server = timers.split(|&byte| byte == b'/').nth(3).unwrap_or_default();
    Ok(Line::Exchange(Exchange {
        cost_ns: cost_ns(of_server, TimeUnit::Milliseconds),
        ..Exchange::new(method, target, status, size_bytes, time_us)
    }))
}
