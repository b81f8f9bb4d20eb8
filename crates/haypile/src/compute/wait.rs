//! Bounded waiting for another caller that computes the same value.

use std::thread;

use super::ComputeError;
use super::holding::{HeldClaim, is_holding};
use super::patience::{NAP, NextStep, POLL, Patience};
use crate::cache::Cache;
use crate::error::Error;
use crate::flight::{Boarding, Follower, Leader, Need, Waited};
use crate::fork;
use crate::mutant;
use crate::store::Claim;

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
    /// This caller computes, with or without the claim.
    Compute(Option<HeldClaim<'a>>),
    /// Another process computes.
    Taken,
}

impl Cache {
    /// Waits for other threads. If one fails, one of the waiting callers takes over, and the others wait for
    /// that one. If one takes too long, one of the waiting callers overtakes it, and the others wait for that
    /// one once more. A caller whose patience has ended computes for itself.
    pub(super) fn follow<E>(
        &self,
        key: &[u8],
        mut flight: Follower,
        patience: &mut Patience,
        poll: Poll<'_, E>,
    ) -> Result<Followed, ComputeError<E>> {
        let flights = self.computations.flights();
        loop {
            let (boarding, has_failed) = match wait_for(&flight, patience, poll)? {
                Waited::Landed(value) => return Ok(Followed::Value(value)),
                Waited::Abandoned => (flights.board(key, Need::Now), true),
                Waited::TimedOut => (flights.overtake(key, &flight), false),
            };
            flight = match boarding {
                Boarding::Lead(leader) => return Ok(Followed::Lead(leader)),
                Boarding::Follow(_)
                    if has_failed && mutant::is_on("those-who-waited-compute-at-once") =>
                {
                    return Ok(Followed::Alone);
                }
                Boarding::Follow(next) => next,
            };
            let goes_on = if has_failed { patience.note_failure() } else { patience.begin_again() };
            if !goes_on {
                return Ok(Followed::Alone);
            }
        }
    }

    /// Claims a key among the processes that share the store. Waits for other processes as
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
            let (step, holder) = match self.store.claim(key, take_over.take()) {
                Ok(Claim::Held { guard }) => {
                    return Ok(Claimed::Compute(Some(HeldClaim::new(guard))));
                }
                Ok(Claim::Taken(_)) if !waits => return Ok(Claimed::Taken),
                Ok(Claim::Taken(holder)) if !is_holding() => {
                    (patience.on_taken(holder), Some(holder))
                }
                Err(Error::Busy { .. }) if waits && !is_holding() => (patience.on_busy(), None),
                // The value is computed even without a claim.
                Ok(Claim::Taken(_) | Claim::Unneeded) | Err(_) => {
                    return Ok(Claimed::Compute(None));
                }
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
