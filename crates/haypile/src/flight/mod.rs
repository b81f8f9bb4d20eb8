//! Single flight: one computation per key at a time, whoever asks, and no stored value older than its key's last change.

mod lease;

use std::array;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
#[cfg(feature = "async")]
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::lease::Lease as StoreLease;
use crate::mutant;
use crate::process;
use crate::store::Hit;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use crate::sync::thread_id::{ThreadId, this_thread};
use crate::sync::{Condvar, Mutex, MutexGuard};

use lease::{Lease, Leases, Revocation};

/// The number of counters of landed flights. Keys that share a counter cost a second lookup in the
/// store, and nothing else.
const COUNTERS: usize = 64;

/// The computations in progress (flights) of one process, at most one current for each key.
#[derive(Debug)]
pub(crate) struct Flights {
    keys: Mutex<Keys>,
    /// The number of `keys`, so that writes need not lock them when there are none.
    going: AtomicUsize,
    /// The number of landed flights, by key.
    landed: [AtomicU64; COUNTERS],
    hasher: RandomState,
}

type Keys = HashMap<Box<[u8]>, ComputedKey>;

/// A key that has a [`Leader`].
#[derive(Debug, Default)]
struct ComputedKey {
    /// The flight that callers join. A change of the key removes it, although its leader goes on.
    flight: Option<Arc<Flight>>,
    /// The leases of the key, one for each leader, overtaken ones included.
    leases: Leases,
}

#[derive(Debug)]
struct Flight {
    state: Mutex<FlightState>,
    /// The protection by the store, which tells callers that come now whether the value may be older than a change that
    /// the store knows of.
    stage: Mutex<Stage>,
    ended: Condvar,
    /// The tasks that follow this flight.
    #[cfg(feature = "async")]
    tasks: Mutex<Vec<Waker>>,
}

#[derive(Clone, Debug)]
enum FlightState {
    /// No thread computes yet, and none waits.
    Queued,
    /// A thread or task computes the value.
    Computing(Computer),
    Landed(Arc<[u8]>),
    /// The computation failed or panicked, or was queued and has been overtaken.
    Abandoned,
}

/// The protection of a computed value from changes of its key: none, a lease of the store, or a write under it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Stage {
    /// The flight holds no lease of the store: none yet, or the store has none.
    #[default]
    Free,
    /// The store has granted this lease, and refuses the value once the lease is revoked.
    Leased(StoreLease),
    /// The value is being stored under its lease, which ends the lease.
    Storing,
}

/// The kind of caller that computes a value: a thread, or an asynchronous task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Computer {
    /// A thread that does nothing else until the computation has ended, so that it cannot wait for it.
    Thread(ThreadId),
    /// A task, which any thread may run.
    Task,
}

impl Computer {
    pub(crate) fn this_thread() -> Self {
        Self::Thread(this_thread())
    }
}

/// The urgency with which a thread needs the value of a key: at once, or to refresh the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// The thread has no value: as a follower, it waits; it overtakes a flight that is only queued.
    Now,
    /// The thread has a value, and would compute the next one.
    Next,
    /// The thread has a value, and would have another thread compute the next one, which has to
    /// [`start`](Leader::start).
    Later,
}

impl Need {
    /// Returns how urgently a caller that computes itself needs a value, after a read that returned this hit or miss.
    pub(crate) fn of(hit: Option<Hit>) -> Self {
        if hit.is_some() { Self::Next } else { Self::Now }
    }
}

/// The role of a thread that wants the value of a key: it computes the value, or it waits for the thread that does.
pub(crate) enum Boarding {
    /// The caller has to compute the value, and to [`land`](Leader::land) it.
    Lead(Leader),
    /// Another thread computes the value.
    Follow(Follower),
}

/// The outcome of waiting for a value that another thread computes: the value, a failure, or a timeout.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Landed(Vec<u8>),
    /// The leader abandoned the computation.
    Abandoned,
    TimedOut,
}

