//! Computing on a miss without blocking a thread, for event loops.

use std::fmt;
use std::mem;
use std::time::Duration;

use crate::cache::Cache;
use crate::claim::{OwnedClaim, TriedClaim};
use crate::error::Result;
use crate::flight::{Boarding, Computer, Follower, Leader, Need, Waited};
use crate::mutant;
use crate::store::{ClaimHolder, Hit};
use crate::ttl::Ttl;
use crate::write::{SetOptions, WriteMode};

use super::patience::{NextStep, Patience};
use super::wait::{AfterWait, Followed, Seen};
use super::{Freshness, Looked};

/// A non-blocking call of [`Cache::get_or_try_compute`] or [`Cache::get_or_try_refresh`], which the
/// program polls.
///
/// All that is said there holds: of all threads, tasks and processes one computes, waits are bounded, and writes
/// during the computation win. Tasks that ask for each other's keys wait up to the bound; a task that asks for the
/// key that it computes does so too, because nothing here knows tasks.
///
/// ```
/// use std::thread;
/// use haypile::{Cache, PendingCompute, Polled};
///
/// let cache = Cache::open("memory:")?;
/// let mut pending = PendingCompute::begin(&cache, "page:/", None)?;
/// let page = loop {
///     pending = match pending.poll()? {
///         Polled::Value(page) => break page,
///         // What it awaits is up to the program.
///         Polled::Compute(computation) => {
///             let page = b"<html>".to_vec();
///             computation.store(&page);
///             break page;
///         }
///         // Another caller computes.
///         Polled::Wait(pending, at_most) => {
///             thread::sleep(at_most);
///             *pending
///         }
///     }
/// };
/// assert_eq!(page, b"<html>");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PendingCompute {
    call: Call,
    looked: Looked,
    patience: Patience,
    is_holding: bool,
    stage: Stage,
}

/// The arguments of a call.
#[derive(Clone)]
struct Call {
    cache: Cache,
    key: Box<[u8]>,
    options: SetOptions,
    freshness: Option<Freshness>,
}

enum Stage {
    Begun,
    Following(Follower),
    Claiming(Leader, Option<ClaimHolder>),
}

/// The outcome of one step.
enum Step {
    /// The call goes on at once, in this stage.
    GoOn(Stage),
    /// The call goes on in this stage, within this time.
    Wait(Stage, Duration),
    /// The call has ended with this answer.
    End(Polled),
}

/// The result of polling a [`PendingCompute`]: a value, a computation for the caller to do, or a
/// wait for another caller.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a caller handles each answer")]
pub enum Polled {
    /// The call has ended with this value, which was found or which another caller has computed.
    Value(Vec<u8>),
    /// The caller has to compute the value.
    Compute(Box<Computation>),
    /// Another caller computes the value: the call has to be polled again, within this time.
    Wait(Box<PendingCompute>, Duration),
}

/// The right to compute a value and to store it, which one caller at a time has among all threads,
/// tasks and processes that share the cache. It may move between threads. Dropping it means that
/// the computation has failed: one of the waiting callers takes over.
pub struct Computation {
    call: Call,
    /// The value that it is to replace.
    current: Option<(Hit, Vec<u8>)>,
    /// The claim among processes, which is released before others of this process can lead.
    _claim: Option<OwnedClaim>,
    /// The leader of the flight; `None` if this caller has waited for too long, and computes for
    /// itself.
    leader: Option<Leader>,
    /// The terms on which the value will be stored.
    terms: Result<WriteMode>,
}

impl PendingCompute {
    /// Begins a non-blocking call of [`Cache::get_or_try_compute`], which the program polls.
    ///
    /// # Errors
    ///
    /// [`Error::ZeroTtl`](crate::Error::ZeroTtl).
    pub fn begin(cache: &Cache, key: impl AsRef<[u8]>, ttl: impl Into<Ttl>) -> Result<Self> {
        let options = SetOptions::set().with_ttl(ttl);
        options.ttl.resolve(None)?;
        Ok(Self::new(cache, key.as_ref(), options, None))
    }

    /// Begins a non-blocking call of [`Cache::get_or_try_refresh`], which the program polls.
    ///
    /// # Errors
    ///
    /// Those of [`begin`](Self::begin).
    pub fn begin_refresh(
        cache: &Cache,
        key: impl AsRef<[u8]>,
        freshness: impl Into<Freshness>,
    ) -> Result<Self> {
        let freshness = freshness.into();
        Ok(Self::new(cache, key.as_ref(), freshness.options()?, Some(freshness)))
    }

    fn new(cache: &Cache, key: &[u8], options: SetOptions, freshness: Option<Freshness>) -> Self {
        let patience = Patience::new(cache.store.compute_wait());
        let call = Call { cache: cache.clone(), key: key.into(), options, freshness };
        let looked = Looked { landed: 0, hit: None, value: Vec::new() };
        Self { call, looked, patience, is_holding: false, stage: Stage::Begun }
    }

