//! The time, as one operation sees it.

use std::cell::Cell;
use std::fmt;
use std::time::UNIX_EPOCH;

use crate::clock::Clock;

/// The time of day of one operation on the cache file: the clock is read at most once, and only if
/// the operation meets an entry that can expire.
pub(in crate::file) struct Now<'a> {
    /// The clock; `None` if the time is known.
    clock: Option<&'a dyn Clock>,
    ms: Cell<u64>,
}

impl fmt::Debug for Now<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Now").field(&self.ms.get()).finish()
    }
}

/// Returns the time of day of a clock, in ms since 1970.
pub(in crate::file) fn ms_of(clock: &dyn Clock) -> u64 {
    let since = clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX >> 16)
}

/// Stands for a time that was not read yet: no clock shows it.
const UNKNOWN: u64 = u64::MAX;

impl<'a> Now<'a> {
    pub(in crate::file) fn by(clock: &'a dyn Clock) -> Self {
        Self { clock: Some(clock), ms: Cell::new(UNKNOWN) }
    }

    /// Returns the time of day of an operation as a fixed `ms` since 1970 instead of a clock's
    /// time, for tests.
    #[cfg(all(test, shuttle))]
    pub(in crate::file) fn at(ms: u64) -> Self {
        Self { clock: None, ms: Cell::new(ms) }
    }

    /// Returns the time of day of one operation, in ms since 1970; at most the first call reads the
    /// clock.
    pub(in crate::file) fn ms(&self) -> u64 {
        if let Some(clock) = self.clock
            && self.ms.get() == UNKNOWN
        {
            self.ms.set(ms_of(clock));
        }
        self.ms.get()
    }

    /// Returns whether an entry with this expiry (ms since 1970, `u64::MAX` for never) is still
    /// valid at the operation's time of day.
    #[inline]
    pub(in crate::file) fn is_before(&self, expires_ms: u64) -> bool {
        expires_ms == u64::MAX || expires_ms > self.ms()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, SystemTime};

    use super::*;

    #[derive(Debug, Default)]
    struct Counted(AtomicU64);

    impl Clock for Counted {
        fn now_ns(&self) -> u64 {
            unreachable!("wall time only")
        }

        fn wall(&self) -> SystemTime {
            self.0.fetch_add(1, Ordering::Relaxed);
            UNIX_EPOCH + Duration::from_millis(7)
        }
    }

    #[test]
    fn a_clock_is_read_once_and_only_where_something_expires() {
        let clock = Counted::default();
        let now = Now::by(&clock);
        assert!(now.is_before(u64::MAX));
        assert_eq!(clock.0.load(Ordering::Relaxed), 0);
        assert!(now.is_before(8) && !now.is_before(7) && now.ms() == 7);
        assert_eq!(clock.0.load(Ordering::Relaxed), 1);
    }
}