impl Flights {
    /// Makes the calling thread the one that computes the value of `key` (returns a leader), unless another thread is
    /// doing so; then the caller gets a follower, which waits for that thread.
    pub(crate) fn board(self: &Arc<Self>, key: &[u8], need: Need, computer: Computer) -> Boarding {
        let keys = self.keys.lock();
        if let Some(flight) = joined(&keys, key)
            && (need != Need::Now || !flight.is_overtaken())
        {
            return Boarding::Follow(Follower { flight: Arc::clone(flight) });
        }
        let state = match need {
            Need::Now | Need::Next => FlightState::Computing(computer),
            Need::Later => FlightState::Queued,
        };
        let leader = self.lead(keys, key, state);
        Boarding::Lead(leader)
    }

    /// Starts another computation of a key's value in place of one for which callers have waited too long, unless
    /// another thread has done so. The previous thread continues, and returns its value to those that still wait for
    /// it.
    pub(crate) fn overtake(
        self: &Arc<Self>,
        key: &[u8],
        late: &Follower,
        computer: Computer,
    ) -> Boarding {
        let keys = self.keys.lock();
        match joined(&keys, key) {
            Some(flight) if !Arc::ptr_eq(flight, &late.flight) => {
                Boarding::Follow(Follower { flight: Arc::clone(flight) })
            }
            _ => Boarding::Lead(self.lead(keys, key, FlightState::Computing(computer))),
        }
    }

    fn lead(
        self: &Arc<Self>,
        mut keys: MutexGuard<'_, Keys>,
        key: &[u8],
        state: FlightState,
    ) -> Leader {
        let flight = Arc::new(Flight::new(state));
        let computed = keys.entry(key.into()).or_default();
        computed.flight = Some(Arc::clone(&flight));
        let lease = computed.leases.grant();
        self.going.store(keys.len(), Ordering::SeqCst);
        drop(keys);
        // Pairs with the fence in `is_quiet`: either a change of the key sees this flight, or the
        // computation sees the effects of everything before the change.
        fence(Ordering::SeqCst);
        let process = process::generation();
        Leader { flights: Arc::clone(self), key: key.into(), flight, lease, process }
    }

    /// Records that a key is about to change. The value of a computation that has begun is not stored; it goes to the
    /// threads that wait for it already, and later callers compute again. To be called before the store is changed.
    pub(crate) fn note_change(&self, key: &[u8]) {
        if self.is_quiet() {
            return;
        }
        let revocation = self.keys.lock().get_mut(key).map(ComputedKey::change);
        if let Some(revocation) = revocation {
            revocation.perform();
        }
    }

    /// Changes a key under a condition, and, if the condition held (as `has_held` determines), refuses to store values
    /// of the key whose computation began before the change.
    pub(crate) fn change_if<T>(
        &self,
        key: &[u8],
        change: impl FnOnce() -> Result<T>,
        has_held: impl FnOnce(&T) -> bool,
    ) -> Result<T> {
        if self.is_quiet() {
            return change();
        }
        let revocation = self.keys.lock().get(key).map(|key| key.leases.revocation());
        let Some(revocation) = revocation else { return change() };
        let (changed, has_changed) = revocation.perform_if(|| {
            let changed = change();
            // One that fails may have had its effect.
            let has_changed = changed.as_ref().map_or(true, has_held)
                && !mutant::is_on("change-under-a-condition-never-counts")
                || mutant::is_on("change-without-effect-counts");
            (changed, has_changed)
        });
        if has_changed
            && let Some(computed) = self.keys.lock().get_mut(key)
            && revocation.is_of_all(&computed.leases)
        {
            computed.end_joining();
        }
        changed
    }

    /// Records that every key is about to change (for a clearing), like [`note_change`](Self::note_change).
    pub(crate) fn note_change_of_all(&self) {
        if self.is_quiet() {
            return;
        }
        let revocations: Vec<Revocation> =
            self.keys.lock().values_mut().map(ComputedKey::change).collect();
        for revocation in revocations {
            revocation.perform();
        }
    }

    /// Whether a new caller would wait for this follower's computation: it has not ended, and the key has not changed.
    pub(crate) fn is_joined(&self, key: &[u8], follower: &Follower) -> bool {
        let keys = self.keys.lock();
        joined(&keys, key).is_some_and(|flight| Arc::ptr_eq(flight, &follower.flight))
    }

