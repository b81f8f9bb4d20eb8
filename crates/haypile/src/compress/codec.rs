//! The compressors; each thread has its own.
//!
//! Creating those of Zstandard was measured at some 10 microseconds in each direction, several
//! times the time of compressing a value of 512 bytes; for LZ4 it makes no difference above 1 KiB.
//! They stay with the thread until it ends: 8 to 24 KiB for LZ4, and for Zstandard a size that
//! depends on the level and the longest value. It reported 56 KB for values of 1,600 bytes and 1.3
//! MB for long ones at level 3; at level 19 0.2 MB, 18 MB for 1 MiB and 85 MB for 64 MiB.

use std::cell::Cell;

use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};
use zstd::bulk::{Compressor, Decompressor};

use super::spec::{Compression, MAX_ZSTD_LEVEL};

/// LZ4's tables come in two sizes; this is the first length that needs the larger one.
const LZ4_SMALL_BYTES: usize = 65_535;

/// The longest input of LZ4: the format's own limit.
const LZ4_MAX_BYTES: usize = 0x7E00_0000;

/// The maximum ratio of decompressed to compressed length of LZ4.
const LZ4_MAX_RATIO: u64 = 255;

/// The longest block of Zstandard, and the shortest form of a block, in bytes.
const ZSTD_BLOCK_BYTES: u64 = 128 << 10;
const ZSTD_MIN_BLOCK_BYTES: u64 = 4;

/// The start of a Zstandard frame. Older formats start differently, and are not read.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// The largest buffer that a thread keeps for the next value, in bytes.
const KEPT_BYTES: usize = 1 << 20;

thread_local! {
    static CODEC: Cell<Option<Box<Codec>>> = const { Cell::new(None) };
}

/// The compressors and decompressors of a thread, and a buffer for one value.
#[derive(Default)]
pub(super) struct Codec {
    lz4_small: Option<CompressTable>,
    lz4_large: Option<CompressTable>,
    /// The last compressor used, and its level.
    compressor: Option<(i32, Compressor<'static>)>,
    decompressor: Option<Decompressor<'static>>,
    pub(super) scratch: Vec<u8>,
}

/// Data that did not come from the compressor.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Corrupt;

impl Codec {
    /// Calls `work` with the codec of this thread. A nested call gets another codec.
    pub(super) fn with<R>(work: impl FnOnce(&mut Self) -> R) -> R {
        // A thread that is ending has none.
        let mut codec = CODEC.try_with(Cell::take).ok().flatten().unwrap_or_default();
        let result = work(&mut codec);
        codec.scratch.clear();
        codec.scratch.shrink_to(KEPT_BYTES);
        // A thread that is ending drops it.
        let _ = CODEC.try_with(|kept| kept.set(Some(codec)));
        result
    }

    /// Appends `value` in compressed form to `out`, if that takes at most `max_bytes`; returns
    /// whether it does. Otherwise the appended bytes are unspecified.
    pub(super) fn compress(
        &mut self,
        compression: Compression,
        value: &[u8],
        max_bytes: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        match compression {
            Compression::Lz4 => self.compress_lz4(value, max_bytes, out),
            Compression::Zstd { level } => self.compress_zstd(level, value, max_bytes, out),
        }
    }

    fn compress_lz4(&mut self, value: &[u8], max_bytes: usize, out: &mut Vec<u8>) -> bool {
        if value.len() > LZ4_MAX_BYTES {
            return false;
        }
        let table = if value.len() < LZ4_SMALL_BYTES {
            self.lz4_small.get_or_insert_with(CompressTable::small)
        } else {
            self.lz4_large.get_or_insert_with(CompressTable::large)
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

    fn compress_zstd(
        &mut self,
        level: i32,
        value: &[u8],
        max_bytes: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let level = level.clamp(1, MAX_ZSTD_LEVEL);
        if self.compressor.as_ref().is_none_or(|(other, _)| *other != level) {
            let Ok(mut compressor) = Compressor::new(level) else { return false };
            // The header in front of the frame already has the length.
            if compressor.include_contentsize(false).is_err() {
                return false;
            }
            self.compressor = Some((level, compressor));
        }
        let (_, compressor) = self.compressor.as_mut().expect("it was created above");
        let start = out.len();
        if out.try_reserve(max_bytes).is_err() {
            return false;
        }
        out.resize(start + max_bytes, 0);
        // A result that does not fit is of no use: the compressor returns an error.
        let Ok(bytes) = compressor.compress_to_buffer(value, &mut out[start..]) else {
            return false;
        };
        out.truncate(start + bytes);
        true
    }

    /// Decompresses `data` into `out`.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] unless the result has exactly the length of `out`.
    pub(super) fn decompress(
        &mut self,
        method: Method,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<(), Corrupt> {
        let bytes = match method {
            Method::Lz4 => decompress_into(data, out).map_err(|_| Corrupt)?,
            Method::Zstd => {
                if !data.starts_with(&ZSTD_MAGIC) {
                    return Err(Corrupt);
                }
                let decompressor = match &mut self.decompressor {
                    Some(decompressor) => decompressor,
                    none => none.insert(Decompressor::new().map_err(|_| Corrupt)?),
                };
                decompressor.decompress_to_buffer(data, out).map_err(|_| Corrupt)?
            }
        };
        if bytes == out.len() { Ok(()) } else { Err(Corrupt) }
    }
}

/// The compression method of stored data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Lz4,
    Zstd,
}

impl Method {
    /// Returns the method's number in files and stored values, which is never 0.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Lz4 => 1,
            Self::Zstd => 2,
        }
    }

    /// Returns the method with this number.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        [Self::Lz4, Self::Zstd].into_iter().find(|method| method.number() == number)
    }

    /// Returns an upper bound on the decompressed length of any data of this length.
    pub(super) fn bound_bytes(self, data_bytes: usize) -> u64 {
        let data_bytes = data_bytes as u64;
        match self {
            Self::Lz4 => data_bytes.saturating_mul(LZ4_MAX_RATIO),
            Self::Zstd => (data_bytes / ZSTD_MIN_BLOCK_BYTES).saturating_mul(ZSTD_BLOCK_BYTES),
        }
    }
}
