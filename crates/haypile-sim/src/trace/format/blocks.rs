//! Blocks of devices, which the requests of block traces are divided into.

use super::super::{Request, TraceError};
use super::bad::Bad;
use super::entry::Parsed;

/// The size of the blocks into which the requests of a block trace are divided: a multiple of 512 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize(u64);

/// The size of a disk sector in bytes, which is the unit of addresses in block traces.
pub(super) const SECTOR_BYTES: u64 = 512;

impl BlockSize {
    /// The block size of one sector.
    pub(super) const SECTOR: Self = Self(SECTOR_BYTES);

    /// Creates a block size from a number of bytes, which must be a multiple of 512 (a sector).
    ///
    /// # Errors
    /// [`TraceError::BlockSize`] if it is not a multiple of 512 bytes, or 0.
    pub fn new(bytes: u64) -> Result<Self, TraceError> {
        if bytes > 0 && bytes.is_multiple_of(SECTOR_BYTES) {
            Ok(Self(bytes))
        } else {
            Err(TraceError::BlockSize { bytes })
        }
    }

    /// Returns the block size in bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }

    /// Returns the number of the first block that a range of bytes touches, and how many blocks it touches; `None` if
    /// the range ends beyond 2^64.
    pub(super) fn touched(self, offset: u64, bytes: u64) -> Option<(u64, u64)> {
        let first = offset / self.0;
        let end = offset.checked_add(bytes)?.div_ceil(self.0);
        Some((first, if bytes == 0 { 0 } else { end - first }))
    }
}

impl Default for BlockSize {
    /// 4 KiB.
    fn default() -> Self {
        Self(4096)
    }
}

/// Bits of a key that hold the number of a block; those above hold the device.
const BLOCK_BITS: u32 = 48;

/// The largest device number that fits into a key of a block trace, next to the block number.
pub(super) const MAX_DEVICE: u64 = (1 << (u64::BITS - BLOCK_BITS)) - 1;

/// A description of the block numbers that fit into a key, for error messages.
pub(super) const EXPECTED_BLOCKS: &str = "blocks below 2^48";

/// Returns a request for each block of a device that a range of bytes touches. The device is at most [`MAX_DEVICE`],
/// the range is `(offset, bytes)`, and all requests are like `like`, with the size of a block; `found` is the text of
/// the request, for error messages.
pub(super) fn blocks_of_device<'a>(
    like: Request<'a>,
    device: u64,
    (offset, bytes): (u64, u64),
    block_size: BlockSize,
    found: &'a [u8],
) -> Result<Parsed<'a>, Bad<'a>> {
    let touched = block_size.touched(offset, bytes);
    let touched = touched.filter(|(first, count)| (first + count) >> BLOCK_BITS == 0);
    let (first, count) = touched.ok_or_else(|| Bad::new(EXPECTED_BLOCKS, found))?;
    let block = Request { size_bytes: Some(block_size.bytes()), ..like };
    Parsed::run(block, device << BLOCK_BITS | first, count, found)
}