    /// Waits until a computation of the value of `key`, which is already being stored, has ended, which takes as long
    /// as an operation of the store.
    pub(crate) fn await_end(&self, key: &[u8], follower: &Follower) {
        while self.is_joined(key, follower) {
            let state = follower.flight.state.lock();
            let soon = Instant::now().checked_add(Duration::from_millis(1));
            drop(follower.flight.ended.wait_until(state, soon));
        }
    }

    /// Returns the number of completed computations of the value of `key`; it may include those of other keys.
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

    /// Returns the number of threads that wait for the computation of the value of `key`.
    #[cfg(all(test, not(shuttle)))]
    pub(crate) fn followers(&self, key: &[u8]) -> usize {
        let keys = self.keys.lock();
        joined(&keys, key).map_or(0, |flight| Arc::strong_count(flight) - 2)
    }

    /// Returns whether a thread waits for the computation of the value of `key` to end.
    #[cfg(all(test, not(shuttle)))]
    pub(crate) fn is_awaited(&self, key: &[u8]) -> bool {
        let keys = self.keys.lock();
        joined(&keys, key).is_some_and(|flight| {
            let state = flight.state.lock();
            // A waiting thread gets this lock before any other, and waits again.
            let is_waiting = flight.ended.notify_one();
            MutexGuard::unlock_fair(state);
            is_waiting
        })
    }
}

impl Default for Flights {
    fn default() -> Self {
        Self {
            keys: Mutex::default(),
            going: AtomicUsize::new(0),
            landed: array::from_fn(|_| AtomicU64::new(0)),
            hasher: RandomState::new(),
        }
    }
}

/// Returns the flight that callers of `key` join.
fn joined<'a>(keys: &'a Keys, key: &[u8]) -> Option<&'a Arc<Flight>> {
    keys.get(key)?.flight.as_ref()
}

impl ComputedKey {
    /// Ends the joining of the current flight, and returns the revocation of all leases.
    fn change(&mut self) -> Revocation {
        self.end_joining();
        self.leases.revocation()
    }

    /// Has later callers start another flight, although the leader of this one goes on.
    fn end_joining(&mut self) {
        if !mutant::is_on("outdated-flight-takes-newcomers") {
            self.flight = None;
        }
    }
}

impl FlightState {
    /// Returns what those who wait get, if they get it now.
    fn outcome(&self) -> Option<Waited> {
        match self {
            Self::Landed(value) => Some(Waited::Landed(value.to_vec())),
            Self::Queued | Self::Abandoned => Some(Waited::Abandoned),
            Self::Computing(_) => None,
        }
    }
}

impl Flight {
    fn new(state: FlightState) -> Self {
        Self {
            state: Mutex::new(state),
            stage: Mutex::default(),
            ended: Condvar::new(),
            #[cfg(feature = "async")]
            tasks: Mutex::default(),
        }
    }

    /// Wakes all that follow: the flight has ended.
    fn wake_all(&self) {
        self.ended.notify_all();
        #[cfg(feature = "async")]
        for task in std::mem::take(&mut *self.tasks.lock()) {
            task.wake();
        }
    }

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

/// The right of one thread to compute the value of a key, for which other threads wait. If it is dropped without a
/// value, even by a panic, the waiting threads stop waiting.
pub(crate) struct Leader {
    flights: Arc<Flights>,
    key: Box<[u8]>,
    flight: Arc<Flight>,
    lease: Lease,
    /// The process whose threads follow. A child that was forked during the computation has no
    /// followers, and locks that other threads held stay locked in it.
    process: u64,
}

impl Leader {
    /// Makes this thread start a computation that was queued, and returns whether the value is still wanted.
    pub(crate) fn start(&self) -> bool {
        if !self.is_own() || !self.lease.is_valid() {
            return false;
        }
        let mut state = self.flight.state.lock();
        let wanted = matches!(*state, FlightState::Queued);
        if wanted {
            *state = FlightState::Computing(Computer::this_thread());
        }
        wanted
    }

