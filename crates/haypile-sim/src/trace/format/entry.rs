//! Parsed lines and records.

use super::super::{Key, Op, Request};
use super::bad::Bad;
use super::field;

/// Largest number of requests that one line of a trace may stand for: 512 MiB in blocks of 512 bytes, or a count of
/// requests. A line with more is bad.
pub const MAX_RUN: u64 = 1 << 20;

/// The requests that a parsed line of a trace stands for: none, one or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parsed<'a> {
    /// No request: a blank line, a break point.
    Nothing,
    /// One request.
    One(Request<'a>),
    /// The same request `count` times.
    Repeat { request: Request<'a>, count: u64 },
    /// Several requests, which the parser holds.
    Several(&'a [OwnedRequest]),
    /// `count` requests like `like`, for the keys from `first` on. `first + count` fits.
    Run { like: Request<'a>, first: u64, count: u64 },
}

/// A request of a trace that owns the bytes of its key.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OwnedRequest {
    pub(super) key: Vec<u8>,
    pub(super) size_bytes: Option<u64>,
    pub(super) op: Op,
    pub(super) time_us: Option<u64>,
    pub(super) ttl_us: Option<u64>,
}

impl OwnedRequest {
    /// Returns the request with a borrowed key. A key that is written as a number becomes one.
    pub(super) fn request(&self) -> Request<'_> {
        Request {
            key: field::key(&self.key),
            size_bytes: self.size_bytes,
            op: self.op,
            time_us: self.time_us,
            ttl_us: self.ttl_us,
            cost_ns: None,
        }
    }
}

/// A parser of a text format of traces, one line at a time.
pub(super) trait LineParser {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Bad<'a>>;
}

/// A parser of a binary format of traces whose records all have the same length.
pub(super) trait RecordParser {
    /// Bytes of a record, never 0.
    fn record_bytes(&self) -> usize;

    /// Parses `record_bytes` bytes.
    fn parse(&self, record: &[u8]) -> Result<Request<'static>, Bad<'static>>;
}

impl<'a> Parsed<'a> {
    /// Returns requests for `count` consecutive keys from `first` on, all like `like`. `found` is the text of the line,
    /// for the error if they are too many.
    pub(super) fn run(
        like: Request<'a>,
        first: u64,
        count: u64,
        found: &'a [u8],
    ) -> Result<Self, Bad<'a>> {
        if count > MAX_RUN || first.checked_add(count).is_none() {
            return Err(Bad::new(
                format!("at most {MAX_RUN} blocks, all of 64-bit numbers"),
                found,
            ));
        }
        Ok(match count {
            0 => Self::Nothing,
            1 => Self::One(Request { key: Key::Number(first), ..like }),
            _ => Self::Run { like, first, count },
        })
    }
}
