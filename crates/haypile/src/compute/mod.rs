//! Computing values that the cache does not have.

mod counters;
mod freshness;
mod holding;
mod patience;
mod pending;
mod refresh;
mod shared;
#[cfg(feature = "async")]
mod task;
mod wait;

use std::convert::Infallible;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::flight::{Boarding, Computer, Leader, Need, Stage};
use crate::mutant;
use crate::store::Hit;
use crate::ttl::Ttl;
use crate::write::{SetOptions, WriteMode};

use patience::Patience;
use wait::{Claimed, Followed, Poll};

pub use counters::ComputeStats;
pub use freshness::Freshness;
pub use pending::{Computation, PendingCompute, Polled};
pub(crate) use shared::Computations;

/// The reason why computing the value of a missing key returned no value: the cache failed before
/// the computation, or the computation itself failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComputeError<E> {
    /// The cache failed before anything was computed.
    #[error(transparent)]
    Cache(#[from] Error),
    /// The computation failed with this error.
    #[error("the value of a missing entry could not be computed: {0}")]
    Compute(E),
}

/// Computing on a miss.
impl Cache {
    /// Returns the value of `key`; if there is none, computes it and stores it for `ttl`.
    ///
    /// However many threads ask through the caches of this store, one computes and the others wait
    /// for its value; they receive it even if the store does not retain it. If the computation
    /// panics, the panic continues in its thread, and one of the waiting callers takes over with its
    /// own `compute`; the others wait for that one.
    ///
    /// # Bounded waiting
    ///
    /// A caller that has waited for [`compute_wait`](crate::Store::compute_wait) in total, 30 seconds
    /// unless the URL has another value, computes itself, however many computations have failed one
    /// after the other in that time. If one computation takes that long, one of the callers that
    /// waited for it takes over; the others wait for that one for the same time again, and then
    /// compute for themselves. For a store that processes share, the same holds among processes; a
    /// process that is seen to be stopped or frozen is waited for one second.
    ///
    /// A failing store does not fail the call: if it cannot be read, that is a miss; if it refuses
    /// the value, because the value is too large or the store fails, the value is returned all the
    /// same. [`stats`](Self::stats) counts both, and [`warnings`](Self::warnings) tells of them: a
    /// value that is refused is computed at each call.
    ///
    /// # Writes during the computation
    ///
    /// They win. If a key is written, deleted or cleared through a cache of this store after its
    /// computation began, the computed value goes to this caller and to those that already wait for
    /// it, it is not stored, and later callers compute again. That holds also for a computation that
    /// another caller has taken over. A computation that began earlier does not store its value after
    /// one that began later either.
    ///
    /// Only changes of this key count: writes to other keys refuse no value, however many there are. A
    /// change counts even if it has no effect, such as an `add` that finds a value; a deletion under a
    /// condition counts only if the condition holds. A child that was forked during the computation
    /// returns the value and does not store it.
    ///
    /// Changes by another process, or on the [`store`](Self::store) itself, count in the same way where the store has
    /// leases, as `memory:`, `file:`, memcached, Redis and levels over these do: see [`Lease`](crate::Lease). Elsewhere they are
    /// detected by their result: a value that is there when the computation ends stays, but a deletion is not
    /// detected, and the computed value is stored.
    ///
    /// # Errors
    ///
    /// Those of the store about the key, before anything is computed; [`Error::Closed`];
    /// [`Error::ZeroTtl`]; [`Error::RecursiveCompute`]. Two computations that ask for each other's
    /// keys wait up to the bound, and then both compute.
    pub fn get_or_compute(
        &self,
        key: impl AsRef<[u8]>,
        ttl: impl Into<Ttl>,
        compute: impl FnOnce() -> Vec<u8>,
    ) -> Result<Vec<u8>> {
        self.get_or_try_compute(key, ttl, || Ok(compute())).map_err(infallible)
    }

