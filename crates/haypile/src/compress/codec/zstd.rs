//! The Zstandard compressor.

use zstd::bulk::{Compressor, Decompressor};

use crate::compress::spec::MAX_ZSTD_LEVEL;

/// The start of a frame. Older formats start differently, and are not read.
const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// The Zstandard compressor and decompressor of one thread.
#[derive(Default)]
pub(super) struct Zstd {
    /// The last compressor used, and its level.
    compressor: Option<(i32, Compressor<'static>)>,
    decompressor: Option<Decompressor<'static>>,
}

impl Zstd {
    /// Appends `value` in compressed form to `out`, and returns whether that takes at most
    /// `max_bytes`; see [`Codec::compress`](super::Codec::compress).
    pub(super) fn compress(
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

    /// Decompresses Zstandard `data` into `out`, and returns the length of the result; `None` if
    /// `data` is damaged, or `out` is too short.
    pub(super) fn decompress(&mut self, data: &[u8], out: &mut [u8]) -> Option<usize> {
        if !data.starts_with(&MAGIC) {
            return None;
        }
        let decompressor = match &mut self.decompressor {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new().ok()?),
        };
        decompressor.decompress_to_buffer(data, out).ok()
    }
}
