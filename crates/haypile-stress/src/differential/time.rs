//! Time as a test sees it: exact where it decides the time itself, and otherwise a pair of bounds.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haypile::{Clock, ManualClock, SystemClock};

/// The longest real sleep in the place of a longer pause.
const LONGEST_SLEEP: Duration = Duration::from_millis(3);

/// The clock of a differential test's run: a simulated one or the system's.
#[derive(Debug)]
pub(super) enum Time {
    /// A clock that moves when the run moves it: everything under test takes its time from it.
    Manual(Arc<ManualClock>),
    /// The system's clock, for servers that have a clock of their own.
    System(SystemClock),
}

impl Time {
    pub(super) fn manual() -> Self {
        Self::Manual(Arc::new(ManualClock::new()))
    }

    pub(super) fn system() -> Self {
        Self::System(SystemClock::new())
    }

    /// Returns the clock for the caches under test; `None` if they use the system's.
    pub(super) fn for_caches(&self) -> Option<Arc<dyn Clock>> {
        match self {
            Self::Manual(clock) => Some(Arc::clone(clock) as Arc<dyn Clock>),
            Self::System(_) => None,
        }
    }

    fn now_ns(&self) -> u64 {
        match self {
            Self::Manual(clock) => clock.now_ns(),
            Self::System(clock) => clock.now_ns(),
        }
    }

    /// Returns the current time of the run's clock, as bounds.
    pub(super) fn now(&self) -> Moment {
        Moment::at(self.now_ns())
    }

    /// Performs `work`, and returns its result with the times of the run's clock between which it
    /// happened.
    pub(super) fn of<T>(&self, work: impl FnOnce() -> T) -> (T, Moment) {
        let earliest_ns = self.now_ns();
        let result = work();
        (result, Moment { earliest_ns, latest_ns: self.now_ns() })
    }

    /// Advances the run's clock; waits a few milliseconds at most if it is the system's.
    pub(super) fn advance(&self, by: Duration) {
        match self {
            Self::Manual(clock) => clock.advance(by),
            Self::System(_) => thread::sleep(by.min(LONGEST_SLEEP)),
        }
    }
}

/// Bounds (earliest and latest) on the time of an event, in nanoseconds of the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) earliest_ns: u64,
    pub(super) latest_ns: u64,
}

impl Moment {
    pub(super) fn at(ns: u64) -> Self {
        Self { earliest_ns: ns, latest_ns: ns }
    }
}

/// Bounds on the expiry of an entry: it is present before the earliest time, and absent from the
/// latest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expiry {
    pub(super) earliest_ns: u64,
    pub(super) latest_ns: u64,
}

impl Expiry {
    /// Whether the entry with this expiry may never expire.
    pub(super) fn is_unlimited(self) -> bool {
        self.latest_ns == u64::MAX
    }

    /// Whether the entry with this expiry has certainly expired by `now`.
    pub(super) fn is_over(self, now: Moment) -> bool {
        now.earliest_ns >= self.latest_ns
    }

    /// Whether the entry with this expiry may have expired by `now`.
    pub(super) fn may_be_over(self, now: Moment) -> bool {
        now.latest_ns >= self.earliest_ns
    }

    /// Returns the shortest and the longest possible remaining lifetime of the entry with this
    /// expiry.
    pub(super) fn left(self, now: Moment) -> (Duration, Duration) {
        let left = |end_ns: u64, now_ns| Duration::from_nanos(end_ns.saturating_sub(now_ns));
        (left(self.earliest_ns, now.latest_ns), left(self.latest_ns, now.earliest_ns))
    }
}
