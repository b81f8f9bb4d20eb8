//! The compressors; each thread has its own.
//!
//! Creating those of Zstandard was measured at some 10 microseconds in each direction, several
//! times the time of compressing a value of 512 bytes; for LZ4 it makes no difference above 1 KiB.
//! They stay with the thread until it ends: 8 to 24 KiB for LZ4, and for Zstandard a size that
//! depends on the level and the longest value. It reported 56 KB for values of 1,600 bytes and 1.3
//! MB for long ones at level 3; at level 19 0.2 MB, 18 MB for 1 MiB and 85 MB for 64 MiB.

use std::cell::Cell;

#[cfg(feature = "lz4")]
mod lz4;
#[cfg(feature = "zstd")]
mod zstd;

use super::spec::Compression;

/// The maximum ratio of decompressed to compressed length of LZ4.
const LZ4_MAX_RATIO: u64 = 255;

/// The longest block of Zstandard, and the shortest form of a block, in bytes.
const ZSTD_BLOCK_BYTES: u64 = 128 << 10;
const ZSTD_MIN_BLOCK_BYTES: u64 = 4;

/// The largest buffer that a thread keeps for the next value, in bytes.
const KEPT_BYTES: usize = 1 << 20;

thread_local! {
    static CODEC: Cell<Option<Box<Codec>>> = const { Cell::new(None) };
}

/// The compressors and decompressors (LZ4 and Zstandard) of one thread, and a buffer for one value,
/// kept from value to value.
#[derive(Default)]
pub(super) struct Codec {
    #[cfg(feature = "lz4")]
    lz4: lz4::Lz4,
    #[cfg(feature = "zstd")]
    zstd: zstd::Zstd,
    pub(super) scratch: Vec<u8>,
}

/// The reason why stored data cannot be decompressed: they are damaged, or this build of the crate
/// lacks the compression method.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Undecompressed {
    /// The data did not come from the compressor.
    Corrupt,
    /// This build lacks the feature of this method.
    #[cfg(not(all(feature = "lz4", feature = "zstd")))]
    Absent(Method),
}

impl Codec {
    /// Calls `work` with the compressors and decompressors of this thread, and returns its result.
    /// A nested call gets others.
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
            #[cfg(feature = "lz4")]
            Compression::Lz4 => self.lz4.compress(value, max_bytes, out),
            #[cfg(feature = "zstd")]
            Compression::Zstd { level } => self.zstd.compress(level, value, max_bytes, out),
            #[cfg(not(all(feature = "lz4", feature = "zstd")))]
            _ => {
                let _ = (&self, value, max_bytes, out);
                false
            }
        }
    }

    /// Decompresses `data`, which a method compressed, into `out`, whose length is that of the
    /// value.
    ///
    /// # Errors
    ///
    /// [`Undecompressed::Corrupt`] unless the result has exactly the length of `out`.
    pub(super) fn decompress(
        &mut self,
        method: Method,
        data: &[u8],
        out: &mut [u8],
    ) -> Result<(), Undecompressed> {
        let bytes: Result<Option<usize>, Undecompressed> = match method {
            #[cfg(feature = "lz4")]
            Method::Lz4 => Ok(self.lz4.decompress(data, out)),
            #[cfg(feature = "zstd")]
            Method::Zstd => Ok(self.zstd.decompress(data, out)),
            #[cfg(not(all(feature = "lz4", feature = "zstd")))]
            _ => {
                let _ = (&self, data);
                Err(Undecompressed::Absent(method))
            }
        };
        if bytes? == Some(out.len()) { Ok(()) } else { Err(Undecompressed::Corrupt) }
    }
}

/// A method by which stored values are compressed: LZ4 or Zstandard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Lz4,
    Zstd,
}

impl Method {
    /// Returns the number of a compression method in files and stored values, which is never 0.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Lz4 => 1,
            Self::Zstd => 2,
        }
    }

    /// Returns the name of a compression method, which is also the name of its feature of this
    /// crate.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    /// Whether this build of the crate contains the compression method.
    pub(crate) fn is_available(self) -> bool {
        match self {
            Self::Lz4 => cfg!(feature = "lz4"),
            Self::Zstd => cfg!(feature = "zstd"),
        }
    }

    /// Returns the compression method with this number in files and stored values; `None` for an
    /// unknown number.
    pub(crate) fn of_number(number: u8) -> Option<Self> {
        [Self::Lz4, Self::Zstd].into_iter().find(|method| method.number() == number)
    }

    /// Returns the largest decompressed length, in bytes, that compressed data of `data_bytes`
    /// bytes can have.
    pub(super) fn bound_bytes(self, data_bytes: usize) -> u64 {
        let data_bytes = data_bytes as u64;
        match self {
            Self::Lz4 => data_bytes.saturating_mul(LZ4_MAX_RATIO),
            Self::Zstd => (data_bytes / ZSTD_MIN_BLOCK_BYTES).saturating_mul(ZSTD_BLOCK_BYTES),
        }
    }
}