    /// Calls `store`, which stores the computed value, unless the key has changed since the computation began. A change
    /// of the key waits for `store` to return.
    ///
    /// In a forked child it does nothing: the parent does not tell the child what it changes, and the child's
    /// own changes are noted in flights of its own.
    pub(crate) fn unless_changed(&self, store: impl FnOnce()) {
        if self.is_own() || mutant::is_on("child-stores-what-its-parent-began") {
            self.lease.unless_revoked(store);
        }
    }

    /// Records by which lease, if any, the store protects the computed value from changes of the key from now on.
    pub(crate) fn set_stage(&self, stage: Stage) {
        if self.is_own() {
            *self.flight.stage.lock() = stage;
        }
    }

    /// Returns by which lease, if any, the store protects the value being computed from changes of the key.
    pub(crate) fn stage(&self) -> Stage {
        if self.is_own() { *self.flight.stage.lock() } else { Stage::Free }
    }

    /// Whether the key is unchanged since the computation of its value began.
    pub(crate) fn is_current(&self) -> bool {
        !self.is_own() || self.lease.is_valid()
    }

    /// Whether this is the process that created the leader.
    fn is_own(&self) -> bool {
        self.process == process::generation()
    }

    /// Returns the computed value to all waiting threads. The computation itself ends when the
    /// leader is dropped, so that the value can be stored before another thread computes.
    pub(crate) fn land(&self, value: &[u8]) {
        if !self.is_own() {
            return;
        }
        *self.flight.state.lock() = FlightState::Landed(value.into());
        if !mutant::is_on("landing-wakes-nobody") {
            self.flight.wake_all();
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.is_own() {
            return;
        }
        let mut keys = self.flights.keys.lock();
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
        let computed = keys.get_mut(&self.key).expect("it has a leader");
        // After a change, or once this one was overtaken, another flight may be there.
        let is_own = |flight: &Arc<Flight>| {
            Arc::ptr_eq(flight, &self.flight)
                || mutant::is_on("leader-ends-the-flight-after-its-own")
        };
        if computed.flight.as_ref().is_some_and(is_own) {
            computed.flight = None;
        }
        if computed.leases.take_back() {
            keys.remove(&self.key);
            self.flights.going.store(keys.len(), Ordering::SeqCst);
        }
        drop(keys);
        if !mutant::is_on("giving-up-wakes-nobody") {
            self.flight.wake_all();
        }
    }
}

/// A thread's wait for another thread's computation of a key's value.
pub(crate) struct Follower {
    flight: Arc<Flight>,
}

impl Follower {
    /// Returns by which lease, if any, the store protects the value that the other thread computes.
    pub(crate) fn stage(&self) -> Stage {
        *self.flight.stage.lock()
    }

    /// Registers a task to be woken when the other thread's computation ends, and returns whether it has ended already.
    #[cfg(feature = "async")]
    pub(crate) fn wake_at_end(&self, task: &Waker) -> bool {
        // Held until the task is noted: a flight that ends then wakes it.
        let state = self.flight.state.lock();
        if state.outcome().is_some() {
            return true;
        }
        let mut tasks = self.flight.tasks.lock();
        if !tasks.iter().any(|noted| noted.will_wake(task)) {
            tasks.push(task.clone());
        }
        false
    }

    /// Returns the outcome of the other thread's computation; `None` while it goes on.
    pub(crate) fn outcome(&self) -> Option<Waited> {
        self.flight.state.lock().outcome()
    }

