//! The gate that forks wait at. It is of the whole process, so that one test at a time uses it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use haypile::{Cache, ForkGate, OwnedPinned};

/// A fork that does not wait is over by then.
const LONG_ENOUGH: Duration = Duration::from_millis(50);

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does the part of a fork that its parent does; returns whether it waited to the end of its patience.
fn fork_in_parent() -> bool {
    let begin = Instant::now();
    ForkGate::prepare(ForkGate::PATIENCE);
    let has_waited_long = begin.elapsed() >= ForkGate::PATIENCE;
    ForkGate::in_parent();
    has_waited_long
}

#[test]
fn a_fork_waits_for_threads_inside_and_they_for_a_fork() {
    let _alone = alone();
    let (inside, ended, entered) =
        (&Barrier::new(2), &AtomicBool::new(false), &AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(move || {
            let _inside = ForkGate::enter();
            let _nested = ForkGate::enter();
            inside.wait();
            thread::sleep(LONG_ENOUGH);
            ended.store(true, Ordering::SeqCst);
        });
        inside.wait();
        let begin = Instant::now();
        ForkGate::prepare(ForkGate::PATIENCE);
        // Not before the thread has left.
        assert!(ended.load(Ordering::SeqCst) || begin.elapsed() >= ForkGate::PATIENCE);
        scope.spawn(move || {
            inside.wait();
            let _inside = ForkGate::enter();
            entered.store(true, Ordering::SeqCst);
        });
        inside.wait();
        let arrived = Instant::now();
        // The thread needs less than that, if it does not wait.
        thread::sleep(4 * LONG_ENOUGH);
        assert!(!entered.load(Ordering::SeqCst) || arrived.elapsed() >= ForkGate::PATIENCE);
        ForkGate::in_parent();
    });
    assert!((0..20).any(|_| !fork_in_parent()));
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "forks as programs in C and Python do")]
fn is_true_in_child_while(mut condition: impl FnMut() -> bool, parent: impl FnOnce()) -> bool {
    ForkGate::prepare(ForkGate::PATIENCE);
    // SAFETY: the child only uses atomic numbers, and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        ForkGate::in_child();
        // SAFETY: exits the child without the parent's exit handlers.
        unsafe { libc::_exit(i32::from(!condition())) }
    }
    ForkGate::in_parent();
    parent();
    let mut status = 0;
    // SAFETY: the child belongs to this process, and the status is a valid pointer.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status == 0
}

#[cfg(target_os = "linux")]
fn is_true_in_child(condition: impl Fn() -> bool) -> bool {
    is_true_in_child_while(condition, || ())
}

#[cfg(target_os = "linux")]
#[test]
fn a_thread_that_stays_inside_makes_the_caches_of_the_child_s_parent_unusable() {
    let _alone = alone();
    let (inside, done) = (&Barrier::new(2), &Barrier::new(2));
    let generation = ForkGate::generation();
    let is_own =
        move || ForkGate::generation() == generation + 1 && ForkGate::is_usable(generation + 1);
    assert!(ForkGate::is_usable(generation));
    thread::scope(|scope| {
        scope.spawn(move || {
            let _inside = ForkGate::enter();
            inside.wait();
            done.wait();
        });
        inside.wait();
        assert!(fork_in_parent());
        assert!(is_true_in_child(move || !ForkGate::is_usable(generation) && is_own()));
        done.wait();
    });
    assert!(is_true_in_child(move || ForkGate::is_usable(generation) && is_own()));
    // A child's child, and a thread that forks inside, as a signal handler does.
    let _inside = ForkGate::enter();
    assert!(is_true_in_child(move || ForkGate::is_usable(generation) && is_own()));
    assert!(is_true_in_child(|| is_true_in_child(move || ForkGate::is_usable(generation))));
    assert!(ForkGate::is_usable(generation));
}

/// Returns a value of a file that is read in place, and its cache, in a directory of its own.
#[cfg(target_os = "linux")]
fn in_place(bytes: usize) -> (tempfile::TempDir, Cache, OwnedPinned) {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("file://{}?size=16MiB", directory.path().join("cache").display());
    let cache = Cache::open(&url).expect("a cache");
    for key in [b"before", b"held..", b"after."] {
        cache.set(key, vec![key[0]; bytes]).expect("room");
    }
    let value = cache.get_in_place_owned(b"held..").expect("a read").expect("a value");
    assert!(format!("{value:?}").contains("copied: false"), "{value:?}");
    (directory, cache, value)
}

/// Lets go of values and fills the file, so that their places are used again.
#[cfg(target_os = "linux")]
fn let_go(values: [OwnedPinned; 2], cache: &Cache) {
    let bytes = values[0].len();
    drop(values);
    for key in 0..10_000_u32 {
        cache.set(key.to_le_bytes(), vec![b'z'; bytes]).expect("room");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_child_goes_on_reading_a_value_that_its_parent_lets_go_of() {
    use std::io::{Read, Write};

    let _alone = alone();
    // Values share pages.
    for bytes in [1_500, 9_000] {
        let (_directory, cache, mut value) = in_place(bytes);
        let mut other = cache.get_in_place_owned(b"after.").expect("a read").expect("a value");
        let (mut go_on, mut parent) = std::io::pipe().expect("a pipe");
        value.keep_for_children();
        other.keep_for_children();
        let (start, other_start) = (value.as_ptr().addr(), other.as_ptr().addr());
        let read = move |start: usize| {
            let start = std::ptr::with_exposed_provenance::<u8>(start);
            #[expect(unsafe_code, reason = "what a view of another language reads")]
            // SAFETY: the pages stay mapped as long as the process runs.
            unsafe {
                std::slice::from_raw_parts(start, bytes)
            }
        };
        let (values, cache) = (std::cell::Cell::new(Some([value, other])), &cache);
        let is_same = is_true_in_child_while(
            || {
                // Until the parent has let go.
                let _ = go_on.read(&mut [0]);
                read(start).iter().all(|&byte| byte == b'h')
                    && read(other_start).iter().all(|&byte| byte == b'a')
            },
            || {
                let_go(values.take().expect("they are held"), cache);
                parent.write_all(&[1]).expect("the child waits");
            },
        );
        assert!(is_same, "{bytes}");
        assert!(read(start).contains(&b'z'), "the place was used again");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_value_that_is_no_longer_held_is_not_copied() {
    let _alone = alone();
    let (_directory, cache, mut value) = in_place(2_000);
    value.keep_for_children();
    value.keep_for_children();
    drop(value);
    // The memory of a cache that is closed is gone: to copy it would be a segmentation fault.
    drop(cache);
    assert!(is_true_in_child(|| true));
}

#[test]
fn computations_and_those_who_wait_for_them_are_outside() {
    let _alone = alone();
    let cache = &Cache::open("memory:size=1MiB").expect("a cache");
    let (computing, may_end) = (&Barrier::new(2), &Barrier::new(2));
    let ask = move || {
        let _inside = ForkGate::enter();
        let value = cache.get_or_compute("key", None, || {
            ForkGate::outside(|| {
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
            let _inside = ForkGate::enter();
            if inside { panic!("inside") } else { ForkGate::outside(|| panic!("outside")) }
        });
        assert!(thread.join().is_err());
    };
    panics(true);
    panics(false);
    assert!((0..20).any(|_| !fork_in_parent()));
}
