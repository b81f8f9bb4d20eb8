//! Computing without blocking a thread: the same guarantees as for callers that block.

use std::thread;
use std::time::Duration;

use haypile::{Cache, Computation, Freshness, PendingCompute, Polled};

fn open(options: &str) -> Cache {
    Cache::open(&format!("memory:{options}")).expect("a cache")
}

fn begin(cache: &Cache) -> PendingCompute {
    PendingCompute::begin(cache, "key", None).expect("a call")
}

fn poll(pending: PendingCompute) -> Polled {
    pending.poll().expect("an answer")
}

/// Polls a call that has to wait.
fn waits(pending: PendingCompute) -> PendingCompute {
    match poll(pending) {
        Polled::Wait(pending, _) => *pending,
        other => panic!("it does not wait: {other:?}"),
    }
}

fn lead(cache: &Cache) -> Box<Computation> {
    match poll(begin(cache)) {
        Polled::Compute(computation) => computation,
        other => panic!("it does not compute: {other:?}"),
    }
}

/// Begins a call that waits.
fn wait(cache: &Cache) -> PendingCompute {
    waits(begin(cache))
}

fn value(pending: PendingCompute) -> Vec<u8> {
    match poll(pending) {
        Polled::Value(value) => value,
        other => panic!("no value: {other:?}"),
    }
}

#[test]
fn one_computes_and_the_others_wait() {
    let cache = open("");
    let computation = lead(&cache);
    let waiting = [wait(&cache), wait(&cache)];
    computation.store(b"value");
    for pending in waiting {
        assert_eq!(value(pending), b"value");
    }
    assert_eq!(value(begin(&cache)), b"value");
    assert_eq!(cache.get("key").expect("a value"), Some(b"value".to_vec()));
}

#[test]
fn a_thread_waits_for_a_task_and_a_task_for_a_thread() {
    let cache = open("");
    let computation = lead(&cache);
    thread::scope(|scope| {
        let blocked = scope.spawn(|| cache.get_or_compute("key", None, || b"its own".to_vec()));
        computation.store(b"the task's");
        assert_eq!(blocked.join().expect("its end").expect("a value"), b"the task's");
    });
    let mut pending = None;
    let of_thread = cache.get_or_compute("other", None, || {
        pending = Some(waits(PendingCompute::begin(&cache, "other", None).expect("a call")));
        b"the thread's".to_vec()
    });
    assert_eq!(of_thread.expect("a value"), b"the thread's");
    assert_eq!(pending.map(value), Some(b"the thread's".to_vec()));
}

/// The thread that polled runs other tasks in the meantime: it may be one of those that wait.
#[test]
fn a_computation_belongs_to_no_thread() {
    let cache = open("compute_wait=10ms");
    let computation = lead(&cache);
    let own = cache.get_or_compute("key", None, || b"its own".to_vec());
    assert_eq!(own.expect("a value, after a wait"), b"its own");
    thread::scope(|scope| scope.spawn(|| computation.store(b"late")).join()).expect("its end");
    assert_eq!(cache.get("key").expect("a value"), Some(b"its own".to_vec()));
}

#[test]
fn when_one_fails_the_next_takes_over() {
    let cache = open("");
    let computation = lead(&cache);
    let (first, second) = (wait(&cache), wait(&cache));
    assert_eq!(computation.fail(), None);
    let Polled::Compute(computation) = poll(first) else { panic!("nobody else computes") };
    // One at a time.
    let second = waits(second);
    drop(computation);
    let Polled::Compute(computation) = poll(second) else { panic!("nobody else computes") };
    computation.store(b"value");
    assert_eq!(value(begin(&cache)), b"value");
}

#[test]
fn a_caller_that_stops_polling_keeps_nobody_out() {
    let cache = open("");
    let computation = lead(&cache);
    drop(wait(&cache));
    drop(computation);
    lead(&cache).store(b"value");
    assert_eq!(value(begin(&cache)), b"value");
}

#[test]
fn a_key_that_changes_during_the_computation_keeps_its_change() {
    let cache = open("");
    let computation = lead(&cache);
    let waiting = wait(&cache);
    assert!(!cache.delete("key").expect("an answer"));
    computation.store(b"old");
    assert_eq!(value(waiting), b"old", "it waited before the deletion");
    assert_eq!(cache.get("key").expect("an answer"), None);
    let computation = lead(&cache);
    cache.set("key", "written").expect("room");
    computation.store(b"old");
    assert_eq!(value(begin(&cache)), b"written");
}

