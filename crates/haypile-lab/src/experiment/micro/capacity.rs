//! The capacity of a cache in `micro`.

use std::fmt;
use std::str::FromStr;

use haypile::ByteSize;

use super::MicroError;

/// A capacity of a cache: a share of the bytes of all keys and values of a case, or a size in
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Capacity {
    /// A share of the bytes of all keys and values, from 0 to 1.
    Share(f64),
    /// A size in bytes.
    Bytes(ByteSize),
}

impl Capacity {
    /// The allowed forms of a cache's capacity, for error messages.
    pub const ALLOWED: &'static str = "percentages of the keys, as in 50%, and sizes, as in 64MiB";

    /// Returns the number of bytes of keys and values that this capacity of a cache stands for.
    pub(super) fn bytes(self, keys: u32, entry_bytes: u64) -> u64 {
        let all = u64::from(keys) * entry_bytes;
        match self {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of at most 2^57 bytes; a byte more or less makes no difference"
            )]
            Self::Share(share) => (all as f64 * share) as u64,
            Self::Bytes(ByteSize(bytes)) => bytes,
        }
    }

    /// Returns the number of keys, with values, that fit into this capacity of a cache.
    pub(super) fn entries(self, keys: u32, entry_bytes: u64) -> u32 {
        let entries = self.bytes(keys, entry_bytes) / entry_bytes.max(1);
        u32::try_from(entries).map_or(keys, |entries| entries.min(keys))
    }
}

impl FromStr for Capacity {
    type Err = MicroError;

    fn from_str(text: &str) -> Result<Self, MicroError> {
        let unknown = || MicroError::Unknown {
            what: "capacity",
            text: text.to_owned(),
            allowed: Self::ALLOWED,
        };
        if let Some(percent) = text.strip_suffix('%') {
            let percent = percent.parse::<f64>().ok();
            let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
            return Ok(Self::Share(percent.ok_or_else(unknown)? / 100.0));
        }
        text.parse().map(Self::Bytes).map_err(|_| unknown())
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => write!(f, "{}%", share * 100.0),
            Self::Bytes(bytes) => write!(f, "{bytes}"),
        }
    }
}
