//! Shared parts of tests: the readers' here, the simulator's in `simulation`.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod simulation;

use haypile_sim::trace::format::{Format, ReadOptions, ReadReport, TraceReader};
use haypile_sim::trace::{Key, Op, Request, TraceError};

/// A request that owns its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) key: OwnedKey,
    pub(crate) size_bytes: Option<u64>,
    pub(crate) op: Op,
    pub(crate) time_us: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OwnedKey {
    Number(u64),
    Text(String),
}

impl From<u64> for OwnedKey {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for OwnedKey {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Key<'_>> for OwnedKey {
    fn from(key: Key<'_>) -> Self {
        match key {
            Key::Number(number) => Self::Number(number),
            Key::Text(text) => Self::Text(String::from_utf8_lossy(text).into_owned()),
        }
    }
}

impl From<Request<'_>> for Owned {
    fn from(request: Request<'_>) -> Self {
        Self {
            key: request.key.into(),
            size_bytes: request.size_bytes,
            op: request.op,
            time_us: request.time_us,
        }
    }
}

pub(crate) fn request(
    op: Op,
    key: impl Into<OwnedKey>,
    size_bytes: impl Into<Option<u64>>,
    time_us: impl Into<Option<u64>>,
) -> Owned {
    Owned { key: key.into(), size_bytes: size_bytes.into(), op, time_us: time_us.into() }
}

/// A read of which only the key is known.
pub(crate) fn key(key: impl Into<OwnedKey>) -> Owned {
    request(Op::Read, key, None, None)
}

pub(crate) fn options(format: Format) -> ReadOptions {
    ReadOptions { format: Some(format), ..ReadOptions::default() }
}

/// Reads bytes under a name.
pub(crate) fn read_named(
    name: &str,
    bytes: &[u8],
    options: &ReadOptions,
) -> Result<(ReadReport, Vec<Owned>), TraceError> {
    let mut requests = Vec::new();
    let mut sink = |request: Request<'_>| {
        requests.push(Owned::from(request));
        Ok(())
    };
    let report = TraceReader::from_reader(name, bytes, options)?.read(&mut sink)?;
    Ok((report, requests))
}

/// The requests of bytes that must be readable.
pub(crate) fn requests(bytes: impl AsRef<[u8]>, options: &ReadOptions) -> Vec<Owned> {
    let (report, requests) =
        read_named("t", bytes.as_ref(), options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.requests, requests.len() as u64);
    assert_eq!(report.bytes_read, bytes.as_ref().len() as u64);
    requests
}

/// The error text for bytes that must not be readable.
pub(crate) fn error(bytes: impl AsRef<[u8]>, options: &ReadOptions) -> String {
    match read_named("t", bytes.as_ref(), options) {
        Ok((report, _)) => panic!("no error but {report:?}"),
        Err(error) => error.to_string(),
    }
}