    /// Waits at most `at_most` for the value that another thread computes; returns the value, or why there is none.
    ///
    /// # Errors
    ///
    /// [`Error::RecursiveCompute`] if this thread is the leader.
    pub(crate) fn wait(&self, at_most: Duration) -> Result<Waited> {
        let end = Instant::now().checked_add(at_most);
        let mut state = self.flight.state.lock();
        if matches!(*state, FlightState::Computing(leader) if leader == Computer::this_thread()) {
            return Err(Error::RecursiveCompute);
        }
        loop {
            if let Some(outcome) = state.outcome() {
                return Ok(outcome);
            }
            let has_timed_out;
            (state, has_timed_out) = self.flight.ended.wait_until(state, end);
            // It may have landed at the last moment.
            if has_timed_out && matches!(*state, FlightState::Computing(_)) {
                return Ok(Waited::TimedOut);
            }
            if !has_timed_out && mutant::is_on("any-wake-ends-the-wait") {
                return Ok(Waited::Abandoned);
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use std::thread;

    use super::*;

    fn lead(flights: &Arc<Flights>, key: &[u8]) -> Leader {
        match flights.board(key, Need::Now, Computer::this_thread()) {
            Boarding::Lead(leader) => leader,
            Boarding::Follow(_) => panic!("there is a flight already"),
        }
    }

    fn follow(flights: &Arc<Flights>, key: &[u8]) -> Follower {
        match flights.board(key, Need::Now, Computer::this_thread()) {
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
        let overtake = || match flights.overtake(b"key", &one, Computer::this_thread()) {
            Boarding::Lead(leader) => leader,
            Boarding::Follow(_) => panic!("nobody else leads"),
        };
        let next = thread::scope(|scope| scope.spawn(overtake).join()).unwrap();
        let Boarding::Follow(again) = flights.overtake(b"key", &other, Computer::this_thread())
        else {
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
            while !flights.is_awaited(b"key") {
                thread::yield_now();
            }
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
        leader.unless_changed(|| waits = leader.lease.is_storing());
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
        flights.note_change(b"key");
        let next = lead(&flights, b"key");
        leader.unless_changed(|| panic!("stored"));
        leader.land(b"old");
        drop(leader);
        assert_eq!(wait(&follower), landed(b"old"));
        let _still_the_next = follow(&flights, b"key");
        flights.note_change_of_all();
        next.unless_changed(|| panic!("stored"));
        drop(next);
        assert!(flights.is_quiet());
    }

    /// Each of the two leaders can be the one that is overtaken when the key changes.
    #[test]
    fn a_change_reaches_leaders_that_were_overtaken() {
        let changes: [fn(&Flights); 2] =
            [|flights| flights.note_change(b"key"), Flights::note_change_of_all];
        for change in changes {
            let flights = Arc::<Flights>::default();
            let elsewhere = || thread::scope(|scope| scope.spawn(|| lead(&flights, b"key")).join());
            let late = elsewhere().unwrap();
            let other = lead(&flights, b"other");
            let Boarding::Lead(next) =
                flights.overtake(b"key", &follow(&flights, b"key"), Computer::this_thread())
            else {
                panic!("nobody else leads");
            };
            next.land(b"next");
            drop(next);
            assert!(!flights.is_quiet(), "the first leader computes");
            change(&flights);
            let began_later = lead(&flights, b"key");
            late.unless_changed(|| panic!("stored"));
            drop(late);
            let mut stored = 0;
            began_later.unless_changed(|| stored += 1);
            assert_eq!(stored, 1);
            drop((began_later, other));
            assert!(flights.is_quiet());
        }
    }

    #[test]
    fn a_change_of_one_key_refuses_no_value_of_another() {
        let flights = Arc::<Flights>::default();
        let leader = lead(&flights, b"key");
        for other in 0..100_000_u32 {
            flights.note_change(&other.to_le_bytes());
        }
        let mut is_stored = false;
        leader.unless_changed(|| is_stored = true);
        assert!(is_stored);
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
        match flights.board(key, Need::Later, Computer::this_thread()) {
            Boarding::Lead(leader) => leader,
            Boarding::Follow(_) => panic!("there is a flight already"),
        }
    }

    #[test]
    fn who_has_no_value_overtakes_what_is_queued() {
        let flights = Arc::<Flights>::default();
        let queued = queue(&flights, b"key");
        assert!(matches!(
            flights.board(b"key", Need::Next, Computer::this_thread()),
            Boarding::Follow(_)
        ));
        assert!(matches!(
            flights.board(b"key", Need::Later, Computer::this_thread()),
            Boarding::Follow(_)
        ));
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
        flights.note_change(b"key");
        assert!(!queued.start());
        let other = queue(&flights, b"key");
        drop(queued);
        assert!(matches!(
            flights.board(b"key", Need::Next, Computer::this_thread()),
            Boarding::Follow(_)
        ));
        drop(other);
        assert!(flights.is_quiet());
    }
}
