//! A value is refreshed while the current one is served.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use haypile::{Cache, ComputeError, Error, Freshness, ManualClock, Registry, SetOptions};
use proptest::prelude::*;

const THREADS: usize = 16;

const FRESH: u64 = 10;
const EARLY: u64 = 3;
const STALE: u64 = 5;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn freshness() -> Freshness {
    Freshness::new(seconds(FRESH)).with_early(seconds(EARLY)).with_stale(seconds(STALE))
}

fn cache() -> (Cache, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    let registry = Registry::new().with_clock(clock.clone());
    (Cache::new(registry.open("memory:policy=lru").unwrap()), clock)
}

type Job = Box<dyn FnOnce() + Send>;

/// Jobs that wait for the test to run them.
#[derive(Default)]
struct Queue(Mutex<VecDeque<Job>>);

impl Queue {
    fn add(&self, job: Job) {
        self.0.lock().unwrap().push_back(job);
    }

    fn take(&self) -> Option<Job> {
        self.0.lock().unwrap().pop_front()
    }

    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Refreshes in the background; a computation returns `value`.
fn get_in(cache: &Cache, queue: &Queue, value: &'static str) -> Vec<u8> {
    let executor = |job| queue.add(job);
    cache.get_or_refresh_in("key", freshness(), executor, move || value.into()).unwrap()
}

fn get(cache: &Cache, value: &str) -> Vec<u8> {
    cache.get_or_refresh("key", freshness(), || value.into()).unwrap()
}

#[test]
fn one_caller_refreshes_early_and_the_others_have_the_fresh_value() {
    let (cache, clock) = cache();
    assert_eq!(get(&cache, "1"), b"1");
    clock.advance(Duration::from_nanos((FRESH - EARLY) * 1_000_000_000 - 1));
    assert_eq!(get(&cache, "2"), b"1");
    clock.advance(Duration::from_nanos(1));
    let refreshed = cache.get_or_refresh("key", freshness(), || {
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| assert_eq!(get(&cache, "computed again"), b"1"));
            }
        });
        b"2".to_vec()
    });
    assert_eq!(refreshed.unwrap(), b"2");
    clock.advance(seconds(FRESH - EARLY - 1));
    assert_eq!(get(&cache, "3"), b"2");
}

#[test]
fn a_stampede_refreshes_once() {
    for age in [FRESH - EARLY, FRESH + STALE - 1, FRESH + STALE] {
        let (cache, clock) = cache();
        get(&cache, "old");
        clock.advance(seconds(age));
        let (runs, start) = (AtomicUsize::new(0), Barrier::new(THREADS));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    let value = cache.get_or_refresh("key", freshness(), || {
                        runs.fetch_add(1, Ordering::Relaxed);
                        b"new".to_vec()
                    });
                    let value = value.unwrap();
                    assert!(value == b"new" || value == b"old" && age < FRESH + STALE);
                });
            }
        });
        assert_eq!(runs.into_inner(), 1);
        assert_eq!(get(&cache, "computed again"), b"new");
    }
}

#[test]
fn a_stampede_queues_one_job_and_nobody_waits() {
    let (cache, clock) = cache();
    let (queue, start) = (Queue::default(), Barrier::new(THREADS));
    assert_eq!(get_in(&cache, &queue, "old"), b"old");
    clock.advance(seconds(FRESH));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                start.wait();
                assert_eq!(get_in(&cache, &queue, "new"), b"old");
            });
        }
    });
    assert_eq!(queue.len(), 1);
    queue.take().unwrap()();
    assert_eq!(get_in(&cache, &queue, "newer"), b"new");
    assert_eq!(queue.len(), 0);
}

#[test]
fn a_failure_gives_the_value_that_is_there_until_it_has_expired() {
    let (cache, clock) = cache();
    get(&cache, "old");
    for by in [FRESH - EARLY, EARLY, STALE - 1] {
        clock.advance(seconds(by));
        for _ in 0..2 {
            let value = cache.get_or_try_refresh("key", freshness(), || Err("down"));
            assert_eq!(value.unwrap(), b"old");
        }
    }
    assert_eq!(cache.compute_stats().failed_refreshes, 6);
    let outlasted = cache.get_or_try_refresh("key", freshness(), || {
        clock.advance(seconds(1));
        Err("down")
    });
    assert!(matches!(outlasted, Err(ComputeError::Compute("down"))));
    let gone = cache.get_or_try_refresh("key", freshness(), || Err("down"));
    assert!(matches!(gone, Err(ComputeError::Compute("down"))));
    assert_eq!(cache.compute_stats().failed_refreshes, 6);
}

#[test]
fn a_job_that_fails_is_counted_and_the_value_served_on() {
    let (cache, clock) = cache();
    let queue = Queue::default();
    get(&cache, "old");
    clock.advance(seconds(FRESH));
    let get = || {
        let executor = |job| queue.add(job);
        cache.get_or_try_refresh_in("key", freshness(), executor, || Err("down"))
    };
    assert_eq!(get().unwrap(), b"old");
    queue.take().unwrap()();
    assert_eq!((get().unwrap(), cache.compute_stats().failed_refreshes), (b"old".to_vec(), 1));
    clock.advance(seconds(STALE));
    // Nobody has a value any longer, and the waiting job may never run.
    assert!(matches!(get(), Err(ComputeError::Compute("down"))));
    queue.take().unwrap()();
    assert_eq!((queue.len(), cache.compute_stats().failed_refreshes), (0, 1));
}

