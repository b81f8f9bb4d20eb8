//! Single flight: one computation per key at a time, however many threads ask.

use std::array;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::mutant;
use crate::process;

/// The number of counters of landed flights. Keys that share a counter cost a second lookup in the
/// store, and nothing else.
const COUNTERS: usize = 64;

/// The computations in progress.
#[derive(Debug)]
pub(crate) struct Flights {
    by_key: Mutex<HashMap<Box<[u8]>, Arc<Flight>>>,
    /// Number of flights in `by_key`, so that writes need not lock it when there are none.
    going: AtomicUsize,
    /// Number of landed flights, by key.
    landed: [AtomicU64; COUNTERS],
    hasher: RandomState,
}

#[derive(Debug)]
struct Flight {
    state: Mutex<FlightState>,
    ended: Condvar,
    /// Whether the key was written since the flight began. The thread that stores the value holds
    /// the lock, so that a write either comes first and is noticed, or comes later and overwrites
    /// the value.
    outdated: Mutex<bool>,
}

#[derive(Clone, Debug)]
enum FlightState {
    /// No thread computes yet, and none waits.
    Queued,
    /// This thread computes.
    Computing(ThreadId),
    Landed(Arc<[u8]>),
    /// The computation failed or panicked, or was queued and has been overtaken.
    Abandoned,
}

/// The urgency with which a thread needs the value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// It has no value: as a follower, it waits. It overtakes a flight that is only queued.
    Now,
    /// It has a value, and would compute the next one.
    Next,
    /// It has a value, and would have another thread compute the next one, which has to
    /// [`start`](Leader::start).
    Later,
}

/// The role of a thread that wants the value of a key.
pub(crate) enum Boarding {
    /// Compute it, and [`land`](Leader::land) it.
    Lead(Leader),
    /// Another thread computes.
    Follow(Follower),
}

/// The outcome of waiting for another thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Landed(Vec<u8>),
    /// The leader abandoned the computation.
    Abandoned,
    TimedOut,
}

impl Flights {
    /// Leads a new flight of `key` if there is none, or if the current one does not help; otherwise
    /// follows.
    pub(crate) fn board(self: &Arc<Self>, key: &[u8], need: Need) -> Boarding {
        let by_key = self.by_key.lock();
        if let Some(flight) = by_key.get(key)
            && (need != Need::Now || !flight.is_overtaken())
        {
            return Boarding::Follow(Follower { flight: Arc::clone(flight) });
        }
        let state = match need {
            Need::Now | Need::Next => FlightState::Computing(thread::current().id()),
            Need::Later => FlightState::Queued,
        };
        let leader = self.lead(by_key, key, state);
        Boarding::Lead(leader)
    }

    /// Takes the lead from a flight that has been waited for too long, unless another thread has
    /// done so already. The previous leader continues, and lands for those that still wait for it.
    pub(crate) fn overtake(self: &Arc<Self>, key: &[u8], late: &Follower) -> Boarding {
        let by_key = self.by_key.lock();
        match by_key.get(key) {
            Some(flight) if !Arc::ptr_eq(flight, &late.flight) => {
                Boarding::Follow(Follower { flight: Arc::clone(flight) })
            }
            _ => {
                let state = FlightState::Computing(thread::current().id());
                Boarding::Lead(self.lead(by_key, key, state))
            }
        }
    }

    fn lead(
        self: &Arc<Self>,
        mut by_key: MutexGuard<'_, HashMap<Box<[u8]>, Arc<Flight>>>,
        key: &[u8],
        state: FlightState,
    ) -> Leader {
        let flight = Arc::new(Flight {
            state: Mutex::new(state),
            ended: Condvar::new(),
            outdated: Mutex::new(false),
        });
        by_key.insert(key.into(), Arc::clone(&flight));
        self.going.store(by_key.len(), Ordering::SeqCst);
        drop(by_key);
        // Pairs with the fence in `is_quiet`: either a write sees this flight, or the computation
        // sees the effects of everything before the write.
        fence(Ordering::SeqCst);
        let process = process::generation();
        Leader { flights: Arc::clone(self), key: key.into(), flight, process }
    }

    /// Marks the flight of `key` as outdated. Its value goes to the threads that wait for it
    /// already; it is not stored, and later callers start another flight. Must be called before the
    /// store is written.
    pub(crate) fn outdate(&self, key: &[u8]) {
        if self.is_quiet() {
            return;
        }
        let mut by_key = self.by_key.lock();
        let flight = if mutant::is_on("outdated-flight-takes-newcomers") {
            by_key.get(key).cloned()
        } else {
            by_key.remove(key)
        };
        self.going.store(by_key.len(), Ordering::SeqCst);
        drop(by_key);
        if let Some(flight) = flight {
            *flight.outdated.lock() = true;
        }
    }

