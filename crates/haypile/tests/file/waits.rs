//! Computing what others compute: they are waited for, and not forever; stopped ones, forked ones and
//! those that compute other keys are not waited for.

#![expect(unsafe_code, reason = "forks as programs in C and Python do")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Child;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haypile::{Cache, ComputeError, Registry, TriedClaim};
use rustix::process::{Pid, Signal, kill_process};

use crate::child;

/// Longer than any machine needs; what waits without a bound fails after it.
const LONG: Duration = Duration::from_mins(1);

fn open(path: &Path, options: &str) -> Cache {
    let url = format!("file://{}?size=1MiB{options}", path.display());
    Cache::new(Registry::new().open(&url).expect("a store"))
}

/// Starts a process that computes `key`: it says so, and goes on when its parent ends.
fn computing(path: &Path, key: &str) -> Child {
    let variables =
        [("HAYPILE_TEST_PATH", path.display().to_string()), ("HAYPILE_TEST_KEY", key.to_owned())];
    let mut child = child::start_with_input("waits::computer", &variables);
    let output = child.stdout.as_mut().expect("a pipe");
    let is_said = BufReader::new(output).lines().map_while(Result::ok);
    assert!({ is_said }.any(|line| line.ends_with("computing")), "it computes");
    child
}

#[test]
#[ignore = "another test starts it"]
fn computer() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    let key = child::variable("HAYPILE_TEST_KEY").expect("a key");
    let value = open(Path::new(&path), "").get_or_compute(key, None, || {
        println!("computing");
        // Until this process is killed, or its parent has ended.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        b"theirs".to_vec()
    });
    drop(value);
}

fn end(mut child: Child) {
    child.kill().expect("it is there");
    child.wait().expect("its end");
}

#[test]
fn a_process_that_computes_for_too_long_is_relieved_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let child = computing(&path, "key");
    let computed = AtomicU64::new(0);
    let begin = Instant::now();
    let compute = || {
        computed.fetch_add(1, Ordering::Relaxed);
        b"mine".to_vec()
    };
    // As three processes would: each has the file open for itself.
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let cache = open(&path, "&compute_wait=300ms");
                let value = cache.get_or_compute("key", None, compute).expect("a value");
                assert_eq!(value, b"mine");
            });
        }
    });
    assert!(begin.elapsed() >= Duration::from_millis(300), "it was waited for");
    assert!(begin.elapsed() < LONG);
    assert_eq!(computed.load(Ordering::Relaxed), 1, "the others waited once more");
    end(child);
    assert_eq!(open(&path, "").get("key").expect("a read").as_deref(), Some(&b"mine"[..]));
}

#[test]
fn a_process_that_was_stopped_is_relieved_before_that() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let child = computing(&path, "key");
    kill_process(Pid::from_child(&child), Signal::STOP).expect("it is there");
    let begin = Instant::now();
    let value = open(&path, "&compute_wait=1h").get_or_compute("key", None, || b"mine".to_vec());
    assert_eq!(value.expect("a value"), b"mine");
    assert!(begin.elapsed() < LONG);
    end(child);
}

#[test]
fn a_process_that_dies_is_relieved_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let child = computing(&path, "key");
    let cache = open(&path, "&compute_wait=1h");
    let value = thread::scope(|scope| {
        let waiting =
            scope.spawn(|| cache.get_or_compute("key", None, || b"mine".to_vec()).expect("one"));
        end(child);
        waiting.join().expect("no panic")
    });
    assert_eq!(value, b"mine");
}

/// A task waits as a thread does: for a process that dies, one that is stopped, and one that takes too long.
#[test]
fn a_task_takes_over_from_a_process_that_does_not_finish() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let mine = |key, wait: &str| {
        let cache = open(&path, &format!("&compute_wait={wait}"));
        let task = cache.get_or_compute_async(key, None, async || b"mine".to_vec());
        pollster::block_on(task).expect("a value")
    };
    let dies = computing(&path, "dies");
    let value = thread::scope(|scope| {
        let waiting = scope.spawn(|| mine("dies", "1h"));
        end(dies);
        waiting.join().expect("no panic")
    });
    assert_eq!(value, b"mine");
    let is_stopped = computing(&path, "is stopped");
    kill_process(Pid::from_child(&is_stopped), Signal::STOP).expect("it is there");
    assert_eq!(mine("is stopped", "1h"), b"mine");
    end(is_stopped);
    let goes_on = computing(&path, "goes on");
    assert_eq!(mine("goes on", "300ms"), b"mine");
    end(goes_on);
}