    /// Returns the value of `key` like [`get_or_compute`](Self::get_or_compute), with a computation that can fail. The
    /// caller gets its error; nothing is stored, and one of the waiting callers takes over, with its own `compute`. So
    /// while a backend is down, one caller at a time asks it.
    ///
    /// # Errors
    ///
    /// Those of [`get_or_compute`](Self::get_or_compute), and the computation's own.
    pub fn get_or_try_compute<E>(
        &self,
        key: impl AsRef<[u8]>,
        ttl: impl Into<Ttl>,
        compute: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, ComputeError<E>> {
        self.get_or_try_compute_until(key, ttl, compute, || Ok(()))
    }

    /// Returns the value of `key` like [`get_or_try_compute`](Self::get_or_try_compute), with a
    /// wait that can be cancelled: while another caller computes, `poll` is called about every 50
    /// ms, and its error is returned.
    ///
    /// # Errors
    ///
    /// Those of [`get_or_try_compute`](Self::get_or_try_compute), and that of `poll`.
    pub fn get_or_try_compute_until<E>(
        &self,
        key: impl AsRef<[u8]>,
        ttl: impl Into<Ttl>,
        compute: impl FnOnce() -> Result<Vec<u8>, E>,
        mut poll: impl FnMut() -> Result<(), E>,
    ) -> Result<Vec<u8>, ComputeError<E>> {
        let options = SetOptions::set().with_ttl(ttl);
        self.compute_unless(key.as_ref(), options, |_| true, compute, &mut poll)
    }

    /// Returns the counts of failures that did not fail a computation, such as computed values that
    /// could not be stored.
    pub fn compute_stats(&self) -> ComputeStats {
        self.computations.counters().stats()
    }

    fn compute_unless<E>(
        &self,
        key: &[u8],
        options: SetOptions,
        is_fresh: impl Fn(Hit) -> bool,
        compute: impl FnOnce() -> Result<Vec<u8>, E>,
        poll: Poll<'_, E>,
    ) -> Result<Vec<u8>, ComputeError<E>> {
        options.ttl.resolve(None)?;
        // Read before the lookup, which cannot see what lands after it.
        let landed = self.computations.flights().landed(key);
        let mut value = Vec::new();
        let hit = self.look(key, &mut value)?;
        if hit.is_some_and(&is_fresh) {
            return Ok(value);
        }
        let looked = Looked { landed, hit, value };
        self.compute_after(looked, key, options, is_fresh, compute, poll)
    }

    /// Continues after a lookup that found no value, or one that is due for a refresh.
    fn compute_after<E>(
        &self,
        looked: Looked,
        key: &[u8],
        options: SetOptions,
        is_fresh: impl Fn(Hit) -> bool,
        compute: impl FnOnce() -> Result<Vec<u8>, E>,
        poll: Poll<'_, E>,
    ) -> Result<Vec<u8>, ComputeError<E>> {
        let Looked { landed, mut hit, mut value } = looked;
        let flights = self.computations.flights();
        let mut patience = Patience::new(self.store.compute_wait());
        let flight = match self.board(key, Need::of(hit), Computer::this_thread()) {
            Boarding::Lead(leader) => leader,
            Boarding::Follow(_) if hit.is_some() => return Ok(value),
            Boarding::Follow(flight) => match self.follow(key, flight, &mut patience, poll)? {
                Followed::Value(value) => return Ok(value),
                Followed::Lead(leader) => leader,
                Followed::Alone => return compute().map_err(ComputeError::Compute),
            },
        };
        let claim = match self.claim(key, hit.is_none(), &mut patience, poll)? {
            Claimed::Compute(claim) => claim,
            // Another process refreshes the value, and this caller has the current one.
            Claimed::Taken => return Ok(value),
        };
        let is_late = (claim.is_some() || patience.has_begun())
            && !mutant::is_on("claimed-key-is-not-read-again");
        if is_late || flights.landed(key) != landed {
            hit = self.look_again(key, &mut value, hit)?;
            if hit.is_some_and(&is_fresh) {
                flight.land(&value);
                return Ok(value);
            }
        }
        let terms = self.terms(&flight, key, hit);
        match compute() {
            Ok(next) => {
                self.land(&flight, key, options, terms, &next);
                Ok(next)
            }
            // Read again, because the computation may have outlasted the value.
            Err(_) if hit.is_some() && matches!(self.look(key, &mut value), Ok(Some(_))) => {
                self.computations.counters().add_failed_refresh();
                Ok(value)
            }
            Err(error) => Err(ComputeError::Compute(error)),
        }
    }

    /// Boards a flight. If its value is of before a change of its key that the store knows of, by another process or on the
    /// store itself, this caller leads the next one: it must not get what was true before its call.
    fn board(&self, key: &[u8], need: Need, computer: Computer) -> Boarding {
        let flights = self.computations.flights();
        let mut boarding = flights.board(key, need, computer);
        while let Boarding::Follow(flight) = &boarding
            && need == Need::Now
        {
            boarding = match flight.stage() {
                // The value may be removed as soon as it is stored: it is read from the store.
                Stage::Storing if !mutant::is_on("newcomers-join-what-is-stored") => {
                    flights.await_end(key, flight);
                    flights.board(key, need, computer)
                }
                stage if self.holds(key, stage) => break,
                // Its own value ends a lease too: the flight has begun to store that in the meantime.
                _ if matches!(flight.stage(), Stage::Storing)
                    && !mutant::is_on("stored-flight-is-taken-for-revoked") =>
                {
                    continue;
                }
                _ => flights.overtake(key, flight, computer),
            };
        }
        boarding
    }

    /// Returns whether nothing is seen that revokes the lease of a flight.
    fn holds(&self, key: &[u8], stage: Stage) -> bool {
        let Stage::Leased(lease) = stage else { return true };
        !matches!(self.store.check_lease(key, lease, &self.groups()), Ok(false))
            || mutant::is_on("newcomers-join-what-is-revoked")
    }

    /// Returns the terms on which the value that is about to be computed will be stored, in the place of `hit` if there is
    /// one. The store's own lease, if it has leases, is revoked by whoever changes the key.
    fn terms(&self, flight: &Leader, key: &[u8], hit: Option<Hit>) -> Result<WriteMode> {
        let lease = match self.store.lease(key) {
            Ok(lease) if !mutant::is_on("computations-take-no-lease") => lease,
            Ok(_) | Err(Error::Unsupported { .. }) => {
                return Ok(match hit {
                    None => WriteMode::Add,
                    Some(_) if mutant::is_on("refresh-replaces-a-newer-value") => WriteMode::Set,
                    Some(hit) => hit.version.map_or(WriteMode::Set, WriteMode::Cas),
                });
            }
            Err(error) => return Err(error),
        };
        flight.set_stage(Stage::Leased(lease));
        Ok(WriteMode::Leased(lease))
    }

    /// Stores the computed value on these terms, and hands it to all waiting callers.
    fn land(
        &self,
        flight: &Leader,
        key: &[u8],
        options: SetOptions,
        terms: Result<WriteMode>,
        value: &[u8],
    ) {
        flight.unless_changed(|| {
            if let Ok(WriteMode::Leased(_)) = terms {
                flight.set_stage(Stage::Storing);
            }
            let set = |mode| self.put(key, value, &SetOptions { mode, ..options });
            // The caller gets the value even if it cannot be stored.
            if let Err(error) = terms.and_then(set) {
                self.computations.counters().add_refused_value(&error);
            }
        });
        flight.land(value);
    }

    /// Reads a value once more, after another caller may have stored it. One miss of a caller counts once.
    fn look_again(&self, key: &[u8], value: &mut Vec<u8>, hit: Option<Hit>) -> Result<Option<Hit>> {
        let is_still_missing = hit.is_none() && matches!(self.store.contains(key), Ok(false));
        if is_still_missing && !mutant::is_on("each-look-is-a-miss") {
            return Ok(None);
        }
        self.look(key, value)
    }

    /// Reads a value. A failing store is a miss here, because the caller can be served without it.
    fn look(&self, key: &[u8], value: &mut Vec<u8>) -> Result<Option<Hit>> {
        // Read with its version: the computed value may replace this value and no other. A store
        // that fails to return the version may still have the value.
        let versioned = self.store.get_versioned_into(key, value);
        let Err(failure @ Error::Backend { .. }) = versioned else { return versioned };
        match self.store.get_into(key, value) {
            Ok(None) | Err(Error::Backend { .. }) => {
                self.computations.counters().add_failed_read(&failure);
                Ok(None)
            }
            found => found,
        }
    }
}

/// The result of a lookup in the store.
struct Looked {
    /// Number of flights that had landed before.
    landed: u64,
    hit: Option<Hit>,
    /// Empty if there is no hit.
    value: Vec<u8>,
}

fn infallible(error: ComputeError<Infallible>) -> Error {
    match error {
        ComputeError::Cache(error) => error,
        ComputeError::Compute(never) => match never {},
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Arc, OnceLock};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::layer::Layer;
    use crate::lease::Lease;
    use crate::store::Store;
    use crate::write::Written;

    /// Callers whose computations all fail.
    struct Failing {
        cache: Cache,
        callers: usize,
        computing: AtomicUsize,
        failed: AtomicUsize,
        began: Instant,
        /// The time after which two of them computed at once.
        overlapped: OnceLock<Duration>,
    }

    impl Failing {
        fn new(url: &str, callers: usize) -> Self {
            let cache = Cache::open(url).unwrap();
            let (computing, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let overlapped = OnceLock::new();
            Self { cache, callers, computing, failed, began: Instant::now(), overlapped }
        }

        /// Calls from all of them at once. A computation ends when all callers that are left wait for
        /// it and `is_enough` of the time since it began, or when another one computes.
        fn call_all(&self, is_enough: impl Fn(Duration) -> bool + Sync) {
            let compute = || {
                let begin = Instant::now();
                if self.computing.fetch_add(1, Ordering::SeqCst) > 0 {
                    self.overlapped.get_or_init(|| self.began.elapsed());
                }
                let is_awaited = || {
                    let left = self.callers - 1 - self.failed.load(Ordering::SeqCst);
                    self.cache.computations.flights().followers(b"key") >= left
                };
                while self.overlapped.get().is_none()
                    && !(is_awaited() && is_enough(begin.elapsed()))
                {
                    thread::yield_now();
                }
                self.failed.fetch_add(1, Ordering::SeqCst);
                self.computing.fetch_sub(1, Ordering::SeqCst);
                Err("failed")
            };
            thread::scope(|scope| {
                for _ in 0..self.callers {
                    scope.spawn(|| {
                        let value = self.cache.get_or_try_compute("key", None, compute);
                        assert!(matches!(value, Err(ComputeError::Compute("failed"))));
                    });
                }
            });
            assert_eq!(self.failed.load(Ordering::SeqCst), self.callers, "each of them computed");
        }
    }

    /// A store whose second miss returns only after a value has been stored, which begins only after that miss. The write
    /// then lasts until its caller says so.
    #[derive(Debug)]
    struct Crossing {
        inner: Arc<dyn Store>,
        misses: AtomicUsize,
        is_stored: AtomicBool,
        may_go_on: AtomicBool,
    }

    fn wait_until(is_so: impl Fn() -> bool) {
        while !is_so() {
            thread::yield_now();
        }
    }

    impl Layer for Crossing {
        fn inner(&self) -> &dyn Store {
            &*self.inner
        }

        fn loaded(&self, _: &[u8], _: &mut Vec<u8>, hit: Option<Hit>) -> Result<Option<Hit>> {
            if hit.is_none() && self.misses.fetch_add(1, Ordering::SeqCst) == 1 {
                wait_until(|| self.is_stored.load(Ordering::SeqCst));
            }
            Ok(hit)
        }

        fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
            wait_until(|| self.misses.load(Ordering::SeqCst) > 1);
            let written = self.inner.set(key, value, options);
            self.is_stored.store(true, Ordering::SeqCst);
            wait_until(|| self.may_go_on.load(Ordering::SeqCst));
            written
        }
    }

    /// Its miss was before the value was stored, and it comes to the computation after that.
    #[test]
    fn a_caller_that_comes_while_a_value_is_stored_computes_no_other() {
        let (misses, is_stored, may_go_on) = Default::default();
        let inner = Arc::clone(Cache::open("memory:").unwrap().store());
        let store = Arc::new(Crossing { inner, misses, is_stored, may_go_on });
        let cache = Cache::new(Arc::clone(&store) as Arc<dyn Store>);
        let computed = AtomicUsize::new(0);
        let call = || {
            let compute = || computed.fetch_add(1, Ordering::SeqCst).to_string().into_bytes();
            assert_eq!(cache.get_or_compute("key", None, compute).unwrap(), b"0");
        };
        thread::scope(|scope| {
            let first = scope.spawn(call);
            wait_until(|| computed.load(Ordering::SeqCst) == 1);
            scope.spawn(call);
            let flights = cache.computations.flights();
            wait_until(|| flights.followers(b"key") > 0 || computed.load(Ordering::SeqCst) > 1);
            store.may_go_on.store(true, Ordering::SeqCst);
            first.join().unwrap();
        });
        assert_eq!(computed.into_inner(), 1);
    }

    /// A store in which a lease is checked only once its value has been stored. The write then lasts until its caller says so.
    #[derive(Debug)]
    struct StoredAtTheCheck {
        inner: Arc<dyn Store>,
        is_checked: AtomicBool,
        is_stored: AtomicBool,
        may_go_on: AtomicBool,
    }

    impl Layer for StoredAtTheCheck {
        fn inner(&self) -> &dyn Store {
            &*self.inner
        }

        fn check_lease(&self, key: &[u8], lease: Lease, groups: &[&[u8]]) -> Result<bool> {
            self.is_checked.store(true, Ordering::SeqCst);
            wait_until(|| self.is_stored.load(Ordering::SeqCst));
            self.inner.check_lease(key, lease, groups)
        }

        fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
            let written = self.inner.set(key, value, options);
            self.is_stored.store(true, Ordering::SeqCst);
            wait_until(|| self.may_go_on.load(Ordering::SeqCst));
            written
        }
    }

