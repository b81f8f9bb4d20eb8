//! [`Freshness`]: the time for which a value is fresh, and the time for which a stale one may be
//! served.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::store::Hit;
use crate::write::SetOptions;

/// Durations for which a computed value is fresh, stale but served, and due for an early refresh.
///
/// ```text
/// stored      next one computed     may be served      gone
///   |----- fresh ----[--- early ---]|------ stale ------|
/// ```
///
/// A `Duration` converts into a value that is fresh for that time, and neither refreshed early nor
/// served stale.
///
/// ```
/// use std::time::Duration;
/// use haypile::Freshness;
///
/// let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
/// let freshness = Freshness::new(minutes(10)).with_early(minutes(1)).with_stale(minutes(60));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Freshness {
    /// The time for which a computed value is fresh, counted from its storing. Zero is an error
    /// when it is used.
    pub fresh: Duration,
    /// The additional time for which a stale computed value may be served while it is refreshed, or
    /// cannot be refreshed. Together with `fresh` it is the time to live.
    pub stale: Duration,
    /// The time before the end of a computed value's freshness at which one caller refreshes the
    /// value, while the others are served the one that is still fresh. If it is as long as `fresh`,
    /// or longer, each call that finds no computation in progress starts one.
    pub early: Duration,
}

impl Freshness {
    /// Returns settings by which a computed value is fresh for this duration, and then expires at
    /// once.
    pub fn new(fresh: Duration) -> Self {
        Self { fresh, stale: Duration::ZERO, early: Duration::ZERO }
    }

    /// Sets the time for which a computed value that is no longer fresh is still served.
    #[must_use]
    pub fn with_stale(self, stale: Duration) -> Self {
        Self { stale, ..self }
    }

    /// Sets the time before the end of a computed value's freshness at which one caller refreshes
    /// the value.
    #[must_use]
    pub fn with_early(self, early: Duration) -> Self {
        Self { early, ..self }
    }

    /// Returns the options of a write whose value lives for the fresh and the stale time together.
    pub(crate) fn options(self) -> Result<SetOptions> {
        if self.fresh.is_zero() {
            return Err(Error::ZeroTtl);
        }
        Ok(SetOptions::set().with_ttl(self.fresh.saturating_add(self.stale)))
    }

    /// Whether a cached value that a read has found should be computed again now, because it is
    /// stale or soon will be.
    pub(crate) fn is_due(self, hit: Hit) -> bool {
        hit.expires_in.is_some_and(|left| left <= self.stale.saturating_add(self.early))
    }
}

impl From<Duration> for Freshness {
    fn from(fresh: Duration) -> Self {
        Self::new(fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ttl::Ttl;

    #[test]
    fn the_next_value_is_due_early_or_when_this_one_is_stale() {
        let seconds = Duration::from_secs;
        let freshness = Freshness::new(seconds(10)).with_early(seconds(2)).with_stale(seconds(5));
        assert_eq!(freshness.options().unwrap().ttl, Ttl::After(seconds(15)));
        let is_due = |left| freshness.is_due(Hit::new(None, left));
        assert!(!is_due(Some(seconds(15))));
        assert!(!is_due(Some(seconds(7) + Duration::from_nanos(1))));
        assert!(is_due(Some(seconds(7))));
        assert!(is_due(Some(seconds(1))));
        assert!(!is_due(None));
        assert!(!Freshness::new(seconds(1)).is_due(Hit::new(None, Some(Duration::from_nanos(1)))));
    }

    #[test]
    fn it_saturates_and_refuses_nothing_at_all() {
        let for_ever = Freshness::new(Duration::MAX).with_stale(Duration::MAX);
        assert_eq!(for_ever.options().unwrap().ttl, Ttl::After(Duration::MAX));
        let never = Freshness::new(Duration::ZERO).with_stale(Duration::MAX);
        assert!(matches!(never.options(), Err(Error::ZeroTtl)));
    }
}
