//! Clocks, which tests can replace.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The source of a store's time: a monotonic clock and the time of day.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns nanoseconds since an origin that stays the same for the life of this clock. Never
    /// goes back. Entries that live in one process expire by it.
    fn now_ns(&self) -> u64;

    /// Returns the time of day. It may jump. Entries that outlive a process expire by it.
    fn wall(&self) -> SystemTime;
}

/// A clock that reads the monotonic time and the time of day of the operating system.
///
/// Its monotonic side is [`Instant`]: on Linux it stands still while the machine is suspended, so
/// that an entry in memory outlives its TTL by the length of the suspension.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// Returns a clock of the operating system whose monotonic time is zero now.
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now_ns(&self) -> u64 {
        nanos(self.origin.elapsed())
    }

    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// A clock that moves only when a test calls it, for tests of the expiry of entries.
///
/// ```
/// use std::time::Duration;
/// use haypile::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// clock.advance(Duration::from_micros(3));
/// assert_eq!(clock.now_ns(), 3_000);
/// ```
#[derive(Debug, Default)]
pub struct ManualClock {
    now_ns: AtomicU64,
}

impl ManualClock {
    /// Returns a manual clock that stands at zero; its time of day is the Unix epoch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock's monotonic time and time of day forward by a duration; at most to 584 years
    /// after the clock's origin.
    pub fn advance(&self, by: Duration) {
        let later = |now: u64| Some(now.saturating_add(nanos(by)));
        // Always `Ok`: the closure never refuses.
        let _ = self.now_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }
}

impl Clock for ManualClock {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.now_ns())
    }
}

/// Converts a duration to nanoseconds, at most `u64::MAX`.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_both_sides_and_saturates() {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(2));
        assert_eq!(clock.now_ns(), 2_000_000_000);
        assert_eq!(clock.wall(), SystemTime::UNIX_EPOCH + Duration::from_secs(2));
        clock.advance(Duration::MAX);
        clock.advance(Duration::from_secs(1));
        assert_eq!(clock.now_ns(), u64::MAX);
    }

    #[test]
    fn the_system_clock_does_not_go_back() {
        let clock = SystemClock::new();
        let earlier = clock.now_ns();
        assert!(clock.now_ns() >= earlier);
    }
}
