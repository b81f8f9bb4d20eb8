//! A process is stopped at each named step, others overwrite the file several times, and it goes on.

use std::collections::HashMap;
use std::path::Path;
use std::process::Child;
use std::time::Duration;

use haypile::{Error, SetOptions, Store, Ttl};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::crash::{STEPS, open};
use crate::{child, work};

/// Operations of the process that is stopped.
const OPERATIONS: u64 = 5_000;
/// Operations of the others while it is stopped: several times what the file holds.
const OTHERS: u64 = 4_000;
/// Keys of each.
const KEYS: u64 = 300;
/// They need not wait for it more often than this.
const MOST_BUSY: u64 = 20;
const HOUR: Duration = Duration::from_hours(1);

/// One writer of keys of its own, which knows what the last value of each is. Others may evict and
/// clear them, and have to leave them right.
struct Writer<'a> {
    store: &'a dyn Store,
    name: &'a str,
    random: ChaCha8Rng,
    last: HashMap<u64, Vec<u8>>,
    busy: u64,
}

impl<'a> Writer<'a> {
    fn new(store: &'a dyn Store, name: &'a str, seed: u64) -> Self {
        let (random, last) = (ChaCha8Rng::seed_from_u64(seed), HashMap::new());
        Self { store, name, random, last, busy: 0 }
    }

    /// Notes what an operation has done, where it was done.
    fn done<T>(&mut self, result: Result<T, Error>, then: impl FnOnce(&mut Self)) {
        match result {
            Ok(_) => then(self),
            // Nothing has changed.
            Err(Error::Busy { .. }) => self.busy += 1,
            Err(error) => panic!("{}: {error}", self.name),
        }
    }

    fn step(&mut self, number: u64, clears: bool) {
        let key = self.random.random_range(0..KEYS);
        let name = format!("{}-{key}", self.name).into_bytes();
        match self.random.random_range(0..20) {
            0..13 => {
                let long = self.random.random_range(0..40) == 0;
                let bytes = if long { 150_000 } else { self.random.random_range(0..3_000) };
                let value = work::value(number, bytes);
                let ttl = (number % 3 == 0).then_some(HOUR);
                let set = self.store.set(&name, &value, &SetOptions::set().with_ttl(ttl));
                self.done(set, |writer| drop(writer.last.insert(key, value)));
            }
            13..15 => {
                let deleted = self.store.delete(&name);
                self.done(deleted, |writer| drop(writer.last.remove(&key)));
            }
            15 => {
                let touched = self.store.touch(&name, Ttl::from(Some(2 * HOUR)));
                self.done(touched, |_| {});
            }
            16 if clears && number % 40 == 0 => {
                let cleared = self.store.clear();
                self.done(cleared, |writer| writer.last.clear());
            }
            _ => {
                // Others clear as well: a miss is not an error, anything but the last value is.
                if let Some(found) = self.store.get(&name).expect("a read") {
                    let is_last = self.last.get(&key) == Some(&found);
                    assert!(is_last, "{}-{key} at {number}: {} bytes", self.name, found.len());
                }
            }
        }
    }
}

#[test]
#[ignore = "another test starts it"]
fn worker() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    let store = open(Path::new(&path));
    let mut writer = Writer::new(&*store, "worker", 7);
    for number in 0..OPERATIONS {
        writer.step(number, true);
    }
}

/// Waits until a child is stopped; `false` if it has ended.
pub(crate) fn is_stopped(child: &Child) -> bool {
    let pid = Pid::from_child(child);
    let (_, status) =
        waitpid(Some(pid), WaitOptions::UNTRACED).expect("a child").expect("a status");
    status.stopped()
}

/// Stops a worker there; whether it came there at all.
#[expect(clippy::zombie_processes, reason = "a worker that ended has been waited for")]
fn stop_at(step: &str, pass: u32) -> bool {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let store = open(&path);
    let variables = [
        ("HAYPILE_TEST_PATH", path.display().to_string()),
        ("HAYPILE_STOP_AT", format!("{step}:{pass}")),
    ];
    let worker = child::start("stop::worker", &variables);
    if !is_stopped(&worker) {
        return false;
    }
    println!("{step}:{pass}");
    let mut other = Writer::new(&*store, "other", 8);
    for number in 0..OTHERS {
        other.step(OPERATIONS + number, true);
        if other.busy >= MOST_BUSY {
            break;
        }
    }
    kill_process(Pid::from_child(&worker), Signal::CONT).expect("it is there");
    let output = worker.wait_with_output().expect("its end");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{step}:{pass}: {said}");
    for number in 0..300 {
        other.step(OPERATIONS + OTHERS + number, false);
    }
    drop(store);
    let check = haypile::file::FileCheck::of(&path, |_| {}).expect("a file");
    assert_eq!(check.damaged, 0, "{step}:{pass}: {check:?}");
    true
}

#[test]
fn who_is_stopped_at_a_step_and_goes_on_finds_and_leaves_nothing_wrong() {
    let mut missed = Vec::new();
    for (step, _) in STEPS {
        // Each file has hashes of its own, and with them buckets that are full sooner or later.
        let is_passed = (0..4).any(|_| stop_at(step, 1));
        missed.extend((!is_passed).then_some(*step));
        let _ = stop_at(step, 40);
    }
    assert!(missed.is_empty(), "steps that were never passed: {missed:?}");
}

/// If a write needs something that a stopped process holds, it fails in the end, and the error
/// names the process.
#[test]
fn a_write_that_needs_what_a_stopped_process_holds_names_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let store = open(&path);
    let variables = [
        ("HAYPILE_TEST_PATH", path.display().to_string()),
        ("HAYPILE_STOP_AT", "clear.risen:1".to_owned()),
    ];
    let mut worker = child::start("stop::worker", &variables);
    assert!(is_stopped(&worker), "it clears after some operations");
    // It holds the lock under which room is made.
    let error = store.clear().expect_err("it is held").to_string();
    assert!(error.contains(&format!("process {}", worker.id())), "{error}");
    assert!(error.contains("was stopped"), "{error}");
    kill_process(Pid::from_child(&worker), Signal::KILL).expect("it is there");
    worker.wait().expect("its end");
    store.clear().expect("it is taken over from the dead");
}
