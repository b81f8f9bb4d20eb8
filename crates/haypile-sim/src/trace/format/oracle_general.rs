//! libCacheSim's oracleGeneral: records of 24 bytes, little-endian, packed: u32 time in seconds,
//! u64 key, u32 size in bytes, and an i64 that says when the key comes next, which is ignored:
//! the next use is worked out here. Each record is a read; the format has no operations.

use super::super::{Key, Op, Request};
use super::bad::Bad;
use super::entry::RecordParser;
use super::integers::array;

pub(super) struct OracleGeneral;

impl RecordParser for OracleGeneral {
    fn record_bytes(&self) -> usize {
        24
    }

    fn parse(&self, record: &[u8]) -> Result<Request<'static>, Bad<'static>> {
        Ok(Request {
            key: Key::Number(u64::from_le_bytes(array(&record[4..]))),
            size_bytes: Some(u32::from_le_bytes(array(&record[12..])).into()),
            op: Op::Read,
            time_us: Some(u64::from(u32::from_le_bytes(array(record))) * 1_000_000),
            ttl_us: None,
            cost_ns: None,
        })
    }
}
