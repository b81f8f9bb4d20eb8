//! libCacheSim's own form since December 2024, `.lcs`: a header of 8,192 bytes and packed records, little-endian.
//!
//! The first and the last 8 bytes of the header are 0x123456789abcdef0; the second 8 bytes are the version, which decides the records:
//!
//! | version | bytes | record |
//! |---|---|---|
//! | 1 | 24 | u32 time in seconds, u64 key, u32 size, i64 next access |
//! | 2 | 28 | u32 time, u64 key, u32 size, u8 operation, u24 tenant, i64 next access |
//! | 3 | 36 | u32 time, u64 key, i64 size, u8 operation, u24 tenant, u32 TTL in seconds, i64 next access |
//! | 4 to 8 | 40, 44, 52, 68, 100 | as 3, and 1, 2, 4, 8 or 16 features of 4 bytes |
//!
//! The rest of the header, tenants, features and next accesses are ignored. An operation that is not stated is a read.

use super::super::{Key, Op, Request};
use super::bad::Bad;
use super::entry::RecordParser;
use super::integers::array;

/// The magic number in the first and the last bytes of an LCS trace's header.
pub(super) const MAGIC: [u8; 8] = 0x1234_5678_9abc_def0_u64.to_le_bytes();

/// The length of an LCS trace's header in bytes.
pub(super) const HEADER_BYTES: usize = 8_192;

const MICROSECONDS: u64 = 1_000_000;

/// A parser of LCS traces (a format of libCacheSim), for one version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lcs(u8);

impl Lcs {
    /// Returns the parser for the format version that an LCS trace's header states; `None` if the header is not that of
    /// an LCS trace, or the version is unknown.
    pub(super) fn of(header: &[u8]) -> Option<Self> {
        let is_header = header.len() >= HEADER_BYTES
            && header.starts_with(&MAGIC)
            && header[..HEADER_BYTES].ends_with(&MAGIC);
        let version = u64::from_le_bytes(*header.get(8..)?.first_chunk()?);
        let version = u8::try_from(version).ok().filter(|version| (1..=8).contains(version));
        version.filter(|_| is_header).map(Self)
    }
}

impl RecordParser for Lcs {
    fn record_bytes(&self) -> usize {
        match self.0 {
            1 => 24,
            2 => 28,
            3 => 36,
            version => 36 + (4 << (version - 4)),
        }
    }

    fn parse(&self, record: &[u8]) -> Result<Request<'static>, Bad<'static>> {
        let size_bytes = match self.0 {
            1 | 2 => u64::from(u32::from_le_bytes(array(&record[12..]))),
            _ => u64::from_le_bytes(array(&record[12..])),
        };
        let op = match self.0 {
            1 => 0,
            2 => record[16],
            _ => record[20],
        };
        let op = match op {
            0..=2 | 12 | u8::MAX => Op::Read,
            3..=8 | 10 | 11 | 13 | 14 => Op::Write,
            9 => Op::Delete,
            other => {
                return Err(Bad::new("an operation from 0 to 14", other.to_string().into_bytes()));
            }
        };
        let ttl_us = (self.0 > 2)
            .then(|| u64::from(u32::from_le_bytes(array(&record[24..]))) * MICROSECONDS);
        Ok(Request {
            key: Key::Number(u64::from_le_bytes(array(&record[4..]))),
            size_bytes: Some(size_bytes),
            op,
            time_us: Some(u64::from(u32::from_le_bytes(array(record))) * MICROSECONDS),
            ttl_us,
            cost_ns: None,
        })
    }
}
