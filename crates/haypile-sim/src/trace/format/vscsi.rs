//! `VMware` vSCSI traces, little-endian, in two versions:
//!
//! | version | bytes | fields |
//! |---|---|---|
//! | 1 | 32 | u32 serial, u32 length, u32 segments, u16 command, u16 version, u64 block, u64 time |
//! | 2 | 40 | u16 command, u16 version, u32 serial, u32 length, u32 segments, u64 block, u64 time, u64 response time |
//!
//! The length is in bytes, the time in microseconds, and the version is the upper byte of its
//! field. The key is the block. Reads and writes are requests; every other SCSI command is a bad
//! record.

use super::super::{Key, Request};
use super::bad::Bad;
use super::entry::RecordParser;
use super::integers::array;
use super::operation;

/// A version (1 or 2) of the vscsi trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vscsi {
    V1,
    V2,
}

/// Most records that are read to find the version.
const LOOKED_AT: usize = 64;

impl Vscsi {
    /// Returns the vscsi version of a file that starts with `head`: the one that most of its first
    /// records have.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        [Self::V2, Self::V1].into_iter().find(|version| {
            let mut count = 0;
            let mut agreeing = 0;
            for record in head.chunks_exact(version.record_bytes()).take(LOOKED_AT) {
                count += 1;
                agreeing += usize::from(version.fields(record).1 >> 8 == version.number());
            }
            agreeing * 2 > count
        })
    }

    /// Whether a file that starts with `head` is almost certainly a vscsi trace: its first records
    /// have one version, and most of them are reads or writes.
    pub(super) fn is_certain(head: &[u8]) -> bool {
        [Self::V2, Self::V1].into_iter().any(|version| {
            let mut count = 0;
            let mut known = 0;
            for record in head.chunks_exact(version.record_bytes()).take(LOOKED_AT) {
                let (command, found) = version.fields(record);
                if found >> 8 != version.number() {
                    return false;
                }
                count += 1;
                known += usize::from(operation::scsi(command).is_some());
            }
            known * 2 > count
        })
    }

    fn number(self) -> u16 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }

    /// The command and the version field.
    fn fields(self, record: &[u8]) -> (u16, u16) {
        let at = match self {
            Self::V1 => 12,
            Self::V2 => 0,
        };
        (u16::from_le_bytes(array(&record[at..])), u16::from_le_bytes(array(&record[at + 2..])))
    }
}

impl RecordParser for Vscsi {
    fn record_bytes(&self) -> usize {
        match self {
            Self::V1 => 32,
            Self::V2 => 40,
        }
    }

    fn parse(&self, record: &[u8]) -> Result<Request<'static>, Bad<'static>> {
        let (command, version) = self.fields(record);
        if version >> 8 != self.number() {
            let expected = format!("version {} as in the first records", self.number());
            return Err(Bad::new(expected, (version >> 8).to_string().into_bytes()));
        }
        let op = operation::scsi(command).ok_or_else(|| {
            Bad::new(operation::EXPECTED_SCSI, format!("{command:02x}").into_bytes())
        })?;
        let length_at = match self {
            Self::V1 => 4,
            Self::V2 => 8,
        };
        Ok(Request {
            key: Key::Number(u64::from_le_bytes(array(&record[16..]))),
            size_bytes: Some(u32::from_le_bytes(array(&record[length_at..])).into()),
            op,
            time_us: Some(u64::from_le_bytes(array(&record[24..]))),
            ttl_us: None,
            cost_ns: None,
        })
    }
}