#[test]
fn a_claim_may_end_in_another_thread_and_after_its_cache() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let (first, second) = (open(&path, ""), open(&path, ""));
    let claimed = |cache: &Cache, take_over| cache.try_claim("key", take_over).expect("an answer");
    let TriedClaim::Held(claim) = claimed(&first, None) else { panic!("nobody has it") };
    assert!(matches!(claimed(&second, None), TriedClaim::Taken(_)), "it is taken");
    assert!(matches!(second.try_claim("other", None), Ok(TriedClaim::Held(_))));
    drop(first);
    assert!(matches!(claimed(&second, None), TriedClaim::Taken(_)), "it is still taken");
    thread::spawn(move || drop(claim)).join().expect("no panic");
    let TriedClaim::Held(_claim) = claimed(&second, None) else { panic!("it was given back") };
    // One that takes too long is relieved of it.
    let third = open(&path, "");
    let TriedClaim::Taken(holder) = claimed(&third, None) else { panic!("it is taken") };
    assert!(matches!(claimed(&third, Some(holder)), TriedClaim::Held(_)));
}

#[test]
fn a_claim_that_moves_keeps_no_thread_from_waiting() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let child = computing(&path, "key");
    let cache = open(&path, "&compute_wait=200ms");
    let TriedClaim::Held(_claim) = cache.try_claim("other", None).expect("an answer") else {
        panic!("nobody has it")
    };
    let begin = Instant::now();
    cache.get_or_compute("key", None, || b"mine".to_vec()).expect("a value");
    assert!(begin.elapsed() >= Duration::from_millis(200), "it waited");
    end(child);
}

#[test]
fn a_wait_for_another_process_can_be_ended() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let child = computing(&path, "key");
    let mut polls = 0;
    let ended = open(&path, "&compute_wait=1h").get_or_try_compute_until(
        "key",
        None,
        || Err("computed"),
        || {
            polls += 1;
            if polls == 2 { Err("ended") } else { Ok(()) }
        },
    );
    assert!(matches!(ended, Err(ComputeError::Compute("ended"))), "{ended:?}");
    end(child);
}

/// Threads of one process, whatever the store is.
#[test]
fn a_thread_that_computes_for_too_long_is_overtaken_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = open(&directory.path().join("cache"), "&compute_wait=200ms");
    let memory = Cache::open("memory:size=1MiB,compute_wait=200ms").expect("a cache");
    for cache in [file, memory] {
        let (begun, overtaken) = (Barrier::new(2), Barrier::new(2));
        let computed = AtomicU64::new(0);
        let compute = || {
            computed.fetch_add(1, Ordering::Relaxed);
            b"next".to_vec()
        };
        thread::scope(|scope| {
            let slow = scope.spawn(|| {
                cache.get_or_compute("key", None, || {
                    begun.wait();
                    overtaken.wait();
                    b"late".to_vec()
                })
            });
            begun.wait();
            let waiting = [(); 3].map(|()| {
                scope.spawn(|| cache.get_or_compute("key", None, compute).expect("a value"))
            });
            for waiting in waiting {
                assert_eq!(waiting.join().expect("no panic"), b"next");
            }
            overtaken.wait();
            assert_eq!(slow.join().expect("no panic").expect("a value"), b"late");
        });
        assert_eq!(computed.load(Ordering::Relaxed), 1);
        assert_eq!(cache.get("key").expect("a read").as_deref(), Some(&b"next"[..]));
    }
}

/// Were one of them to wait for another, they would not all meet.
#[test]
fn computations_of_different_keys_do_not_wait_for_each_other() {
    const MANY: usize = 40;
    let directory = tempfile::tempdir().expect("a directory");
    let cache = open(&directory.path().join("cache"), "&compute_wait=1h");
    let (met, all) = (Meeting::default(), AtomicU64::new(0));
    thread::scope(|scope| {
        for number in 0..MANY {
            let (cache, met, all) = (cache.clone(), &met, &all);
            scope.spawn(move || {
                let value = cache.get_or_compute(format!("key-{number}"), None, || {
                    if met.are_met(MANY) {
                        all.fetch_add(1, Ordering::Relaxed);
                    }
                    vec![1]
                });
                assert_eq!(value.expect("a value"), [1]);
            });
        }
    });
    assert_eq!(all.load(Ordering::Relaxed), MANY as u64);
}

/// Comes true when all have met; false when they do not within a time that no machine needs.
#[derive(Default)]
struct Meeting(std::sync::Mutex<usize>, std::sync::Condvar);

impl Meeting {
    fn are_met(&self, all: usize) -> bool {
        let mut arrived = self.0.lock().expect("no panic");
        *arrived += 1;
        self.1.notify_all();
        let wait = self.1.wait_timeout_while(arrived, LONG, |arrived| *arrived < all);
        !wait.expect("no panic").1.timed_out()
    }
}

