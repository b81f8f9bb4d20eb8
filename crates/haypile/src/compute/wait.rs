//! Bounded waiting for another caller that computes the same value.

use std::time::{Duration, Instant};

use super::ComputeError;
use super::holding::{HeldClaim, is_holding};
use crate::cache::Cache;
use crate::flight::{Boarding, Follower, Leader, Need, Waited};
use crate::fork;
use crate::mutant;
use crate::store::{Claim, ClaimHolder};

/// The longest sleep before a waiting caller checks the state again, or lets a fork happen.
const NAP: Duration = Duration::from_millis(10);
/// The interval at which a waiting caller is polled.
const POLL: Duration = Duration::from_millis(50);
/// The wait for another process that was seen to be halted.
const HALTED_WAIT: Duration = Duration::from_secs(1);

/// Ends a wait early: called about every 50 ms while the caller waits for another.
pub(super) type Poll<'a, E> = &'a mut dyn FnMut() -> Result<(), E>;

/// The outcome of following another thread of this process.
pub(super) enum Followed {
    Value(Vec<u8>),
    /// This caller leads now.
    Lead(Leader),
    /// This caller computes for itself.
    Alone,
}

/// The outcome of claiming a key among processes.
pub(super) enum Claimed<'a> {
    /// This caller computes, with or without the claim. Another process may have computed the value
    /// in the meantime.
    Compute { claim: Option<HeldClaim<'a>>, is_late: bool },
    /// Another process computes.
    Taken,
}

impl Cache {
    /// Waits for another thread. If that takes too long, one of the waiting callers overtakes it;
    /// the others wait once more, for the new leader, and then compute for themselves.
    pub(super) fn follow<E>(
        &self,
        key: &[u8],
        flight: &Follower,
        poll: Poll<'_, E>,
    ) -> Result<Followed, ComputeError<E>> {
        let flights = self.computations.flights();
        match self.wait_for(flight, poll)? {
            Waited::Landed(value) => return Ok(Followed::Value(value)),
            // The first caller to get here leads those that come later. The others do not wait
            // again, or failing computations would run one after the other.
            Waited::Abandoned => {
                return Ok(match flights.board(key, Need::Now) {
                    Boarding::Lead(leader) => Followed::Lead(leader),
                    Boarding::Follow(next) if mutant::is_on("failures-run-one-after-the-other") => {
                        return self.follow(key, &next, poll);
                    }
                    Boarding::Follow(_) => Followed::Alone,
                });
            }
            Waited::TimedOut => {}
        }
        match flights.overtake(key, flight) {
            Boarding::Lead(leader) => Ok(Followed::Lead(leader)),
            Boarding::Follow(next) => Ok(match self.wait_for(&next, poll)? {
                Waited::Landed(value) => Followed::Value(value),
                Waited::Abandoned | Waited::TimedOut => Followed::Alone,
            }),
        }
    }

    fn wait_for<E>(&self, flight: &Follower, poll: Poll<'_, E>) -> Result<Waited, ComputeError<E>> {
        let (begin, limit) = (Instant::now(), self.store.compute_wait());
        let mut polled = begin;
        loop {
            let left = limit.saturating_sub(begin.elapsed());
            let nap = if fork::is_inside() { NAP } else { POLL };
            let is_last = left <= nap && !mutant::is_on("leader-is-awaited-forever");
            match flight.wait(left.min(nap))? {
                Waited::TimedOut if !is_last => fork::pass(),
                waited => return Ok(waited),
            }
            if polled.elapsed() >= POLL {
                polled = Instant::now();
                poll().map_err(ComputeError::Compute)?;
            }
        }
    }

