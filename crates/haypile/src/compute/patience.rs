//! The time that one caller spends waiting for others.

use std::time::{Duration, Instant};

use crate::mutant;
use crate::store::ClaimHolder;

/// The longest sleep of a caller that waits for another's computation, before it checks the key's
/// state again.
pub(super) const NAP: Duration = Duration::from_millis(10);
/// The interval at which the `poll` function of a caller that waits for another's computation is
/// called.
pub(super) const POLL: Duration = Duration::from_millis(50);
/// The longest wait for another process that computes a key but is stopped or frozen, or that holds
/// a lock which hides who computes the key.
pub(super) const HALTED_WAIT: Duration = Duration::from_secs(1);

/// The time that one call may wait for other callers' computations: `compute_wait` in total for
/// those that fail one after the other, and once more for a caller that took over from a
/// computation of that length.
#[derive(Debug)]
pub(super) struct Patience {
    limit: Duration,
    /// The beginning of the wait; `None` before the wait begins.
    since: Option<Instant>,
    /// Whether this caller has waited for several computations, one after the other.
    saw_failures: bool,
    /// Whether the wait was restarted, because another caller took over.
    has_begun_again: bool,
    /// The last process seen to have the claim.
    holder: Option<ClaimHolder>,
    halted_since: Option<Instant>,
    busy_since: Option<Instant>,
    polled: Option<Instant>,
}

/// The next step of a caller whose key's value another process is computing: to wait, to take over
/// that process's right to compute, or to compute as well.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NextStep {
    Wait(Duration),
    TakeOver,
    Compute,
}