    /// Does the same as [`outdate`](Self::outdate) for every key.
    pub(crate) fn outdate_all(&self) {
        if self.is_quiet() {
            return;
        }
        let mut by_key = self.by_key.lock();
        let flights = std::mem::take(&mut *by_key);
        self.going.store(0, Ordering::SeqCst);
        drop(by_key);
        for flight in flights.into_values() {
            *flight.outdated.lock() = true;
        }
    }

    /// Returns the number of landed flights of `key`; it may include those of other keys.
    pub(crate) fn landed(&self, key: &[u8]) -> u64 {
        self.counter(key).load(Ordering::SeqCst)
    }

    fn counter(&self, key: &[u8]) -> &AtomicU64 {
        let hash = self.hasher.hash_one(key);
        let index =
            usize::try_from(hash % COUNTERS as u64).expect("the remainder is less than COUNTERS");
        &self.landed[index]
    }

    fn is_quiet(&self) -> bool {
        fence(Ordering::SeqCst);
        self.going.load(Ordering::SeqCst) == 0
    }

    /// Returns the number of threads that follow the flight of `key`.
    #[cfg(test)]
    pub(crate) fn followers(&self, key: &[u8]) -> usize {
        self.by_key.lock().get(key).map_or(0, |flight| Arc::strong_count(flight) - 2)
    }
}

impl Default for Flights {
    fn default() -> Self {
        Self {
            by_key: Mutex::default(),
            going: AtomicUsize::new(0),
            landed: array::from_fn(|_| AtomicU64::new(0)),
            hasher: RandomState::new(),
        }
    }
}

impl Flight {
    /// Abandons a flight that is only queued, and returns whether it did: the thread that is to run
    /// it may be the waiting one.
    fn is_overtaken(&self) -> bool {
        let mut state = self.state.lock();
        let queued =
            matches!(*state, FlightState::Queued) && !mutant::is_on("queued-job-is-not-overtaken");
        if queued {
            *state = FlightState::Abandoned;
        }
        queued
    }
}

/// The right to compute. If it is dropped without landing, even by a panic, the followers stop
/// waiting.
pub(crate) struct Leader {
    flights: Arc<Flights>,
    key: Box<[u8]>,
    flight: Arc<Flight>,
    /// The process whose threads follow. A child that was forked during the computation has no
    /// followers, and locks that other threads held stay locked in it.
    process: u64,
}

impl Leader {
    /// Makes this thread the leader of a queued flight; returns whether the value is still wanted.
    pub(crate) fn start(&self) -> bool {
        let outdated = self.flight.outdated.lock();
        let mut state = self.flight.state.lock();
        let wanted = matches!(*state, FlightState::Queued) && !*outdated;
        if wanted {
            *state = FlightState::Computing(thread::current().id());
        }
        wanted
    }

    /// Calls `store`, unless the key was written since the flight began. A write waits for it.
    pub(crate) fn unless_outdated(&self, store: impl FnOnce()) {
        if !self.is_own() {
            return store();
        }
        let outdated = self.flight.outdated.lock();
        if *outdated && !mutant::is_on("outdated-value-is-stored") {
            return;
        }
        if mutant::is_on("write-does-not-wait-for-the-value-before") {
            drop(outdated);
        }
        store();
    }

    /// Whether this is the process that created the leader.
    fn is_own(&self) -> bool {
        self.process == process::generation()
    }

