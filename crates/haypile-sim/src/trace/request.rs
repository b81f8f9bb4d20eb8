//! Requests of a trace, and their receivers.

use super::TraceError;

/// The operation of a request in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// Looks the key up; a miss is filled from behind the cache.
    Read = 0,
    /// Stores a value whether or not the key is there.
    Write = 1,
    /// Removes the key.
    Delete = 2,
}

impl Op {
    /// Returns the operation that `number` encodes in a trace. Any number that is neither a read nor a write is a
    /// deletion, because the column of operations was checked before.
    #[inline]
    pub fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Read,
            1 => Self::Write,
            _ => Self::Delete,
        }
    }
}

/// A key of a trace: a number or a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key<'a> {
    /// A number: a block, an address, an object id.
    Number(u64),
    /// Anything else: a path, a URL.
    Text(&'a [u8]),
}

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The key that the request reads, writes or deletes.
    pub key: Key<'a>,
    /// The size of the value in bytes; `None` if the trace does not state it.
    pub size_bytes: Option<u64>,
    /// The operation of the request: read, write or delete.
    pub op: Op,
    /// The time of the request in microseconds of the trace's own clock; `None` if the trace does not state it.
    pub time_us: Option<u64>,
    /// The TTL of the value in microseconds, from this request on; `None` if the trace does not state it.
    pub ttl_us: Option<u64>,
    /// The time in nanoseconds that a miss of this read costs, such as that of computing the value; `None` if the trace
    /// does not state it.
    pub cost_ns: Option<u64>,
}

impl<'a> Request<'a> {
    /// Creates a request that reads a key, without a size, a time, a TTL or a cost.
    pub fn read(key: Key<'a>) -> Self {
        Self { key, size_bytes: None, op: Op::Read, time_us: None, ttl_us: None, cost_ns: None }
    }
}

/// A receiver of a trace's requests, one after the other, such as a builder of a trace.
pub trait Sink {
    /// Takes the next request. An error ends the reading.
    fn push(&mut self, request: Request<'_>) -> Result<(), TraceError>;
}

impl<F: FnMut(Request<'_>) -> Result<(), TraceError>> Sink for F {
    fn push(&mut self, request: Request<'_>) -> Result<(), TraceError> {
        self(request)
    }
}
