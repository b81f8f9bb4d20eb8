//! The LZ4 compressor.

use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};

/// LZ4's tables come in two sizes; this is the first length that needs the larger one.
const SMALL_BYTES: usize = 65_535;

/// The longest input: the format's own limit.
const MAX_BYTES: usize = 0x7E00_0000;

/// The hash tables of a thread's LZ4 compressor, which are allocated once and reused for each value
/// to compress.
#[derive(Default)]
pub(super) struct Lz4 {
    small: Option<CompressTable>,
    large: Option<CompressTable>,
}

impl Lz4 {
    /// Appends `value` in compressed form to `out`, and returns whether that takes at most
    /// `max_bytes`; see [`Codec::compress`](super::Codec::compress).
    pub(super) fn compress(&mut self, value: &[u8], max_bytes: usize, out: &mut Vec<u8>) -> bool {
        if value.len() > MAX_BYTES {
            return false;
        }
        let table = if value.len() < SMALL_BYTES {
            self.small.get_or_insert_with(CompressTable::small)
        } else {
            self.large.get_or_insert_with(CompressTable::large)
        };
        let start = out.len();
        let room = get_maximum_output_size(value.len());
        if out.try_reserve(room).is_err() {
            return false;
        }
        out.resize(start + room, 0);
        let Ok(bytes) = compress_into_with_table(value, &mut out[start..], table) else {
            return false;
        };
        out.truncate(start + bytes);
        bytes <= max_bytes
    }

    /// Decompresses LZ4 `data` into `out`, and returns the length of the result; `None` if `data`
    /// is damaged, or `out` is too short.
    #[expect(clippy::unused_self, reason = "as Zstandard, which needs it")]
    pub(super) fn decompress(&mut self, data: &[u8], out: &mut [u8]) -> Option<usize> {
        decompress_into(data, out).ok()
    }
}
