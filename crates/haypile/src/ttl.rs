//! TTLs: the life of entries.

use std::time::Duration;

use crate::clock::nanos;
use crate::error::{Error, Result};

/// The time to live of an entry, counted from the write or touch that sets it: the default of the
/// cache's URL, forever, or a duration.
///
/// `None` and a `Duration` convert into it, so that `cache.touch(key, None)` and
/// `cache.touch(key, Duration::from_millis(500))` read as they should. A duration of zero is
/// refused with [`Error::ZeroTtl`]: memcached reads it as "never expires", others as "expired".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ttl {
    /// The `ttl=` of the cache's URL; without one, [`Never`](Self::Never).
    #[default]
    Default,
    /// The entry does not expire. It may still be evicted.
    Never,
    /// The entry expires after this time. Each store documents its resolution, which is finer than
    /// a second except for memcached, which rounds up to seconds. A TTL of more than 500 years
    /// never expires.
    After(Duration),
}

impl From<Duration> for Ttl {
    fn from(duration: Duration) -> Self {
        Self::After(duration)
    }
}

impl From<Option<Duration>> for Ttl {
    /// `None` is [`Ttl::Never`].
    fn from(duration: Option<Duration>) -> Self {
        duration.map_or(Self::Never, Self::After)
    }
}

impl Ttl {
    /// Returns the time to live that a store has to apply to an entry, `None` for forever;
    /// `default` is the TTL of the store's URL.
    ///
    /// # Errors
    ///
    /// [`Error::ZeroTtl`].
    pub fn resolve(self, default: Option<Duration>) -> Result<Option<Duration>> {
        match self {
            Self::Default => Ok(default),
            Self::Never => Ok(None),
            Self::After(Duration::ZERO) => Err(Error::ZeroTtl),
            Self::After(duration) => Ok(Some(duration)),
        }
    }
}

/// Returns the expiry of an entry that is written now with this TTL, in nanoseconds of the store's
/// clock; `u64::MAX` means never.
pub(crate) fn expiry_ns(now_ns: u64, ttl: Option<Duration>) -> u64 {
    ttl.map_or(u64::MAX, |ttl| now_ns.saturating_add(nanos(ttl)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_against_the_cache() {
        let second = Duration::from_secs(1);
        assert_eq!(Ttl::Default.resolve(Some(second)).unwrap(), Some(second));
        assert_eq!(Ttl::Never.resolve(Some(second)).unwrap(), None);
        assert_eq!(Ttl::from(second).resolve(None).unwrap(), Some(second));
        assert_eq!(Ttl::from(None), Ttl::Never);
        assert!(matches!(Ttl::After(Duration::ZERO).resolve(None), Err(Error::ZeroTtl)));
    }

    #[test]
    fn an_expiry_saturates_at_never() {
        assert_eq!(expiry_ns(5, Some(Duration::from_nanos(7))), 12);
        assert_eq!(expiry_ns(5, Some(Duration::MAX)), u64::MAX);
        assert_eq!(expiry_ns(5, None), u64::MAX);
    }
}
