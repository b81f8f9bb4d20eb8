//! Keys as integers of one width, without a header: each is a read.

use super::super::{Key, Request};
use super::bad::Bad;
use super::entry::RecordParser;

/// The width and byte order of the integers in a binary trace that contains only key numbers.
#[derive(Clone, Copy)]
pub(super) enum Integers {
    U32Le,
    /// 32-bit big-endian integers, as Java's `DataOutputStream.writeInt` writes them. A negative
    /// number becomes the key of the same 32 bits.
    I32Be,
    U64Le,
}

impl RecordParser for Integers {
    fn record_bytes(&self) -> usize {
        match self {
            Self::U32Le | Self::I32Be => 4,
            Self::U64Le => 8,
        }
    }

    fn parse(&self, record: &[u8]) -> Result<Request<'static>, Bad<'static>> {
        let key = match self {
            Self::U32Le => u32::from_le_bytes(array(record)).into(),
            Self::I32Be => u32::from_be_bytes(array(record)).into(),
            Self::U64Le => u64::from_le_bytes(array(record)),
        };
        Ok(Request::read(Key::Number(key)))
    }
}

/// Returns the first `N` bytes of a binary record, which has at least `N`.
pub(super) fn array<const N: usize>(record: &[u8]) -> [u8; N] {
    *record.first_chunk().expect("a record has as many bytes as its format says")
}
