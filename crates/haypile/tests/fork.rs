//! The gate that forks wait at. It is of the whole process, so that one test at a time uses it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use haypile::{Cache, fork};

/// A fork that does not wait is over by then.
const LONG_ENOUGH: Duration = Duration::from_millis(50);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does the part of a fork that its parent does; returns whether it waited to the end of its patience.
fn fork_in_parent() -> bool {
    let begin = Instant::now();
    fork::prepare(fork::PATIENCE);
    let has_waited_long = begin.elapsed() >= fork::PATIENCE;
    fork::in_parent();
    has_waited_long
}

#[test]
fn a_fork_waits_for_threads_inside_and_they_for_a_fork() {
    let _alone = alone();
    let (inside, ended, entered) =
        (&Barrier::new(2), &AtomicBool::new(false), &AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(move || {
            let _inside = fork::enter();
            let _nested = fork::enter();
            inside.wait();
            thread::sleep(LONG_ENOUGH);
            ended.store(true, Ordering::SeqCst);
        });
        inside.wait();
        let begin = Instant::now();
        fork::prepare(fork::PATIENCE);
        // Not before the thread has left.
        assert!(ended.load(Ordering::SeqCst) || begin.elapsed() >= fork::PATIENCE);
        scope.spawn(move || {
            inside.wait();
            let _inside = fork::enter();
            entered.store(true, Ordering::SeqCst);
        });
        inside.wait();
        let arrived = Instant::now();
        // The thread needs less than that, if it does not wait.
        thread::sleep(4 * LONG_ENOUGH);
        assert!(!entered.load(Ordering::SeqCst) || arrived.elapsed() >= fork::PATIENCE);
        fork::in_parent();
    });
    assert!((0..20).any(|_| !fork_in_parent()));
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "forks as programs in C and Python do")]
fn is_true_in_child(condition: impl Fn() -> bool) -> bool {
    fork::prepare(fork::PATIENCE);
    // SAFETY: the child only uses atomic numbers, and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        fork::in_child();
        // SAFETY: exits the child without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(!condition())) }
    }
    fork::in_parent();
    let mut status = 0;
    // SAFETY: the child belongs to this process, and the status is a valid pointer.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status == 0
}

#[cfg(target_os = "linux")]
#[test]
fn a_thread_that_stays_inside_makes_the_caches_of_the_child_s_parent_unusable() {
    let _alone = alone();
    let (inside, done) = (&Barrier::new(2), &Barrier::new(2));
    let generation = fork::generation();
    let is_own = move || fork::generation() == generation + 1 && fork::is_usable(generation + 1);
    assert!(fork::is_usable(generation));
    thread::scope(|scope| {
        scope.spawn(move || {
            let _inside = fork::enter();
            inside.wait();
            done.wait();
        });
        inside.wait();
        assert!(fork_in_parent());
        assert!(is_true_in_child(move || !fork::is_usable(generation) && is_own()));
        done.wait();
    });
    assert!(is_true_in_child(move || fork::is_usable(generation) && is_own()));
    // A child's child, and a thread that forks inside, as a signal handler does.
    let _inside = fork::enter();
    assert!(is_true_in_child(move || fork::is_usable(generation) && is_own()));
    assert!(is_true_in_child(|| is_true_in_child(move || fork::is_usable(generation))));
    assert!(fork::is_usable(generation));
}

#[test]
fn computations_and_those_who_wait_for_them_are_outside() {
    let _alone = alone();
    let cache = &Cache::open("memory:size=1MiB").expect("a cache");
    let (computing, may_end) = (&Barrier::new(2), &Barrier::new(2));
    let ask = move || {
        let _inside = fork::enter();
        let value = cache.get_or_compute("key", None, || {
            fork::outside(|| {
                computing.wait();
                may_end.wait();
            });
            b"value".to_vec()
        });
        assert_eq!(value.expect("a value"), b"value");
    };
    thread::scope(|scope| {
        scope.spawn(ask);
        computing.wait();
        let waiting: Vec<_> = (0..3).map(|_| scope.spawn(ask)).collect();
        // Whether they wait already or are about to: they do not keep a fork until it gives up.
        // A few may, on a machine that has no processor for them.
        let given_up = (0..20).filter(|_| fork_in_parent()).count();
        assert!(given_up < 10, "{given_up} of 20");
        may_end.wait();
        drop(waiting);
    });
}

#[test]
fn a_panic_within_the_engine_or_a_computation_leaves_nobody_inside() {
    let _alone = alone();
    let panics = |inside: bool| {
        let thread = thread::spawn(move || {
            let _inside = fork::enter();
            if inside { panic!("inside") } else { fork::outside(|| panic!("outside")) }
        });
        assert!(thread.join().is_err());
    };
    panics(true);
    panics(false);
    assert!((0..20).any(|_| !fork_in_parent()));
}