    /// Claims a key among the processes that share the store. If a process has held the claim for
    /// too long, one of the waiting callers takes it over; the others wait once more, and then
    /// compute.
    pub(super) fn claim<E>(
        &self,
        key: &[u8],
        waits: bool,
        poll: Poll<'_, E>,
    ) -> Result<Claimed<'_>, ComputeError<E>> {
        let mut wait: Option<ClaimWait> = None;
        let mut take_over = None;
        loop {
            let is_late = wait.is_some();
            let holder = match self.store.claim(key, take_over.take()) {
                Ok(Claim::Held { guard }) => {
                    return Ok(Claimed::Compute { claim: Some(HeldClaim::new(guard)), is_late });
                }
                Ok(Claim::Taken(_)) if !waits => return Ok(Claimed::Taken),
                Ok(Claim::Taken(holder)) if !is_holding() => holder,
                // The value is computed even without a claim.
                Ok(Claim::Taken(_) | Claim::Unneeded) | Err(_) => {
                    return Ok(Claimed::Compute { claim: None, is_late });
                }
            };
            let wait = wait.get_or_insert_with(|| ClaimWait::new(holder));
            match wait.on(holder, self.store.compute_wait()) {
                Patience::Wait(at_most) => {
                    fork::pass();
                    if wait.is_poll_due() {
                        poll().map_err(ComputeError::Compute)?;
                    }
                    self.store.await_claim(key, holder, at_most);
                }
                Patience::TakeOver => take_over = Some(holder),
                Patience::Compute => return Ok(Claimed::Compute { claim: None, is_late: true }),
            }
        }
    }
}

/// The decision about a process that holds a claim.
#[derive(Debug, PartialEq, Eq)]
enum Patience {
    Wait(Duration),
    TakeOver,
    Compute,
}

/// The processes that have been waited for, and for how long.
struct ClaimWait {
    holder: u64,
    since: Instant,
    halted_since: Option<Instant>,
    has_waited_twice: bool,
    polled: Instant,
}

impl ClaimWait {
    fn new(holder: ClaimHolder) -> Self {
        let now = Instant::now();
        let (since, polled) = (now, now);
        Self { holder: holder.id, since, halted_since: None, has_waited_twice: false, polled }
    }

    fn on(&mut self, holder: ClaimHolder, limit: Duration) -> Patience {
        let now = Instant::now();
        if holder.id != self.holder {
            if self.has_waited_twice {
                return Patience::Compute;
            }
            (self.holder, self.since, self.halted_since) = (holder.id, now, None);
            self.has_waited_twice = true;
        }
        self.halted_since = holder.is_halted.then(|| self.halted_since.unwrap_or(now));
        let left = limit.saturating_sub(now - self.since);
        let left = match self.halted_since {
            Some(halted) => left.min(HALTED_WAIT.saturating_sub(now - halted)),
            None => left,
        };
        match (left.is_zero(), self.has_waited_twice) {
            (false, _) => Patience::Wait(left.min(NAP)),
            (true, false) => Patience::TakeOver,
            (true, true) => Patience::Compute,
        }
    }

    fn is_poll_due(&mut self) -> bool {
        let is_due = self.polled.elapsed() >= POLL;
        if is_due {
            self.polled = Instant::now();
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    fn holder(id: u64, is_halted: bool) -> ClaimHolder {
        ClaimHolder::new(id, is_halted)
    }

    #[test]
    fn one_that_takes_too_long_is_relieved_and_the_next_is_waited_for_once() {
        let mut wait = ClaimWait::new(holder(1, false));
        assert_eq!(wait.on(holder(1, false), LONG), Patience::Wait(NAP));
        assert_eq!(wait.on(holder(1, false), Duration::ZERO), Patience::TakeOver);
        // Another process took the claim first.
        assert_eq!(wait.on(holder(2, false), LONG), Patience::Wait(NAP));
        assert_eq!(wait.on(holder(2, false), Duration::ZERO), Patience::Compute);
        assert_eq!(wait.on(holder(3, false), LONG), Patience::Compute);
    }

    #[test]
    fn one_that_is_halted_is_waited_for_less_long_and_may_go_on() {
        let mut wait = ClaimWait::new(holder(1, true));
        assert_eq!(wait.on(holder(1, true), LONG), Patience::Wait(NAP));
        assert!(wait.halted_since.is_some());
        assert_eq!(wait.on(holder(1, false), LONG), Patience::Wait(NAP));
        assert_eq!(wait.halted_since, None);
        wait.halted_since = Instant::now().checked_sub(HALTED_WAIT);
        assert_eq!(wait.on(holder(1, true), LONG), Patience::TakeOver);
    }
}