#[test]
fn a_key_that_changes_is_computed_again_for_later_callers() {
    let cache = open("");
    let first = begin(&cache);
    assert!(first.is_current());
    let Polled::Compute(computation) = poll(first) else { panic!("nobody else computes") };
    let waiting = wait(&cache);
    assert!(computation.is_current() && waiting.is_current());
    cache.set("other", "value").expect("room");
    assert!(computation.is_current() && waiting.is_current());
    cache.delete("key").expect("an answer");
    assert!(!computation.is_current() && !waiting.is_current());
    let again = lead(&cache);
    assert!(again.is_current());
    computation.store(b"old");
    again.store(b"new");
    assert_eq!((value(waiting), value(begin(&cache))), (b"old".to_vec(), b"new".to_vec()));
}

#[test]
fn who_waited_for_a_failure_takes_part_in_what_begins_next() {
    let cache = open("");
    let computation = lead(&cache);
    let waiting = wait(&cache);
    drop(computation);
    assert!(waiting.is_current());
    cache.delete("key").expect("an answer");
    assert!(waiting.is_current(), "it computes after the deletion");
    let computation = lead(&cache);
    assert!(waiting.is_current());
    computation.store(b"value");
    assert_eq!(value(waiting), b"value");
}

#[test]
fn who_has_waited_long_enough_takes_over() {
    let cache = open("compute_wait=1h");
    let late = lead(&cache);
    let pending = begin(&cache).after_a_wait();
    let Polled::Compute(computation) = poll(pending) else { panic!("it waits") };
    let waiting = wait(&cache);
    computation.store(b"value");
    late.store(b"late");
    assert_eq!(value(waiting), b"value");
    assert_eq!(value(begin(&cache)), b"value");
}

#[test]
fn waits_are_bounded() {
    let cache = open("compute_wait=1ms");
    let mut never_end = vec![lead(&cache)];
    for _ in 0..3 {
        let mut pending = begin(&cache);
        never_end.push(loop {
            match poll(pending) {
                Polled::Compute(computation) => break computation,
                Polled::Wait(again, _) => pending = *again,
                Polled::Value(value) => panic!("nobody has a value: {value:?}"),
            }
            thread::yield_now();
        });
    }
}

#[test]
fn a_value_is_served_while_the_next_one_is_computed() {
    let cache = open("");
    let hour = Duration::from_hours(1);
    let freshness = Freshness::new(hour).with_early(hour);
    let refresh = || PendingCompute::begin_refresh(&cache, "key", freshness).expect("a call");
    cache.set_with_ttl("key", "current", hour).expect("room");
    let Polled::Compute(computation) = poll(refresh()) else { panic!("it is due") };
    assert_eq!(value(refresh()), b"current");
    assert_eq!(computation.fail(), Some(b"current".to_vec()), "served instead of the failure");
    let Polled::Compute(computation) = poll(refresh()) else { panic!("it is still due") };
    computation.store(b"next");
    assert_eq!(cache.get("key").expect("a value"), Some(b"next".to_vec()));
    let Polled::Compute(computation) = poll(refresh()) else { panic!("it is due again") };
    assert!(cache.delete("key").expect("an answer"));
    assert_eq!(computation.fail(), None);
}

/// Two caches of one file know as little of each other as those of two processes.
#[test]
fn processes_wait_for_each_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("file://{}?size=1MiB", directory.path().join("cache").display());
    let [ours, theirs] = [(); 2].map(|()| Cache::open(&url).expect("a cache"));
    let computation = lead(&theirs);
    let waiting = wait(&ours);
    // A task of this process waits there.
    let _holding = waits(begin(&ours).within_a_computation());
    computation.store(b"value");
    assert_eq!(value(waiting), b"value");
    let other = |cache| PendingCompute::begin(cache, "other", None).expect("a call");
    let Polled::Compute(_computing) = poll(other(&theirs)) else { panic!("it does not") };
    let holding = other(&ours).within_a_computation();
    let Polled::Compute(computation) = poll(holding) else { panic!("it waits") };
    computation.store(b"without a claim");
    assert_eq!(value(other(&ours)), b"without a claim");
}

#[test]
fn a_miss_counts_once_in_a_file_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("file://{}?size=1MiB", directory.path().join("cache").display());
    let cache = Cache::open(&url).expect("a cache");
    let counts = || cache.stats().map(|stats| (stats.hits, stats.misses)).expect("counts");
    let value = cache.get_or_compute("key", None, || b"value".to_vec());
    assert_eq!((value.expect("a value"), counts()), (b"value".to_vec(), (0, 1)));
    let Polled::Compute(computation) =
        poll(PendingCompute::begin(&cache, "other", None).expect("a call"))
    else {
        panic!("nobody else computes")
    };
    computation.store(b"value");
    assert_eq!(counts(), (0, 2));
    assert_eq!(value_of_other(&cache), b"value");
    assert_eq!(counts(), (1, 2));
}

fn value_of_other(cache: &Cache) -> Vec<u8> {
    value(PendingCompute::begin(cache, "other", None).expect("a call"))
}