#[test]
fn a_job_that_never_ends_leaves_the_next_call_free() {
    let (cache, clock) = cache();
    let queue = Queue::default();
    get(&cache, "old");
    clock.advance(seconds(FRESH));
    assert_eq!(get_in(&cache, &queue, "dropped"), b"old");
    drop(queue.take().unwrap());
    let executor = |job| queue.add(job);
    let panics = || panic!("in a job");
    cache.get_or_refresh_in("key", freshness(), executor, panics).unwrap();
    let job = queue.take().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(job)).is_err());
    assert_eq!(get_in(&cache, &queue, "new"), b"old");
    queue.take().unwrap()();
    assert_eq!(cache.get("key").unwrap().unwrap(), b"new");
}

#[test]
fn an_executor_may_run_the_job_at_once() {
    let (cache, clock) = cache();
    get(&cache, "old");
    clock.advance(seconds(FRESH));
    let inner = cache.clone();
    let value = cache.get_or_refresh_in(
        "key",
        freshness(),
        |job| job(),
        move || {
            assert_eq!(get(&inner, "computed again"), b"old");
            b"new".to_vec()
        },
    );
    assert_eq!(value.unwrap(), b"old");
    assert_eq!(cache.get("key").unwrap().unwrap(), b"new");
}

#[test]
fn a_wait_for_the_first_value_can_be_cancelled() {
    let (cache, clock) = cache();
    let queue = Queue::default();
    let cancel = || Err("cancelled");
    let value = cache.get_or_compute("key", None, || {
        thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let own = || panic!("it was cancelled");
                cache.get_or_try_refresh_until("key", freshness(), own, cancel)
            });
            assert!(matches!(waits.join().unwrap(), Err(ComputeError::Compute("cancelled"))));
            let waits = scope.spawn(|| {
                let (own, executor) = (|| panic!("it was cancelled"), |job| queue.add(job));
                cache.get_or_try_refresh_in_until("key", freshness(), executor, own, cancel)
            });
            assert!(matches!(waits.join().unwrap(), Err(ComputeError::Compute("cancelled"))));
        });
        b"first".to_vec()
    });
    assert_eq!(value.unwrap(), b"first");

    // Nobody waits while there is a value.
    cache.delete("key").unwrap();
    assert_eq!(get(&cache, "old"), b"old");
    clock.advance(seconds(FRESH));
    let value = cache.get_or_try_refresh_until("key", freshness(), || Ok(b"new".to_vec()), cancel);
    assert_eq!(value.unwrap(), b"new");
    assert_eq!(queue.len(), 0);
}

#[test]
fn a_reservation_keeps_its_store_and_changes_nothing_before_it_is_committed() {
    let (cache, _clock) = cache();
    let mut reservation = cache.reserve_owned("key", 5, SetOptions::add()).unwrap();
    assert_eq!(reservation.options(), SetOptions::add());
    drop(cache.reserve_owned("key", 9, SetOptions::set()).unwrap());
    reservation.buffer().copy_from_slice(b"value");
    assert_eq!(cache.get("key").unwrap(), None);
    let store = Arc::downgrade(cache.store());
    drop(cache);
    assert!(store.upgrade().is_some());
    assert!(thread::spawn(|| reservation.commit().unwrap().is_stored()).join().unwrap());
    assert!(store.upgrade().is_none());
}

#[test]
fn who_has_no_value_does_not_wait_for_a_job_in_the_queue() {
    let (cache, clock) = cache();
    let queue = Queue::default();
    get(&cache, "old");
    clock.advance(seconds(FRESH));
    assert_eq!(get_in(&cache, &queue, "late"), b"old");
    clock.advance(seconds(STALE));
    assert_eq!(get_in(&cache, &queue, "own"), b"own");
    queue.take().unwrap()();
    assert_eq!(cache.get("key").unwrap().unwrap(), b"own");
}

#[test]
fn nothing_is_fresh_for_no_time() {
    let (cache, _) = cache();
    let none = Freshness::new(Duration::ZERO).with_stale(seconds(1));
    let compute = || -> Vec<u8> { panic!("computed") };
    assert!(matches!(cache.get_or_refresh("key", none, compute), Err(Error::ZeroTtl)));
    let executor = |_| panic!("queued");
    let error = cache.get_or_refresh_in("key", none, executor, compute);
    assert!(matches!(error, Err(Error::ZeroTtl)));
}