    /// Makes the call never wait for another caller's computation, because its own caller holds a
    /// [`Computation`] and the two could wait for each other.
    #[must_use]
    pub fn within_a_computation(self) -> Self {
        Self { is_holding: !mutant::is_on("task-waits-while-it-holds-a-claim"), ..self }
    }

    /// Makes the call take over at once from another caller that computes the value. Somebody has
    /// already waited for that caller for [`compute_wait`](crate::Store::compute_wait).
    #[must_use]
    pub fn after_a_wait(self) -> Self {
        Self { patience: Patience::new(Duration::ZERO), ..self }
    }

    /// Continues the call (a read of the cache with a computation on a miss) as far as possible
    /// without waiting for another caller. Reads the store, which takes as long as any of its
    /// operations.
    ///
    /// # Errors
    ///
    /// Those of the store about the key; [`Error::Closed`](crate::Error::Closed).
    pub fn poll(mut self) -> Result<Polled> {
        loop {
            let step = match mem::replace(&mut self.stage, Stage::Begun) {
                Stage::Begun => self.look_first()?,
                Stage::Following(flight) => self.follow(flight),
                Stage::Claiming(leader, take_over) => self.claim(leader, take_over)?,
            };
            match step {
                Step::GoOn(stage) => self.stage = stage,
                Step::Wait(stage, at_most) => {
                    self.stage = stage;
                    return Ok(Polled::Wait(Box::new(self), at_most));
                }
                Step::End(polled) => return Ok(polled),
            }
        }
    }

    /// Whether new callers may share the outcome of this call, that is, whether the key is
    /// unchanged since the call began. If the key has changed since, only callers that were already
    /// waiting get the value.
    pub fn is_current(&self) -> bool {
        let Call { cache, key, .. } = &self.call;
        match &self.stage {
            Stage::Begun => true,
            // After a failure this call takes part in what begins next.
            Stage::Following(flight) if flight.outcome() == Some(Waited::Abandoned) => true,
            Stage::Following(flight) => {
                cache.computations.flights().is_joined(key, flight)
                    && cache.holds(key, flight.stage())
            }
            Stage::Claiming(leader, _) => leader.is_current(),
        }
    }

    /// Registers a task to be woken when the computation that this call waits for ends, and returns
    /// whether it has ended already. A computation of another process wakes no task; callers poll
    /// for its end.
    #[cfg(feature = "async")]
    pub(super) fn wake_at_end(&self, task: &std::task::Waker) -> bool {
        match &self.stage {
            Stage::Following(flight) => flight.wake_at_end(task),
            Stage::Begun | Stage::Claiming(..) => false,
        }
    }

    fn look_first(&mut self) -> Result<Step> {
        let Call { cache, key, .. } = &self.call;
        let flights = cache.computations.flights();
        self.looked.landed = flights.landed(key);
        self.looked.hit = cache.look(key, &mut self.looked.value)?;
        if self.is_fresh() {
            return Ok(Step::End(self.value()));
        }
        Ok(match cache.board(key, Need::of(self.looked.hit), computer()) {
            Boarding::Lead(leader) => Step::GoOn(Stage::Claiming(leader, None)),
            Boarding::Follow(_) if self.looked.hit.is_some() => Step::End(self.value()),
            Boarding::Follow(flight) => Step::GoOn(Stage::Following(flight)),
        })
    }

    fn follow(&mut self, flight: Follower) -> Step {
        let left = self.patience.left();
        let waited = match flight.outcome() {
            Some(outcome) => outcome,
            None if left.is_zero() => Waited::TimedOut,
            None => return Step::Wait(Stage::Following(flight), left),
        };
        let Call { cache, key, .. } = &self.call;
        match cache.after_wait(key, &flight, waited, &mut self.patience, computer()) {
            AfterWait::Done(Followed::Value(value)) => Step::End(Polled::Value(value)),
            AfterWait::Done(Followed::Alone) => Step::End(self.computation(None, None)),
            AfterWait::Done(Followed::Lead(leader)) => Step::GoOn(Stage::Claiming(leader, None)),
            AfterWait::Follow(next) => Step::GoOn(Stage::Following(next)),
        }
    }