    /// It has found a lease of the computation, which the store has ended when it checks that.
    #[test]
    fn a_caller_that_checks_a_lease_while_its_value_is_stored_computes_no_other() {
        let [is_checked, is_stored, may_go_on] = [(); 3].map(|()| AtomicBool::new(false));
        let inner = Arc::clone(Cache::open("memory:").unwrap().store());
        let store = Arc::new(StoredAtTheCheck { inner, is_checked, is_stored, may_go_on });
        let cache = Cache::new(Arc::clone(&store) as Arc<dyn Store>);
        let computed = AtomicUsize::new(0);
        let call = |compute: &dyn Fn()| {
            let compute = || {
                compute();
                computed.fetch_add(1, Ordering::SeqCst).to_string().into_bytes()
            };
            assert_eq!(cache.get_or_compute("key", None, compute).unwrap(), b"0");
        };
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                call(&|| {
                    scope.spawn(|| call(&|| {}));
                    wait_until(|| store.is_checked.load(Ordering::SeqCst));
                });
            });
            let flights = cache.computations.flights();
            wait_until(|| flights.is_awaited(b"key") || computed.load(Ordering::SeqCst) > 1);
            store.may_go_on.store(true, Ordering::SeqCst);
            first.join().unwrap();
        });
        assert_eq!(computed.into_inner(), 1);
    }

    #[test]
    fn callers_that_waited_for_a_failure_compute_one_at_a_time() {
        let failing = Failing::new("memory:compute_wait=1h", 40);
        failing.call_all(|_| true);
        assert_eq!(failing.overlapped.get(), None, "two of them computed at once");
        let value = failing.cache.get_or_compute("key", None, || b"value".to_vec());
        assert_eq!(value.unwrap(), b"value");
    }

    /// One after the other they would take twice that time.
    #[test]
    fn callers_that_have_waited_for_the_whole_time_compute_at_once() {
        const WAIT: Duration = Duration::from_millis(200);
        let failing = Failing::new("memory:compute_wait=200ms", 8);
        failing.call_all(|elapsed| elapsed >= WAIT / 4);
        let overlapped = failing.overlapped.get();
        assert!(overlapped.is_some_and(|after| *after >= WAIT), "{overlapped:?}");
    }

    #[test]
    fn those_who_wait_get_the_value_of_a_key_that_was_deleted_meanwhile() {
        let cache = Cache::open("memory:").unwrap();
        thread::scope(|scope| {
            let old = cache.get_or_compute("key", None, || {
                let waits = || cache.get_or_compute("key", None, || b"its own".to_vec()).unwrap();
                let waiting = scope.spawn(move || assert_eq!(waits(), b"old"));
                // One that has boarded may still see the change, and compute for itself.
                wait_until(|| cache.computations.flights().is_awaited(b"key"));
                assert!(!cache.delete("key").unwrap());
                let later =
                    scope.spawn(|| cache.get_or_compute("key", None, || b"new".to_vec()).unwrap());
                assert_eq!(later.join().unwrap(), b"new");
                drop(waiting);
                b"old".to_vec()
            });
            assert_eq!(old.unwrap(), b"old");
        });
        assert_eq!(cache.get("key").unwrap().unwrap(), b"new");
    }
}