/// Forks, and waits for the child for a bounded time; whether it ended well.
fn fork_and(run: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child does what a forked child of a program with threads may do here, and ends.
    let child = match unsafe { libc::fork() } {
        0 => {
            let ended_well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            // SAFETY: ends the child without the handlers of its parent.
            unsafe { libc::_exit(i32::from(!ended_well.unwrap_or(false))) }
        }
        child => child,
    };
    assert!(child > 0, "a child");
    let begin = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: the child is this process's, and the status a valid place.
        if unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == child {
            return status == 0;
        }
        if begin.elapsed() >= LONG {
            // SAFETY: as above.
            unsafe { libc::kill(child, libc::SIGKILL) };
            return false;
        }
        thread::yield_now();
    }
}

/// A program that forks while one of its threads computes.
#[test]
#[ignore = "another test starts it"]
fn forking() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    let cache = open(Path::new(&path), "&compute_wait=1h");
    let (begun, forked) = (Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        let computing = scope.spawn(|| {
            cache.get_or_compute("thread", None, || {
                begun.wait();
                forked.wait();
                b"the parent's".to_vec()
            })
        });
        begun.wait();
        // The child has nobody to wait for but its parent's process, and that for an hour.
        assert!(fork_and(|| {
            let other = cache.get_or_compute("other", None, || b"the child's".to_vec());
            other.is_ok_and(|value| value == b"the child's")
        }));
        forked.wait();
        computing.join().expect("no panic").expect("a value");
    });
    // Within a computation: children that return do not end their parent's, neither one that has a
    // value to store nor one that has none.
    let log = Path::new(&path).with_extension("log");
    let value = cache.get_or_try_compute("within", None, || {
        for has_value in [false, true] {
            // SAFETY: the child returns from here, and ends below.
            if unsafe { libc::fork() } == 0 {
                return if has_value { Ok(b"the child's".to_vec()) } else { Err(()) };
            }
            let mut status = 0;
            // SAFETY: any child, and a valid place.
            assert!(unsafe { libc::wait(&raw mut status) } > 0);
            assert_eq!(status, 0);
            // The child cannot know what its parent has deleted since.
            assert_eq!(cache.get("within").expect("a read"), None, "a child stores no value");
        }
        let mut third = computing_or_waiting(Path::new(&path), "within");
        let is_waiting = third.try_wait().expect("a child").is_none();
        fs::write(&log, if is_waiting { "waits" } else { "computes" }).expect("noted");
        end(third);
        Ok(b"the parent's".to_vec())
    });
    if !value.is_ok_and(|value| value == b"the parent's") {
        // SAFETY: ends the child without the handlers of its parent.
        unsafe { libc::_exit(0) }
    }
    println!("\nforked");
}

/// A process that asks for a key which another one computes.
fn computing_or_waiting(path: &Path, key: &str) -> Child {
    let variables =
        [("HAYPILE_TEST_PATH", path.display().to_string()), ("HAYPILE_TEST_KEY", key.to_owned())];
    let mut child = child::start_with_input("waits::asker", &variables);
    // It says that it waits, or that it has to compute.
    let mut said = String::new();
    let output = BufReader::new(child.stdout.as_mut().expect("a pipe"));
    for line in output.lines().map_while(Result::ok) {
        if line.ends_with("waits") || line.ends_with("computes") {
            said = line;
            break;
        }
    }
    if said.ends_with("computes") {
        child.wait().expect("its end");
    }
    child
}

#[test]
#[ignore = "another test starts it"]
fn asker() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    let key = child::variable("HAYPILE_TEST_KEY").expect("a key");
    let mut has_said = false;
    let cache = open(Path::new(&path), "&compute_wait=1h");
    let value = cache.get_or_try_compute_until(
        &key,
        None,
        || {
            println!("computes");
            Ok::<_, ()>(Vec::new())
        },
        || {
            if !std::mem::replace(&mut has_said, true) {
                println!("waits");
            }
            Ok(())
        },
    );
    drop(value);
}

#[test]
fn a_forked_child_waits_for_no_thread_of_its_parent_and_ends_no_claim_of_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let variables = [("HAYPILE_TEST_PATH", path.display().to_string())];
    let mut child = child::start("waits::forking", &variables);
    let lines = child::lines(&mut child, "");
    assert!(child.wait().expect("its end").success(), "{lines:?}");
    assert!(lines.iter().any(|line| line == "forked"), "{lines:?}");
    let said = fs::read_to_string(path.with_extension("log")).expect("noted");
    assert_eq!(said, "waits", "the parent still computed");
    std::io::stdout().flush().expect("a pipe");
}
