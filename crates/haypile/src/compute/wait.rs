//! Bounded waiting for another caller that computes the same value.

use std::thread;

use super::ComputeError;
use super::holding::{HeldClaim, is_holding};
use super::patience::{NAP, NextStep, POLL, Patience};
use crate::cache::Cache;
use crate::error::Error;
use crate::flight::{Boarding, Computer, Follower, Leader, Need, Waited};
use crate::fork;
use crate::mutant;
use crate::store::{Claim, ClaimHolder};

/// A function that can end a wait for another caller's computation early: it is called about every
/// 50 ms.
pub(super) type Poll<'a, E> = &'a mut dyn FnMut() -> Result<(), E>;

/// The outcome of waiting for another caller of this process that computes the same key's value:
/// the value, or that this caller has to compute it after all.
pub(super) enum Followed {
    Value(Vec<u8>),
    /// The caller leads the computation now.
    Lead(Leader),
    /// The caller computes for itself.
    Alone,
}

/// The next step of a caller after it waited for another caller's computation: to end the wait with
/// an outcome, or to wait for a third caller, which has taken over.
pub(super) enum AfterWait {
    /// The caller waits no longer, and has this outcome.
    Done(Followed),
    /// The caller waits for another one, which has taken over the computation.
    Follow(Follower),
}

/// The outcome of trying to become the process that computes the value of a key: this process
/// computes it, or another one does.
pub(super) enum Claimed<'a> {
    /// The caller computes, with or without the claim.
    Compute(Option<HeldClaim<'a>>),
    /// Another process has the claim, and computes.
    Taken,
}

impl Cache {
    /// Waits for another thread of this process that computes the value of the same key. If that
    /// one fails, one of the waiting callers takes over, and the others wait for that one. If it
    /// takes too long, one of them computes as well, and the others wait for that one once more. A
    /// caller whose time is up computes for itself.
    pub(super) fn follow<E>(
        &self,
        key: &[u8],
        mut flight: Follower,
        patience: &mut Patience,
        poll: Poll<'_, E>,
    ) -> Result<Followed, ComputeError<E>> {
        loop {
            let waited = wait_for(&flight, patience, poll)?;
            flight = match self.after_wait(key, &flight, waited, patience, Computer::this_thread())
            {
                AfterWait::Done(followed) => return Ok(followed),
                AfterWait::Follow(next) => next,
            };
        }
    }

    /// Decides whether a caller returns the value, computes it, or waits for a third caller, after
    /// it waited for another caller's computation.
    pub(super) fn after_wait(
        &self,
        key: &[u8],
        flight: &Follower,
        waited: Waited,
        patience: &mut Patience,
        computer: Computer,
    ) -> AfterWait {
        let flights = self.computations.flights();
        let (boarding, has_failed) = match waited {
            Waited::Landed(value) => return AfterWait::Done(Followed::Value(value)),
            Waited::Abandoned => (flights.board(key, Need::Now, computer), true),
            Waited::TimedOut => (flights.overtake(key, flight, computer), false),
        };
        let next = match boarding {
            Boarding::Lead(leader) => return AfterWait::Done(Followed::Lead(leader)),
            Boarding::Follow(_)
                if has_failed && mutant::is_on("those-who-waited-compute-at-once") =>
            {
                return AfterWait::Done(Followed::Alone);
            }
            Boarding::Follow(next) => next,
        };
        let goes_on = if has_failed { patience.note_failure() } else { patience.begin_again() };
        if goes_on { AfterWait::Follow(next) } else { AfterWait::Done(Followed::Alone) }
    }

    /// Makes this caller the one that computes the value of a key among all processes that share
    /// the store, or waits for the one that does. Waits for other processes as
    /// [`follow`](Self::follow) does for threads.
    pub(super) fn claim<E>(
        &self,
        key: &[u8],
        waits: bool,
        patience: &mut Patience,
        poll: Poll<'_, E>,
    ) -> Result<Claimed<'_>, ComputeError<E>> {
        let mut take_over = None;
        loop {
            let (seen, holder) = match self.store.claim(key, take_over.take()) {
                Ok(Claim::Held { guard }) => {
                    return Ok(Claimed::Compute(Some(HeldClaim::new(guard))));
                }
                Ok(Claim::Taken(holder)) => (Seen::Taken(holder), Some(holder)),
                Ok(Claim::Unneeded) => (Seen::Free, None),
                Err(error) => (Seen::of_error(&error), None),
            };
            let Some(step) = seen.next_step(waits, is_holding(), patience) else {
                return Ok(Claimed::Taken);
            };
            match step {
                NextStep::Wait(at_most) => {
                    fork::pass();
                    if patience.is_poll_due() {
                        poll().map_err(ComputeError::Compute)?;
                    }
                    match holder {
                        Some(holder) => self.store.await_claim(key, holder, at_most),
                        None => thread::sleep(at_most),
                    }
                }
                NextStep::TakeOver => take_over = holder,
                NextStep::Compute => return Ok(Claimed::Compute(None)),
            }
        }
    }
}

/// The reason why a store did not give this caller the right to compute a key's value: another
/// process has it, a lock hides who has it, or the store failed.
pub(super) enum Seen {
    Taken(ClaimHolder),
    /// A lock is held, so that the state of the claim is unknown.
    Busy,
    /// The value is computed even without a claim.
    Free,
}

impl Seen {
    pub(super) fn of_error(error: &Error) -> Self {
        if matches!(error, Error::Busy { .. }) { Self::Busy } else { Self::Free }
    }

    /// Decides whether a caller that did not get the right to compute a key's value waits, takes
    /// over or computes; returns `None` if it should continue without waiting or storing. One that
    /// holds a claim itself waits for no other: the two could wait for each other.
    pub(super) fn next_step(
        self,
        waits: bool,
        is_holding: bool,
        patience: &mut Patience,
    ) -> Option<NextStep> {
        match self {
            Self::Taken(_) if !waits => None,
            Self::Taken(holder) if !is_holding => Some(patience.on_taken(holder)),
            Self::Busy if waits && !is_holding => Some(patience.on_busy()),
            Self::Taken(_) | Self::Busy | Self::Free => Some(NextStep::Compute),
        }
    }
}

/// Waits for another thread as long as the patience lasts.
fn wait_for<E>(
    flight: &Follower,
    patience: &mut Patience,
    poll: Poll<'_, E>,
) -> Result<Waited, ComputeError<E>> {
    loop {
        let left = patience.left();
        // Within a call that can be forked, it lets a fork happen more often than it polls.
        let nap = if fork::is_inside() { NAP } else { POLL };
        let is_last = left <= nap && !mutant::is_on("leader-is-awaited-forever");
        match flight.wait(left.min(nap))? {
            Waited::TimedOut if !is_last => fork::pass(),
            waited => return Ok(waited),
        }
        if patience.is_poll_due() {
            poll().map_err(ComputeError::Compute)?;
        }
    }
}
