//! Files that others replace again and again: a process forgets them.

#![expect(unsafe_code, reason = "forks as programs in C and Python do")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use haypile::{Registry, SetOptions, Store};

use crate::{child, work};

const REPLACED: u64 = 400;
/// More than threads and the allocator take, and less than the files would.
const MOST_BYTES: u64 = 40 << 20;

fn open(path: &Path, options: &str) -> Arc<dyn Store> {
    let url = format!("file://{}?size=4MiB{options}", path.display());
    Registry::new().open(&url).expect("a store")
}

fn set(store: &dyn Store, key: &[u8], value: &[u8]) {
    assert!(store.set(key, value, &SetOptions::set()).expect("a write").is_stored());
}

fn told_path() -> Option<PathBuf> {
    Some(child::variable("HAYPILE_TEST_PATH")?.into())
}

fn run(test: &str) {
    // In memory, for each new file is brought to disk.
    let memory = Path::new("/dev/shm");
    let place = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let directory = tempfile::tempdir_in(place).expect("a directory");
    let path = directory.path().join("cache");
    let mut child: Child = child::start(test, &[("HAYPILE_TEST_PATH", path.display().to_string())]);
    let lines = child::lines(&mut child, "");
    assert!(child.wait().expect("its end").success(), "{lines:?}");
}

/// The addresses that this process uses.
struct Addresses {
    bytes: u64,
    mappings: usize,
}

impl Addresses {
    fn now() -> Self {
        let mappings = fs::read_to_string("/proc/self/maps").expect("it").lines().count();
        Self { bytes: address_bytes(), mappings }
    }

    /// Panics where this process uses many more than before.
    fn check(&self) {
        let now = Self::now();
        let more = now.bytes.saturating_sub(self.bytes);
        assert!(more < MOST_BYTES, "{more} bytes of addresses more");
        let more = now.mappings.saturating_sub(self.mappings);
        assert!(more < 16, "{more} mappings more");
    }
}

fn address_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).expect("it");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// Replaces the file; `store` reads what the new one has.
fn replace(path: &Path, store: &dyn Store, number: u64) {
    let new = open(path, "&recreate=yes");
    let value = number.to_le_bytes();
    set(&*new, b"key", &value);
    assert_eq!(store.get(b"key").expect("a read").as_deref(), Some(&value[..]));
}

fn replace_often(path: &Path, store: &dyn Store) {
    (0..REPLACED).for_each(|number| replace(path, store, number));
}

/// Replaces the file often; the process has no more mappings after that than before.
fn replace_without_a_trace(path: &Path, store: &dyn Store) {
    (0..4).for_each(|number| replace(path, store, number));
    let before = Addresses::now();
    replace_often(path, store);
    before.check();
}

#[test]
#[ignore = "another test starts it"]
fn alone() {
    if let Some(path) = told_path() {
        replace_without_a_trace(&path, &*open(&path, ""));
    }
}

#[test]
fn a_process_forgets_files_that_were_replaced() {
    run("replaced::alone");
}

/// Uses the cache until it is told to pause, and then does nothing until `told` ends.
fn work_until_told(store: &dyn Store, thread: u64, told: &Receiver<()>, paused: &Sender<()>) {
    loop {
        match told.try_recv() {
            Err(TryRecvError::Empty) => {
                set(store, &thread.to_le_bytes(), &work::value(thread, 500));
                let found = store.get(&(1 - thread).to_le_bytes()).expect("a read");
                assert!(found.is_none_or(|found| found == work::value(1 - thread, 500)));
            }
            Ok(()) => {
                paused.send(()).expect("it waits for that");
                let _ = told.recv();
                return;
            }
            Err(TryRecvError::Disconnected) => return,
        }
    }
}

#[test]
#[ignore = "another test starts it"]
fn with_threads() {
    let Some(path) = told_path() else { return };
    let store = &*open(&path, "");
    std::thread::scope(|scope| {
        let (idle, is_idle) = channel();
        let (end, has_to_end) = channel::<()>();
        scope.spawn(move || {
            set(store, b"idle", b"value");
            idle.send(()).expect("it waits for that");
            let _ = has_to_end.recv();
        });
        is_idle.recv().expect("it has used the cache");
        let (paused, have_paused) = channel();
        let workers = [0, 1].map(|thread| {
            let (tell, told) = channel();
            let paused = paused.clone();
            scope.spawn(move || work_until_told(store, thread, &told, &paused));
            tell
        });
        drop(paused);
        (0..4).for_each(|number| replace(&path, store, number));
        let before = Addresses::now();
        replace_often(&path, store);
        // The machine may keep a thread within an operation for any time, and with it the files of that
        // time: they are forgotten once it has gone on.
        for tell in &workers {
            tell.send(()).expect("it works");
            have_paused.recv().expect("it works");
        }
        (0..4).for_each(|number| replace(&path, store, number));
        before.check();
        drop((workers, end));
    });
}

#[test]
fn threads_that_do_nothing_or_work_keep_no_file_that_was_replaced() {
    run("replaced::with_threads");
}

#[test]
#[ignore = "another test starts it"]
fn with_what_outlives_operations() {
    let Some(path) = told_path() else { return };
    let store = open(&path, "");
    let value = work::value(1, 100_000);
    set(&*store, b"long", &value);
    let pinned = store.get_pinned(b"long").expect("a read").expect("it is there");
    replace(&path, &*store, 1);
    let claim = store.claim(b"computed", None).expect("a claim");
    replace_without_a_trace(&path, &*store);
    assert!(*pinned == value, "it was read in place all the time");
    drop((claim, pinned));
    replace_without_a_trace(&path, &*store);
}

#[test]
fn values_in_place_and_claims_keep_their_own_file() {
    run("replaced::with_what_outlives_operations");
}

#[test]
#[ignore = "another test starts it"]
fn in_children() {
    fn in_child(run: impl FnOnce()) {
        // SAFETY: this process has one thread that does anything: it was started for this.
        match unsafe { libc::fork() } {
            0 => {
                let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
                // SAFETY: ends the child without the handlers of its parent.
                unsafe { libc::_exit(i32::from(done.is_err())) }
            }
            child => {
                let mut status = 0;
                // SAFETY: the child is this process', and the status is a valid place.
                assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
                assert_eq!(status, 0);
            }
        }
    }
    /// Each generation forks the next, and lets go of what it has inherited.
    fn generation(path: &Path, store: &Arc<dyn Store>, left: u32, most: u64) {
        set(&**store, b"key", &left.to_le_bytes());
        assert!(address_bytes() < most, "{} of {most}", address_bytes());
        if left > 0 {
            in_child(|| generation(path, store, left - 1, most));
        } else {
            replace_without_a_trace(path, &**store);
        }
    }
    let Some(path) = told_path() else { return };
    let store = open(&path, "");
    set(&*store, b"key", b"value");
    let most = address_bytes() + MOST_BYTES;
    generation(&path, &store, 20, most);
    assert_eq!(store.get(b"key").expect("a read").map(|value| value.len()), Some(8));
}

#[test]
fn generations_of_children_keep_no_file_of_their_parents() {
    run("replaced::in_children");
}