    fn claim(&mut self, leader: Leader, take_over: Option<ClaimHolder>) -> Result<Step> {
        let Call { cache, key, .. } = &self.call;
        let (seen, holder) = match cache.try_claim(key, take_over) {
            Ok(TriedClaim::Held(claim)) => return self.look_again(leader, Some(claim)),
            Ok(TriedClaim::Taken(holder)) => (Seen::Taken(holder), Some(holder)),
            Ok(TriedClaim::Unneeded) => (Seen::Free, None),
            Err(error) => (Seen::of_error(&error), None),
        };
        let waits = self.looked.hit.is_none();
        Ok(match seen.next_step(waits, self.is_holding, &mut self.patience) {
            None => Step::End(self.value()),
            Some(NextStep::Compute) => return self.look_again(leader, None),
            Some(NextStep::TakeOver) => Step::GoOn(Stage::Claiming(leader, holder)),
            Some(NextStep::Wait(at_most)) => Step::Wait(Stage::Claiming(leader, None), at_most),
        })
    }

    /// Looks for the value that another caller may have stored since the first look.
    fn look_again(&mut self, leader: Leader, claim: Option<OwnedClaim>) -> Result<Step> {
        let Call { cache, key, .. } = &self.call;
        let is_late = claim.is_some() || self.patience.has_begun();
        let is_late = is_late && !mutant::is_on("polled-key-is-not-read-again");
        if is_late || cache.computations.flights().landed(key) != self.looked.landed {
            self.looked.hit = cache.look_again(key, &mut self.looked.value, self.looked.hit)?;
            if self.is_fresh() {
                leader.land(&self.looked.value);
                return Ok(Step::End(self.value()));
            }
        }
        Ok(Step::End(self.computation(claim, Some(leader))))
    }

    fn is_fresh(&self) -> bool {
        let is_due = |hit| self.call.freshness.is_some_and(|freshness| freshness.is_due(hit));
        self.looked.hit.is_some_and(|hit| !is_due(hit))
    }

    fn value(&mut self) -> Polled {
        Polled::Value(mem::take(&mut self.looked.value))
    }

    fn computation(&mut self, claim: Option<OwnedClaim>, leader: Option<Leader>) -> Polled {
        let current = self.looked.hit.map(|hit| (hit, mem::take(&mut self.looked.value)));
        let call = self.call.clone();
        let hit = current.as_ref().map(|(hit, _)| *hit);
        // Computed for its caller alone, the value is not stored.
        let terms = leader
            .as_ref()
            .map_or(Ok(WriteMode::Add), |leader| call.cache.terms(leader, &call.key, hit));
        Polled::Compute(Box::new(Computation { call, current, _claim: claim, leader, terms }))
    }
}

/// Returns the computer that a caller becomes: no thread waits in its computation.
fn computer() -> Computer {
    if mutant::is_on("task-is-taken-for-its-thread") {
        return Computer::this_thread();
    }
    Computer::Task
}

impl Computation {
    /// Whether the key is unchanged since the computation of its value began. Otherwise only
    /// callers that were already waiting get the value, and later callers compute again.
    pub fn is_current(&self) -> bool {
        let Call { cache, key, .. } = &self.call;
        let is_current = |leader: &Leader| leader.is_current() && cache.holds(key, leader.stage());
        self.leader.as_ref().is_none_or(is_current)
    }

    /// Stores the computed value in the cache, unless the key has changed since the computation
    /// began, and returns it to all waiting callers.
    pub fn store(self, value: &[u8]) {
        if let Some(leader) = &self.leader {
            let Call { cache, key, options, .. } = &self.call;
            cache.land(leader, key, *options, self.terms, value);
        }
    }

    /// Stores the computed value as [`store`](Self::store) does, and puts its entry in these groups (to invalidate
    /// entries together) instead of the cache's groups.
    ///
    /// A caller of this process that came after a group was invalidated, and waited for this computation, gets its value all
    /// the same unless the group is one of [its own cache](Cache::in_groups): nobody knew before that the value belongs to it.
    ///
    /// # Errors
    ///
    /// Those of [`Cache::in_groups`]. The computation then counts as failed.
    pub fn store_in_groups(
        mut self,
        value: &[u8],
        groups: impl IntoIterator<Item: AsRef<[u8]>>,
    ) -> Result<()> {
        self.call.cache = self.call.cache.in_groups(groups)?;
        self.store(value);
        Ok(())
    }

    /// Ends a computation of a value that has failed. Returns the value that it should have
    /// refreshed, if the cache still has one, to be served instead of the failure.
    pub fn fail(self) -> Option<Vec<u8>> {
        let Call { cache, key, .. } = &self.call;
        let (_, mut value) = self.current?;
        // Read again, because the computation may have outlasted the value.
        let is_there = matches!(cache.look(key, &mut value), Ok(Some(_)));
        if is_there {
            cache.computations.counters().add_failed_refresh();
        }
        is_there.then_some(value)
    }
}

impl fmt::Debug for PendingCompute {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PendingCompute").finish_non_exhaustive()
    }
}

impl fmt::Debug for Computation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Computation").finish_non_exhaustive()
    }
}
