//! A writer dies, or is stopped, while it releases the lane of an owner that writes nothing any more.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Child;
use std::sync::Arc;

use haypile::{Error, Registry, SetOptions, Store};
use rustix::process::{Pid, Signal, kill_process};

use crate::stop::is_stopped;
use crate::{child, work};

/// Several times what the file holds.
const WRITES: u64 = 60_000;
const VALUE_BYTES: usize = 1_000;
/// Writes that may find a lock held by the one that was stopped, before the test gives up.
const MOST_BUSY: u64 = 20;

fn open(path: &Path) -> Arc<dyn Store> {
    // Large enough for several lanes of each queue.
    Registry::new().open(&format!("file://{}?size=16MiB", path.display())).expect("a store")
}

fn key(name: &str, number: u64) -> Vec<u8> {
    format!("{name}-{number}").into_bytes()
}

fn write(store: &dyn Store, name: &str, number: u64) -> Result<(), Error> {
    let value = work::value(number, VALUE_BYTES);
    store.set(&key(name, number), &value, &SetOptions::set()).map(drop)
}

/// Whether a key has its value. It may be gone; another value is an error.
fn holds(store: &dyn Store, name: &str, number: u64) -> bool {
    let found = store.get(&key(name, number)).expect("a read");
    assert!(
        found.as_ref().is_none_or(|found| *found == work::value(number, VALUE_BYTES)),
        "{name}-{number}"
    );
    found.is_some()
}

#[test]
#[ignore = "another test starts it"]
fn worker() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    let store = open(Path::new(&path));
    for number in 0..WRITES {
        write(&*store, "worker", number).expect("a write");
    }
}

/// A store with an idle lane, and a worker that comes to the step.
fn start(path: &Path, at: &str) -> (Arc<dyn Store>, Child) {
    let store = open(path);
    write(&*store, "idle", 0).expect("a write");
    let variables =
        [("HAYPILE_TEST_PATH", path.display().to_string()), (at, "lane.released:1".to_owned())];
    let worker = child::start("idle::worker", &variables);
    (store, worker)
}

/// Overwrites the file several times; how many writes were refused.
fn write_on(store: &dyn Store) -> u64 {
    let mut busy = 0;
    for number in 1..WRITES {
        match write(store, "idle", number) {
            Ok(()) => assert!(holds(store, "idle", number), "{number} is evicted at once"),
            Err(Error::Busy { .. }) => busy += 1,
            Err(error) => panic!("{number}: {error}"),
        }
        if busy >= MOST_BUSY {
            break;
        }
    }
    busy
}

fn check(store: Arc<dyn Store>, path: &Path) {
    for number in 0..WRITES {
        holds(&*store, "worker", number);
        holds(&*store, "idle", number);
    }
    drop(store);
    let check = haypile::file::FileCheck::of(path, |_| {}).expect("a file");
    assert_eq!(check.damaged, 0, "{check:?}");
}

#[test]
fn who_dies_releasing_an_idle_lane_leaves_its_segment_to_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let (store, mut worker) = start(&path, "HAYPILE_CRASH_AT");
    let status = worker.wait().expect("its end");
    assert_eq!(status.signal(), Some(9), "it releases the lane: {status}");
    assert_eq!(write_on(&*store), 0);
    check(store, &path);
}

#[test]
fn who_is_stopped_releasing_an_idle_lane_and_goes_on_leaves_nothing_wrong() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let (store, worker) = start(&path, "HAYPILE_STOP_AT");
    assert!(is_stopped(&worker), "it releases the lane");
    // It holds the lock of the recycler, so that a write that needs room is refused in the end.
    write_on(&*store);
    kill_process(Pid::from_child(&worker), Signal::CONT).expect("it is there");
    let output = worker.wait_with_output().expect("its end");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(write_on(&*store), 0);
    check(store, &path);
}
