//! Lines that memcached sends after `watch fetchers mutations`, one for each item that is looked up or stored.
//!
//! Each command that stores looks its key up first, and that is a line too, which is not a read. The lookup of a store is the last one of
//! the same connection (`cfd`) and key, so that a lookup is a read only when its connection has gone on to something else, or has done
//! nothing for a second. Until then it waits, and those after it with it, so that requests keep their order.
//!
//! Keys are percent-encoded. The seconds of `ts` have millionths without leading zeros behind the point. A store whose status is not `stored`
//! stored nothing. A line `skipped=` counts lines that memcached did not send. Deletions, `incr` and `touch` are lookups here: it has no lines for them.

use std::collections::{HashMap, VecDeque};

use percent_encoding::percent_decode;

use super::super::Op;
use super::bad::Bad;
use super::entry::{LineParser, OwnedRequest, Parsed};
use super::field;

/// The time after which a lookup is a read, although its connection has done nothing since.
const WAIT_US: u64 = 1_000_000;

/// Requests that wait at most.
const MOST_WAITING: usize = 1 << 16;

/// A parser of the output of memcached's `watch` command, which holds a lookup back until it is known whether a write
/// of the same connection follows.
#[derive(Default)]
pub(super) struct MemcachedWatch {
    waiting: VecDeque<Waiting>,
    /// Number of the first request that waits.
    first: u64,
    /// Number of the waiting lookup of each connection.
    lookups: HashMap<Vec<u8>, u64>,
    ready: Vec<OwnedRequest>,
    lost: u64,
}

/// A request that waits.
struct Waiting {
    /// The request; `None` where it was the lookup of a store.
    request: Option<OwnedRequest>,
    connection: Vec<u8>,
    is_certain: bool,
}

impl MemcachedWatch {
    /// Returns a note that memcached's output does not distinguish deletions, `incr` and `touch` from reads, and on how
    /// many lines it lost.
    pub(super) fn note(&self) -> String {
        let lost = match self.lost {
            0 => String::new(),
            lost => format!("{lost} lines are missing, because memcached did not send them; "),
        };
        format!(
            "{lost}deletions, incr and touch are read as reads, for memcached does not tell them apart"
        )
    }

    /// Returns the requests that the parser still holds back at the end of the input.
    pub(super) fn finish(&mut self) -> &[OwnedRequest] {
        self.ready.clear();
        self.lookups.clear();
        self.ready.extend(self.waiting.drain(..).filter_map(|waiting| waiting.request));
        &self.ready
    }

    /// Makes a read of the lookup of a connection that waits, if one does.
    fn settle(&mut self, connection: &[u8]) {
        if let Some(number) = self.lookups.remove(connection) {
            self.place(number).is_certain = true;
        }
    }

    /// Returns the request with this number, which waits.
    fn place(&mut self, number: u64) -> &mut Waiting {
        let at = usize::try_from(number - self.first).expect("few wait");
        &mut self.waiting[at]
    }

    /// Keeps a lookup back until the next line of its connection. The lookup before it there is a read then.
    fn looked_up(&mut self, request: OwnedRequest, connection: &[u8]) {
        self.settle(connection);
        let number = self.first + self.waiting.len() as u64;
        self.lookups.insert(connection.to_vec(), number);
        let connection = connection.to_vec();
        self.waiting.push_back(Waiting { request: Some(request), connection, is_certain: false });
    }

    /// Takes a store, or one that stored nothing (`None`), and drops the lookup that it made.
    fn stored(&mut self, request: Option<OwnedRequest>, key: &[u8], connection: &[u8]) {
        if let Some(number) = self.lookups.remove(connection) {
            let lookup = self.place(number);
            lookup.is_certain = true;
            if lookup.request.as_ref().is_some_and(|lookup| lookup.key == key) {
                lookup.request = None;
            }
        }
        if request.is_some() {
            let connection = Vec::new();
            self.waiting.push_back(Waiting { request, connection, is_certain: true });
        }
    }

    /// Moves the requests that need not wait longer than until `now_us` to those that are ready.
    fn release(&mut self, now_us: u64) {
        self.ready.clear();
        while let Some(next) = self.waiting.front() {
            let since_us = next.request.as_ref().and_then(|request| request.time_us);
            let has_waited = since_us.is_some_and(|since_us| since_us + WAIT_US < now_us);
            if !next.is_certain && !has_waited && self.waiting.len() < MOST_WAITING {
                return;
            }
            if !next.is_certain {
                self.lookups.remove(&next.connection);
            }
            self.first += 1;
            let next = self.waiting.pop_front().and_then(|waiting| waiting.request);
            self.ready.extend(next);
        }
    }
}

impl LineParser for MemcachedWatch {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Bad<'a>> {
        let line = line.trim_ascii();
        if line.is_empty() || line == b"OK" {
            return Ok(Parsed::Nothing);
        }
        if let Some(lost) = line.strip_prefix(b"skipped=").and_then(field::decimal) {
            self.lost = self.lost.saturating_add(lost);
            return Ok(Parsed::Nothing);
        }
        let expected = "ts=, gid=, type=, key= and cfd=, as memcached's watchers get them";
        let value = |name: &[u8]| {
            let mut words = line.split(|byte| *byte == b' ');
            words.find_map(|word| word.strip_prefix(name)?.strip_prefix(b"="))
        };
        let (Some(time), Some(kind)) = (value(b"ts"), value(b"type")) else {
            return Err(Bad::new(expected, line));
        };
        let time_us = time_us(time).ok_or_else(|| Bad::new("seconds and millionths", time))?;
        let is_store = match kind {
            b"item_get" => false,
            b"item_store" => true,
            // Evictions and connections, which others watch.
            _ => return Ok(Parsed::Nothing),
        };
        let (Some(key), Some(connection)) = (value(b"key"), value(b"cfd")) else {
            return Err(Bad::new(expected, line));
        };
        let key: Vec<u8> = percent_decode(key).collect();
        let number = |name| value(name).and_then(field::decimal);
        let size_bytes = number(b"size");
        if is_store {
            let ttl_us = number(b"ttl").map(|seconds| seconds.saturating_mul(1_000_000));
            let is_stored = value(b"status") == Some(b"stored");
            let request = is_stored.then(|| OwnedRequest {
                key: key.clone(),
                size_bytes,
                op: Op::Write,
                time_us: Some(time_us),
                ttl_us,
            });
            self.stored(request, &key, connection);
        } else {
            let size_bytes = size_bytes.filter(|size_bytes| *size_bytes > 0);
            let (op, time_us, ttl_us) = (Op::Read, Some(time_us), None);
            self.looked_up(OwnedRequest { key, size_bytes, op, time_us, ttl_us }, connection);
        }
        self.release(time_us);
        Ok(if self.ready.is_empty() { Parsed::Nothing } else { Parsed::Several(&self.ready) })
    }
}

/// Reads seconds and millionths, which are two numbers with a point between them.
fn time_us(text: &[u8]) -> Option<u64> {
    let point = memchr::memchr(b'.', text)?;
    let (seconds, millionths) =
        (field::decimal(&text[..point])?, field::decimal(&text[point + 1..])?);
    seconds.checked_mul(1_000_000)?.checked_add(millionths).filter(|us| *us < u64::MAX / 2)
}
