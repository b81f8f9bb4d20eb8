//! The compressors, one of each per thread.
//!
//! To make those of Zstandard took some 10 microseconds each way when it was measured, several times
//! what a value of 512 bytes takes; for LZ4 it makes no difference above 1 KiB. They stay with the
//! thread until it ends: 8 to 24 KiB for LZ4, and for Zstandard what its level and the longest value
//! ask for. It said 56 KB for values of 1,600 bytes and 1.3 MB for long ones at level 3; at level 19
//! 0.2 MB, 18 MB for 1 MiB and 85 MB for 64 MiB.

use std::cell::Cell;

use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};
use zstd::bulk::{Compressor, Decompressor};

use super::spec::{Compression, MAX_ZSTD_LEVEL};

/// LZ4's tables come in two sizes; this is the first length that the small one does not take.
const LZ4_SMALL_BYTES: usize = 65_535;

/// The longest input of LZ4: the format's own limit.
const LZ4_MAX_BYTES: usize = 0x7E00_0000;

/// How many times as long as compressed data of LZ4 the result can be.
const LZ4_MAX_RATIO: u64 = 255;

/// The longest block of Zstandard, and the shortest form of one, in bytes.
const ZSTD_BLOCK_BYTES: u64 = 128 << 10;
const ZSTD_MIN_BLOCK_BYTES: u64 = 4;

/// What a frame of Zstandard starts with. Older formats start otherwise, and are not read.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// The room that a thread keeps for the next value, at most, in bytes.
const KEPT_BYTES: usize = 1 << 20;

thread_local! {
    static CODEC: Cell<Option<Box<Codec>>> = const { Cell::new(None) };
}

/// What a thread compresses and decompresses with, and room for one value.
#[derive(Default)]
pub(super) struct Codec {
    lz4_small: Option<CompressTable>,
    lz4_large: Option<CompressTable>,
    /// The last one used, and its level.
    compressor: Option<(i32, Compressor<'static>)>,
    decompressor: Option<Decompressor<'static>>,
    pub(super) scratch: Vec<u8>,
}

/// Data that no compressor has written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Corrupt;

impl Codec {
    /// Calls `work` with the codec of this thread. A call within `work` gets another one.
    pub(super) fn with<R>(work: impl FnOnce(&mut Self) -> R) -> R {
        // A thread that ends has none any more.
        let mut codec = CODEC.try_with(Cell::take).ok().flatten().unwrap_or_default();
        let result = work(&mut codec);
        codec.scratch.clear();
        codec.scratch.shrink_to(KEPT_BYTES);
        // That of a thread that ends is dropped.
        let _ = CODEC.try_with(|kept| kept.set(Some(codec)));
        result
    }

    /// Appends `value` in compressed form to `out`, if that makes it no longer than `max_bytes`;
    /// says whether it does. What is appended where it does not is unspecified.
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
            // The length stands before the frame.
            if compressor.include_contentsize(false).is_err() {
                return false;
            }
            self.compressor = Some((level, compressor));
        }
        let (_, compressor) = self.compressor.as_mut().expect("it was just made");
        let start = out.len();
        if out.try_reserve(max_bytes).is_err() {
            return false;
        }
        out.resize(start + max_bytes, 0);
        // What does not fit does not help: it ends with an error.
        let Ok(bytes) = compressor.compress_to_buffer(value, &mut out[start..]) else {
            return false;
        };
        out.truncate(start + bytes);
        true
    }

    /// Fills `out` with what `data` gives.
    ///
    /// # Errors
    ///
    /// [`Corrupt`] unless it is exactly that many bytes.
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

/// How data was compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Lz4,
    Zstd,
}

impl Method {
    /// The number that stands for it in files and stored values; none is 0.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Lz4 => 1,
            Self::Zstd => 2,
        }
    }

    /// The method that a number stands for.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        [Self::Lz4, Self::Zstd].into_iter().find(|method| method.number() == number)
    }

    /// More than any data of this length can give.
    pub(super) fn bound_bytes(self, data_bytes: usize) -> u64 {
        let data_bytes = data_bytes as u64;
        match self {
            Self::Lz4 => data_bytes.saturating_mul(LZ4_MAX_RATIO),
            Self::Zstd => (data_bytes / ZSTD_MIN_BLOCK_BYTES).saturating_mul(ZSTD_BLOCK_BYTES),
        }
    }
}