    /// Hands the value to all followers. The flight itself ends when the leader is dropped, so that
    /// the value can be stored before another thread leads.
    pub(crate) fn land(&self, value: &[u8]) {
        if !self.is_own() {
            return;
        }
        *self.flight.state.lock() = FlightState::Landed(value.into());
        if !mutant::is_on("landing-wakes-nobody") {
            self.flight.ended.notify_all();
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.is_own() {
            return;
        }
        let mut by_key = self.flights.by_key.lock();
        let mut state = self.flight.state.lock();
        if matches!(*state, FlightState::Landed(_)) {
            // Counted before the next thread can lead, which must know that there may be a value.
            if !mutant::is_on("landing-is-not-counted") {
                self.flights.counter(&self.key).fetch_add(1, Ordering::SeqCst);
            }
        } else {
            *state = FlightState::Abandoned;
        }
        drop(state);
        // An outdated flight has been removed, and another may be in its place.
        let is_own = |flight: &Arc<Flight>| {
            Arc::ptr_eq(flight, &self.flight)
                || mutant::is_on("leader-ends-the-flight-after-its-own")
        };
        if by_key.get(&self.key).is_some_and(is_own) {
            by_key.remove(&self.key);
            self.flights.going.store(by_key.len(), Ordering::SeqCst);
        }
        drop(by_key);
        if !mutant::is_on("giving-up-wakes-nobody") {
            self.flight.ended.notify_all();
        }
    }
}

/// A place among the followers of another thread's flight.
pub(crate) struct Follower {
    flight: Arc<Flight>,
}

impl Follower {
    /// Waits for the value, at most for this long.
    ///
    /// # Errors
    ///
    /// [`Error::RecursiveCompute`] if this thread is the leader.
    pub(crate) fn wait(&self, at_most: Duration) -> Result<Waited> {
        let end = Instant::now().checked_add(at_most);
        let mut state = self.flight.state.lock();
        if matches!(*state, FlightState::Computing(leader) if leader == thread::current().id()) {
            return Err(Error::RecursiveCompute);
        }
        loop {
            match &*state {
                FlightState::Landed(value) => return Ok(Waited::Landed(value.to_vec())),
                FlightState::Queued | FlightState::Abandoned => return Ok(Waited::Abandoned),
                FlightState::Computing(_) => {}
            }
            match end {
                None => self.flight.ended.wait(&mut state),
                Some(end) if self.flight.ended.wait_until(&mut state, end).timed_out() => {
                    // It may have landed at the last moment.
                    if matches!(*state, FlightState::Computing(_)) {
                        return Ok(Waited::TimedOut);
                    }
                }
                Some(_) if mutant::is_on("any-wake-ends-the-wait") => return Ok(Waited::Abandoned),
                Some(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(flights: &Arc<Flights>, key: &[u8]) -> Leader {
        match flights.board(key, Need::Now) {
            Boarding::Lead(leader) => leader,
            Boarding::Follow(_) => panic!("there is a flight already"),
        }
    }

    fn follow(flights: &Arc<Flights>, key: &[u8]) -> Follower {
        match flights.board(key, Need::Now) {
            Boarding::Lead(_) => panic!("there is no flight"),
            Boarding::Follow(follower) => follower,
        }
    }

    /// Longer than any machine needs.
    const LONG: Duration = Duration::from_mins(1);

    fn wait(follower: &Follower) -> Waited {
        follower.wait(LONG).unwrap()
    }

    fn landed(value: &[u8]) -> Waited {
        Waited::Landed(value.to_vec())
    }

    #[test]
    fn one_that_takes_too_long_is_overtaken_once_and_still_lands_for_those_who_wait() {
        let flights = Arc::<Flights>::default();
        let elsewhere = || thread::scope(|scope| scope.spawn(|| lead(&flights, b"key")).join());
        let late = elsewhere().unwrap();
        let [one, other] = [(); 2].map(|()| follow(&flights, b"key"));
        assert_eq!(one.wait(Duration::from_millis(1)).unwrap(), Waited::TimedOut);
        let overtake = || match flights.overtake(b"key", &one) {
            Boarding::Lead(leader) => leader,
            Boarding::Follow(_) => panic!("nobody else leads"),
        };
        let next = thread::scope(|scope| scope.spawn(overtake).join()).unwrap();
        let Boarding::Follow(again) = flights.overtake(b"key", &other) else {
            panic!("one leads already");
        };
        let newcomer = follow(&flights, b"key");
        next.land(b"next");
        assert_eq!((wait(&again), wait(&newcomer)), (landed(b"next"), landed(b"next")));
        late.land(b"late");
        drop(late);
        assert_eq!(wait(&other), landed(b"late"));
        let _still_the_next = follow(&flights, b"key");
        drop(next);
        assert!(flights.is_quiet());
    }

    #[test]
    fn those_who_follow_get_the_value() {
        let flights = Arc::<Flights>::default();
        let leader = lead(&flights, b"key");
        let follower = follow(&flights, b"key");
        let _other_keys_fly_alone = lead(&flights, b"other");
        leader.land(b"value");
        assert_eq!(wait(&follower), landed(b"value"));
        assert_eq!(wait(&follow(&flights, b"key")), landed(b"value"));
        drop(leader);
        drop(lead(&flights, b"key"));
    }

    #[test]
    fn those_who_follow_are_released_when_the_leader_gives_up() {
        let flights = Arc::<Flights>::default();
        let leader = lead(&flights, b"key");
        let follower = follow(&flights, b"key");
        drop(leader);
        assert_eq!(wait(&follower), Waited::Abandoned);
        drop(lead(&flights, b"key"));
    }

    /// Returns when a thread waits for the leader.
    fn await_waiter(leader: &Leader) {
        loop {
            let state = leader.flight.state.lock();
            // A waiting thread gets this lock before any other, and waits again.
            let is_waiting = leader.flight.ended.notify_one();
            MutexGuard::unlock_fair(state);
            if is_waiting {
                return;
            }
            thread::yield_now();
        }
    }

    /// Returns the result with which a waiting thread wakes when the leader does `act`.
    fn woken_by(act: impl FnOnce(Leader) -> Option<Leader>) -> Waited {
        const PATIENCE: Duration = Duration::from_secs(10);
        let flights = Arc::<Flights>::default();
        let leader = lead(&flights, b"key");
        let follower = follow(&flights, b"key");
        thread::scope(|scope| {
            let waiting = scope.spawn(move || {
                let begin = Instant::now();
                let waited = follower.wait(PATIENCE).unwrap();
                assert!(begin.elapsed() < PATIENCE, "nobody has woken it");
                waited
            });
            await_waiter(&leader);
            let _leader = act(leader);
            waiting.join().unwrap()
        })
    }

    #[test]
    fn a_waiting_thread_is_woken_by_a_landing() {
        let land = |leader: Leader| {
            leader.land(b"value");
            Some(leader)
        };
        assert_eq!(woken_by(land), landed(b"value"));
    }

    #[test]
    fn a_waiting_thread_is_woken_by_a_leader_that_gives_up() {
        assert_eq!(woken_by(|_| None), Waited::Abandoned);
    }

    #[test]
    fn a_write_waits_while_the_value_before_it_is_stored() {
        let flights = Arc::<Flights>::default();
        let leader = lead(&flights, b"key");
        let mut waits = false;
        // `outdate` takes this lock before it returns.
        leader.unless_outdated(|| waits = leader.flight.outdated.is_locked());
        assert!(waits);
    }

    #[test]
    fn the_leader_cannot_wait_for_itself() {
        let flights = Arc::<Flights>::default();
        let _leader = lead(&flights, b"key");
        assert!(matches!(follow(&flights, b"key").wait(LONG), Err(Error::RecursiveCompute)));
    }

    #[test]
    fn an_outdated_flight_lands_for_those_who_are_on_it() {
        let flights = Arc::<Flights>::default();
        let leader = lead(&flights, b"key");
        let follower = follow(&flights, b"key");
        flights.outdate(b"key");
        let next = lead(&flights, b"key");
        leader.unless_outdated(|| panic!("stored"));
        leader.land(b"old");
        drop(leader);
        assert_eq!(wait(&follower), landed(b"old"));
        let _still_the_next = follow(&flights, b"key");
        flights.outdate_all();
        next.unless_outdated(|| panic!("stored"));
        drop(next);
        assert!(flights.is_quiet());
    }

    #[test]
    fn only_landed_flights_are_counted() {
        let flights = Arc::<Flights>::default();
        drop(lead(&flights, b"key"));
        assert_eq!(flights.landed(b"key"), 0);
        lead(&flights, b"key").land(b"value");
        assert_eq!(flights.landed(b"key"), 1);
    }

    fn queue(flights: &Arc<Flights>, key: &[u8]) -> Leader {
        match flights.board(key, Need::Later) {
            Boarding::Lead(leader) => leader,
            Boarding::Follow(_) => panic!("there is a flight already"),
        }
    }

    #[test]
    fn who_has_no_value_overtakes_what_is_queued() {
        let flights = Arc::<Flights>::default();
        let queued = queue(&flights, b"key");
        assert!(matches!(flights.board(b"key", Need::Next), Boarding::Follow(_)));
        assert!(matches!(flights.board(b"key", Need::Later), Boarding::Follow(_)));
        let leader = lead(&flights, b"key");
        assert!(!queued.start());
        drop(queued);
        let follower = follow(&flights, b"key");
        leader.land(b"value");
        drop(leader);
        assert_eq!(wait(&follower), landed(b"value"));
        assert_eq!(flights.landed(b"key"), 1);
        assert!(flights.is_quiet());
    }

    #[test]
    fn what_was_queued_is_computed_once_and_by_who_starts_it() {
        let flights = Arc::<Flights>::default();
        let queued = queue(&flights, b"key");
        assert!(queued.start());
        assert!(!queued.start());
        assert!(matches!(follow(&flights, b"key").wait(LONG), Err(Error::RecursiveCompute)));
        queued.land(b"value");
        assert_eq!(wait(&follow(&flights, b"key")), landed(b"value"));
    }

    #[test]
    fn what_is_queued_and_outdated_is_not_computed() {
        let flights = Arc::<Flights>::default();
        let queued = queue(&flights, b"key");
        flights.outdate(b"key");
        assert!(!queued.start());
        let other = queue(&flights, b"key");
        drop(queued);
        assert!(matches!(flights.board(b"key", Need::Next), Boarding::Follow(_)));
        drop(other);
        assert!(flights.is_quiet());
    }
}