#[test]
fn caches_of_one_store_compute_once() {
    let (cache, _) = cache();
    let other = Cache::new(Arc::clone(cache.store()));
    let value = cache.get_or_try_compute("key", None, || {
        other.get_or_compute("key", None, || panic!("computed twice"))
    });
    assert!(matches!(value, Err(ComputeError::Compute(Error::RecursiveCompute))));
    let value = cache.get_or_compute("key", None, || {
        other.delete("key").unwrap();
        b"outdated".to_vec()
    });
    assert_eq!(value.unwrap(), b"outdated");
    assert_eq!(cache.get("key").unwrap(), None);
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Get { fails: bool },
    GetIn { fails: bool },
    RunJob,
    DropJob,
    Advance(u64),
    Set,
    Delete,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => any::<bool>().prop_map(|fails| Op::Get { fails }),
        4 => any::<bool>().prop_map(|fails| Op::GetIn { fails }),
        3 => Just(Op::RunJob),
        1 => Just(Op::DropJob),
        4 => (0..9_u64).prop_map(Op::Advance),
        1 => Just(Op::Set),
        1 => Just(Op::Delete),
    ]
}

/// The expected behaviour, without threads.
#[derive(Default)]
struct Model {
    now: u64,
    /// The value and the time of its computation.
    entry: Option<(u64, u64)>,
    /// The jobs in the queue by number, and whether they fail.
    jobs: VecDeque<(u64, bool)>,
    /// The job to which other callers leave the refresh.
    live: Option<u64>,
    queued: u64,
    /// Values are numbered by their computations.
    computed: u64,
    failed_refreshes: u64,
}

impl Model {
    fn compute(&mut self, fails: bool) -> Option<u64> {
        self.computed += 1;
        (!fails).then_some(self.computed)
    }

    fn get(&mut self, fails: bool, in_background: bool) -> Option<u64> {
        let Some((value, since)) = self.entry else {
            self.live = None;
            let value = self.compute(fails)?;
            self.entry = Some((value, self.now));
            return Some(value);
        };
        if self.now - since < FRESH - EARLY || self.live.is_some() {
            return Some(value);
        }
        if in_background {
            self.queued += 1;
            self.live = Some(self.queued);
            self.jobs.push_back((self.queued, fails));
            return Some(value);
        }
        let Some(next) = self.compute(fails) else {
            self.failed_refreshes += 1;
            return Some(value);
        };
        self.entry = Some((next, self.now));
        Some(next)
    }

    fn run_job(&mut self) {
        let Some((job, fails)) = self.jobs.pop_front() else { return };
        if self.live.take_if(|live| *live == job).is_none() {
            return;
        }
        match self.compute(fails) {
            None => self.failed_refreshes += 1,
            // Even if the value that it replaces has expired by now: nothing has removed it.
            Some(next) => self.entry = Some((next, self.now)),
        }
    }

    fn drop_job(&mut self) {
        let Some((job, _)) = self.jobs.pop_front() else { return };
        self.live.take_if(|live| *live == job);
    }

    fn advance(&mut self, by: u64) {
        self.now += by;
        self.entry.take_if(|(_, since)| self.now - *since >= FRESH + STALE);
    }
}

proptest! {
    #[test]
    fn refreshes_as_told_without_threads(ops in prop::collection::vec(op(), 0..60)) {
        let (cache, clock) = cache();
        let queue = Queue::default();
        let mut model = Model::default();
        let computed = Arc::new(AtomicU64::new(0));
        let compute = |fails: bool| {
            let computed = Arc::clone(&computed);
            move || {
                let value = computed.fetch_add(1, Ordering::Relaxed) + 1;
                if fails { Err(()) } else { Ok(value.to_string().into_bytes()) }
            }
        };
        for op in ops {
            match op {
                Op::Get { fails } => {
                    let value = cache.get_or_try_refresh("key", freshness(), compute(fails));
                    let expected = model.get(fails, false).map(|value| value.to_string());
                    prop_assert_eq!(value.ok(), expected.map(String::into_bytes));
                }
                Op::GetIn { fails } => {
                    let executor = |job| queue.add(job);
                    let value =
                        cache.get_or_try_refresh_in("key", freshness(), executor, compute(fails));
                    let expected = model.get(fails, true).map(|value| value.to_string());
                    prop_assert_eq!(value.ok(), expected.map(String::into_bytes));
                }
                Op::RunJob => {
                    if let Some(job) = queue.take() {
                        job();
                    }
                    model.run_job();
                }
                Op::DropJob => {
                    drop(queue.take());
                    model.drop_job();
                }
                Op::Advance(by) => {
                    clock.advance(seconds(by));
                    model.advance(by);
                }
                Op::Set => {
                    let value = model.compute(false).unwrap();
                    computed.store(value, Ordering::Relaxed);
                    cache.set_with_ttl("key", value.to_string(), seconds(FRESH + STALE)).unwrap();
                    model.entry = Some((value, model.now));
                    model.live = None;
                }
                Op::Delete => {
                    cache.delete("key").unwrap();
                    model.entry = None;
                    model.live = None;
                }
            }
            prop_assert_eq!(queue.len(), model.jobs.len());
            prop_assert_eq!(computed.load(Ordering::Relaxed), model.computed);
            prop_assert_eq!(cache.compute_stats().failed_refreshes, model.failed_refreshes);
        }
    }
}
