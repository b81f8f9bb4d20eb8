//! Stored pixmaps and their uses, in bytes.

use std::sync::Arc;

use haypile::OwnedPinned;

use crate::pixmap::Pixmap;
use crate::stamp::{STAMP_BYTES, Stamp};

/// Begins an entry; the digits are the version of the format.
const MAGIC: [u8; 8] = *b"hpentr01";
/// Magic, when it was stored, whether it has a source, the source's stamp, the length of the key.
const HEAD_BYTES: usize = 8 + 8 + 4 + STAMP_BYTES + 4;

/// A picture from the cache, with the stamp (identity and times) of its source file.
pub(super) struct Entry {
    pub(super) pixmap: Pixmap,
    /// The stamp (identity, length and times) of the picture's source file when the picture was made; `None` without a
    /// source file.
    pub(super) source: Option<Stamp>,
}

/// The number of times that a stored picture was used, and the time of the last use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) times: u64,
    pub(super) last_ns: i64,
}

impl Entry {
    pub(super) fn encode(
        pixmap: &Pixmap,
        key: &[u8],
        source: Option<Stamp>,
        now_ns: i64,
    ) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + key.len() + pixmap.pixels().len() + 8);
        bytes.extend(MAGIC);
        bytes.extend(now_ns.to_le_bytes());
        bytes.extend(u32::from(source.is_some()).to_le_bytes());
        bytes.extend(source.unwrap_or_default().to_bytes());
        bytes.extend(u32::try_from(key.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend(key);
        bytes.extend(pixmap.width().to_le_bytes());
        bytes.extend(pixmap.height().to_le_bytes());
        bytes.extend(pixmap.pixels());
        bytes
    }

    /// Decodes a value from the cache as a picture, if it belongs to this key.
    pub(super) fn decode(value: OwnedPinned, key: &[u8]) -> Option<Self> {
        let rest = value.strip_prefix(&MAGIC)?;
        let has_source = number(rest, 8)? != 0;
        let stamp = Stamp::from_bytes(rest.get(12..12 + STAMP_BYTES)?.try_into().ok()?);
        let key_bytes = usize::try_from(number(rest, 12 + STAMP_BYTES)?).ok()?;
        let at = HEAD_BYTES.checked_add(key_bytes)?;
        if value.get(HEAD_BYTES..at)? != key {
            return None;
        }
        let (width, height) = (number(&value, at)?, number(&value, at + 4)?);
        let pixmap = Pixmap::in_place(width, height, Arc::new(value), at + 8)?;
        Some(Self { pixmap, source: has_source.then_some(stamp) })
    }

    /// Returns the time at which a picture was stored in the cache, in nanoseconds since 1970;
    /// `None` if the value is not a picture.
    pub(super) fn stored_ns(value: &[u8]) -> Option<i64> {
        let rest = value.strip_prefix(&MAGIC)?;
        Some(i64::from_le_bytes(rest.get(..8)?.try_into().ok()?))
    }
}

impl Use {
    pub(super) fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.times.to_le_bytes());
        bytes[8..].copy_from_slice(&self.last_ns.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; 16] = bytes.try_into().ok()?;
        let (times, last) = bytes.split_at(8);
        Some(Self {
            times: u64::from_le_bytes(times.try_into().ok()?),
            last_ns: i64::from_le_bytes(last.try_into().ok()?),
        })
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}
