//! Values of the option `compress=`.

use std::fmt;
use std::str::FromStr;

use super::codec::Method;

/// The highest level of Zstandard that is allowed. Higher ones take hundreds of megabytes of memory
/// per thread.
pub(super) const MAX_ZSTD_LEVEL: i32 = 19;

/// The default level of Zstandard, which is the format's own default.
const DEFAULT_ZSTD_LEVEL: i32 = 3;

/// The method by which a store compresses values: LZ4, or Zstandard with its level from 1 (fast) to
/// 19 (small).
///
/// It is parsed from `lz4`, `zstd` or `zstd:LEVEL`; `Display` prints the level.
///
/// ```
/// use haypile::compress::Compression;
///
/// let compression: Compression = "zstd".parse().unwrap();
/// assert_eq!(compression.to_string(), "zstd:3");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// The method LZ4: fast both ways.
    Lz4,
    /// The method Zstandard: smaller results, and slower.
    Zstd {
        /// The level of compression, from 1, fast, to 19, small. Other values are clamped to this
        /// range.
        level: i32,
    },
}

/// The error of parsing a text that does not name a compression of values, as `lz4`, `zstd` and
/// `zstd:7` do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "use lz4, zstd or zstd:LEVEL with a level from 1 (fast) to {MAX_ZSTD_LEVEL} (small); zstd \
     alone is zstd:{DEFAULT_ZSTD_LEVEL}"
)]
pub struct CompressionError;

impl Compression {
    pub(crate) fn method(self) -> Method {
        match self {
            Self::Lz4 => Method::Lz4,
            Self::Zstd { .. } => Method::Zstd,
        }
    }
}

/// Converts a method, at its default level.
impl From<Method> for Compression {
    fn from(method: Method) -> Self {
        match method {
            Method::Lz4 => Self::Lz4,
            Method::Zstd => Self::Zstd { level: DEFAULT_ZSTD_LEVEL },
        }
    }
}

impl FromStr for Compression {
    type Err = CompressionError;

    fn from_str(text: &str) -> Result<Self, CompressionError> {
        match text.split_once(':') {
            None if text == "lz4" => Ok(Self::Lz4),
            None if text == "zstd" => Ok(Self::Zstd { level: DEFAULT_ZSTD_LEVEL }),
            Some(("zstd", level)) if level.bytes().all(|byte| byte.is_ascii_digit()) => {
                let level = level.parse().map_err(|_| CompressionError)?;
                let allowed = (1..=MAX_ZSTD_LEVEL).contains(&level);
                if allowed { Ok(Self::Zstd { level }) } else { Err(CompressionError) }
            }
            _ => Err(CompressionError),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lz4 => f.write_str("lz4"),
            Self::Zstd { level } => write!(f, "zstd:{level}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        for (text, canonical) in [("lz4", "lz4"), ("zstd", "zstd:3"), ("zstd:19", "zstd:19")] {
            assert_eq!(text.parse::<Compression>().unwrap().to_string(), canonical);
        }
        for text in ["", "LZ4", "lz4:1", "zstd:", "zstd:0", "zstd:20", "zstd:-1", "zstd:+1", "gz"] {
            assert!(text.parse::<Compression>().is_err(), "{text}");
        }
    }
}
