//! Squid's own access log:
//!
//! `1584345236.354 15 192.0.2.1 TCP_MISS/200 1234 GET http://example.com/ - HIER_DIRECT/192.0.2.2 text/html`
//!
//! The key is the URL. The size is what Squid sent, headers included. A miss costs the time until the client has the
//! response. Requests that it denied and events of other
//! protocols (`UDP_...`) are left out.

use super::super::bad::Bad;
use super::super::field;
use super::super::options::TimeUnit;
use super::{Exchange, Line, Lines, Why, cost_ns, size, split_at_byte, status};

#[derive(Debug)]
pub(super) struct Squid;

impl Lines for Squid {
    fn read<'a>(&'a mut self, line: &'a [u8]) -> Result<Line<'a>, Bad<'a>> {
        let shape = || Bad::new("time elapsed client code/status bytes method URL", line);
        let columns = line.split(u8::is_ascii_whitespace).filter(|column| !column.is_empty());
        let mut columns = columns.fuse();
        let mut next = || columns.next().ok_or_else(shape);
        let (time, elapsed, _client) = (next()?, next()?, next()?);
        let (code, status_text) = split_at_byte(next()?, b'/').ok_or_else(shape)?;
        let (size_text, method, target) = (next()?, next()?, next()?);
        let time_us = field::time_us(time, TimeUnit::Seconds).ok_or_else(shape)?;
        if !code.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_') {
            return Err(shape());
        }
        let is_of = |part: &[u8]| memchr::memmem::find(code, part).is_some();
        if is_of(b"DENIED") {
            return Ok(Line::LeftOut(Why::Refused));
        }
        if code.starts_with(b"UDP_") {
            return Ok(Line::LeftOut(Why::NoValue));
        }
        let (status, size_bytes) = (status(status_text)?, size(size_text)?);
        Ok(Line::Exchange(Exchange {
            // What the origin confirmed was in the cache.
            was_hit: Some(is_of(b"HIT") || is_of(b"UNMODIFIED")),
            cost_ns: cost_ns(elapsed, TimeUnit::Milliseconds),
            ..Exchange::new(method, target, status, size_bytes, time_us)
        }))
    }

    fn counts_headers(&self) -> bool {
        true
    }
}