impl Patience {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            since: None,
            saw_failures: false,
            has_begun_again: false,
            holder: None,
            halted_since: None,
            busy_since: None,
            polled: None,
        }
    }

    /// Whether this call has already waited for another caller's computation of the key.
    pub(super) fn has_begun(&self) -> bool {
        self.since.is_some()
    }

    /// Returns the time left to wait for another caller's computation; the first call starts the
    /// time limit.
    pub(super) fn left(&mut self) -> Duration {
        let since = *self.since.get_or_insert_with(Instant::now);
        self.limit.saturating_sub(since.elapsed())
    }

    /// Records that the computation that this call waits for has failed, and that another caller computes. Returns
    /// whether there is time to wait for it.
    pub(super) fn note_failure(&mut self) -> bool {
        self.saw_failures = true;
        if mutant::is_on("failures-renew-the-patience") {
            self.since = None;
        }
        !self.has_begun_again && !self.left().is_zero()
    }

    /// Restarts the time limit of the wait, once, because another caller has taken over from a
    /// computation that took too long. Returns whether to wait for that caller.
    pub(super) fn begin_again(&mut self) -> bool {
        let may = !self.has_begun_again && !self.saw_failures;
        if may {
            self.has_begun_again = true;
            self.since = Some(Instant::now());
        }
        may
    }

    /// Decides whether the caller waits, takes over or computes as well, while the process `holder`
    /// has the right to compute the key's value.
    pub(super) fn on_taken(&mut self, holder: ClaimHolder) -> NextStep {
        self.busy_since = None;
        let before = self.holder.replace(holder);
        match before {
            // The caller has waited for a thread of its own process before.
            None if self.has_begun() => self.saw_failures = true,
            None => {}
            Some(before) if before.id == holder.id => {}
            Some(before) => {
                self.halted_since = None;
                let was_released = before.released != holder.released;
                let goes_on = if was_released && !mutant::is_on("third-process-is-not-awaited") {
                    self.note_failure()
                } else {
                    self.begin_again()
                };
                if !goes_on {
                    return NextStep::Compute;
                }
            }
        }
        let left = self.left();
        let now = Instant::now();
        self.halted_since = holder.is_halted.then(|| self.halted_since.unwrap_or(now));
        let halted_left =
            self.halted_since.map_or(left, |since| HALTED_WAIT.saturating_sub(now - since));
        match (left.min(halted_left), left) {
            (Duration::ZERO, Duration::ZERO) if self.saw_failures || self.has_begun_again => {
                NextStep::Compute
            }
            (Duration::ZERO, _) => NextStep::TakeOver,
            (left, _) => NextStep::Wait(left.min(NAP)),
        }
    }

    /// Decides whether the caller waits or computes by itself, when a lock of another process hides
    /// which process computes the key's value.
    pub(super) fn on_busy(&mut self) -> NextStep {
        let since = *self.busy_since.get_or_insert_with(Instant::now);
        let left = self.limit.min(HALTED_WAIT).saturating_sub(since.elapsed());
        if left.is_zero() { NextStep::Compute } else { NextStep::Wait(left.min(NAP)) }
    }

    /// Whether the `poll` function of a caller that waits for another's computation has to be
    /// called now.
    pub(super) fn is_poll_due(&mut self) -> bool {
        let since = self.since;
        let polled = self.polled.get_or_insert_with(|| since.unwrap_or_else(Instant::now));
        let is_due = polled.elapsed() >= POLL;
        if is_due {
            self.polled = Some(Instant::now());
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    fn holder(id: u64, released: u64) -> ClaimHolder {
        ClaimHolder::new(id, false).with_released(released)
    }

    fn halted(id: u64) -> ClaimHolder {
        ClaimHolder::new(id, true)
    }

    /// Lets the time pass that is left.
    fn exhaust(patience: &mut Patience) {
        patience.limit = Duration::ZERO;
    }

    #[test]
    fn a_process_that_takes_too_long_is_relieved_and_the_next_is_awaited_once() {
        let mut patience = Patience::new(LONG);
        assert_eq!(patience.on_taken(holder(1, 0)), NextStep::Wait(NAP));
        exhaust(&mut patience);
        assert_eq!(patience.on_taken(holder(1, 0)), NextStep::TakeOver);
        // Another process took the claim first.
        patience.limit = LONG;
        assert_eq!(patience.on_taken(holder(2, 0)), NextStep::Wait(NAP));
        exhaust(&mut patience);
        assert_eq!(patience.on_taken(holder(2, 0)), NextStep::Compute);
        patience.limit = LONG;
        assert_eq!(patience.on_taken(holder(3, 0)), NextStep::Compute);
    }

    #[test]
    fn processes_that_fail_are_awaited_one_after_the_other_for_one_time_in_total() {
        let mut patience = Patience::new(LONG);
        for number in 0..9 {
            assert_eq!(patience.on_taken(holder(number, number)), NextStep::Wait(NAP));
        }
        let since = patience.since;
        assert_eq!(patience.on_taken(holder(9, 9)), NextStep::Wait(NAP));
        assert_eq!(patience.since, since, "the time goes on");
        exhaust(&mut patience);
        assert_eq!(patience.on_taken(holder(9, 9)), NextStep::Compute);
        assert_eq!(patience.on_taken(holder(8, 10)), NextStep::Compute);
    }

    #[test]
    fn a_process_is_awaited_for_the_time_that_threads_have_left() {
        let mut patience = Patience::new(LONG);
        assert!(patience.note_failure(), "a thread failed, and another one computes");
        assert_eq!(patience.on_taken(holder(1, 0)), NextStep::Wait(NAP));
        exhaust(&mut patience);
        assert_eq!(patience.on_taken(holder(1, 0)), NextStep::Compute);
    }

    #[test]
    fn a_process_that_is_halted_is_awaited_for_less_time_and_may_go_on() {
        let mut patience = Patience::new(LONG);
        assert_eq!(patience.on_taken(halted(1)), NextStep::Wait(NAP));
        assert!(patience.halted_since.is_some());
        assert_eq!(patience.on_taken(holder(1, 0)), NextStep::Wait(NAP));
        assert_eq!(patience.halted_since, None);
        patience.halted_since = Instant::now().checked_sub(HALTED_WAIT);
        assert_eq!(patience.on_taken(halted(1)), NextStep::TakeOver);
        // The one that took over is halted as well.
        assert_eq!(patience.on_taken(halted(2)), NextStep::Wait(NAP));
        patience.halted_since = Instant::now().checked_sub(HALTED_WAIT);
        assert_eq!(patience.on_taken(halted(2)), NextStep::TakeOver);
    }

    #[test]
    fn a_lock_that_is_held_is_awaited_as_long_as_a_process_that_is_halted() {
        let mut patience = Patience::new(LONG);
        assert_eq!(patience.on_busy(), NextStep::Wait(NAP));
        patience.busy_since = Instant::now().checked_sub(HALTED_WAIT);
        assert_eq!(patience.on_busy(), NextStep::Compute);
        let mut patience = Patience::new(Duration::ZERO);
        assert_eq!(patience.on_busy(), NextStep::Compute);
    }

    #[test]
    fn a_caller_that_took_over_is_awaited_once_and_not_after_failures() {
        let mut patience = Patience::new(LONG);
        assert!(patience.begin_again() && !patience.begin_again());
        assert!(!patience.note_failure(), "it has waited for the whole time before");
        let mut patience = Patience::new(LONG);
        assert!(patience.note_failure() && !patience.begin_again());
        exhaust(&mut patience);
        assert!(!patience.note_failure());
    }
}
