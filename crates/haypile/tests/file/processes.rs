//! Several processes, threads and forked children use one file at once.

#![expect(unsafe_code, reason = "forks as programs in C and Python do")]

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use haypile::{Cache, Error, Registry, SetOptions, Store, Written};

use crate::{child, work};

const PROCESSES: u64 = 3;
const THREADS: u64 = 2;
const OPERATIONS: u64 = 1_500;
const KEYS: u64 = 40;
const ELECTIONS: u64 = 150;
const COMPUTED: u64 = 30;
/// Longer than any machine needs.
const LONG: Duration = Duration::from_mins(1);

fn open_with(path: &Path, options: &str) -> Arc<dyn Store> {
    let url = format!("file://{}?size=4MiB{options}", path.display());
    Registry::new().open(&url).expect("a store")
}

fn open(path: &Path) -> Arc<dyn Store> {
    open_with(path, "")
}

fn start(test: &str, path: &Path, number: u64) -> Child {
    let variables = [
        ("HAYPILE_TEST_PATH", path.display().to_string()),
        ("HAYPILE_TEST_NUMBER", number.to_string()),
    ];
    child::start(test, &variables)
}

fn told() -> Option<(std::path::PathBuf, u64)> {
    let path = child::variable("HAYPILE_TEST_PATH")?;
    Some((path.into(), child::variable("HAYPILE_TEST_NUMBER")?.parse().expect("a number")))
}

/// Runs a part in several processes at once; gives the sum of what each said that it won.
fn run_all(test: &str, path: &Path) -> u64 {
    let mut children: Vec<Child> = (0..PROCESSES).map(|number| start(test, path, number)).collect();
    let mut won = 0;
    for child in &mut children {
        let lines = child::lines(child, "won ");
        assert!(child.wait().expect("its end").success(), "{test}");
        won += lines.iter().map(|line| line.parse::<u64>().expect("a number")).sum::<u64>();
    }
    won
}

/// Keys of its own with a model, and what it shares with all others.
fn work_as(store: &dyn Store, worker: u64) -> u64 {
    let mut model: HashMap<u64, Vec<u8>> = HashMap::new();
    let mut won = 0;
    for number in 0..OPERATIONS {
        let random = (worker << 32 | number).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let key = random % KEYS;
        let name = format!("{worker}-{key}").into_bytes();
        match random >> 20 & 7 {
            0 => assert_eq!(store.delete(&name).expect("a deletion"), model.remove(&key).is_some()),
            1..4 => {
                let value = work::value(worker << 20 | number, (random >> 24) as usize % 900);
                assert!(store.set(&name, &value, &SetOptions::set()).expect("a write").is_stored());
                model.insert(key, value);
            }
            _ => {
                let found = store.get(&name).expect("a read");
                assert!(found.as_ref() == model.get(&key), "{worker}-{key} after {number}");
            }
        }
        if number % 50 == 0 {
            work_on_many(store, worker, number, &mut model);
        }
        if number % 4 == 0 {
            assert!(store.incr(b"sum", worker).expect("a count").is_some());
        }
        if number % 10 == 0 {
            let name = format!("election-{}", number / 10 % ELECTIONS);
            let elected =
                store.set(name.as_bytes(), b"x", &SetOptions::add()).expect("an addition");
            won += u64::from(elected == Written::Stored);
        }
        if number % 20 == 0 {
            add_by_cas(store, 1);
        }
    }
    for (key, value) in model {
        let found = store.get(format!("{worker}-{key}").as_bytes()).expect("a read");
        assert!(found.as_ref() == Some(&value), "{worker}-{key}");
    }
    won
}

/// Writes, deletes and reads many of its own keys by one call each.
fn work_on_many(store: &dyn Store, worker: u64, number: u64, model: &mut HashMap<u64, Vec<u8>>) {
    let names: Vec<String> = (0..KEYS).map(|key| format!("{worker}-{key}")).collect();
    let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
    let values: Vec<(u64, Vec<u8>)> = (0..KEYS)
        .filter(|key| (key + number / 50) % 5 == 0)
        .map(|key| (key, work::value(worker << 32 | number << 8 | key, 10 * key as usize)))
        .collect();
    let entries: Vec<_> = values
        .iter()
        .map(|(key, value)| (names[*key as usize], &value[..], SetOptions::set()))
        .collect();
    for written in store.set_many(&entries) {
        assert!(written.expect("a write").is_stored());
    }
    model.extend(values);
    for (key, deleted) in (0..3).zip(store.delete_many(&names[..3])) {
        assert_eq!(deleted.expect("a deletion"), model.remove(&key).is_some());
    }
    for (key, found) in (0..KEYS).zip(store.get_many(&names).expect("a read")) {
        let value = found.map(|(value, _)| value);
        assert!(value.as_ref() == model.get(&key), "{worker}-{key} after {number}, of many");
    }
}

fn add_by_cas(store: &dyn Store, by: u64) {
    loop {
        let mut text = Vec::new();
        let hit = store.get_into(b"by cas", &mut text).expect("a read").expect("it is there");
        let number: u64 = String::from_utf8(text).expect("digits").parse().expect("digits");
        let options = SetOptions::cas(hit.version.expect("a version"));
        let sum = (number + by).to_string();
        if store.set(b"by cas", sum.as_bytes(), &options).expect("a write").is_stored() {
            return;
        }
    }
}

#[test]
#[ignore = "another test starts it"]
fn worker() {
    let Some((path, number)) = told() else {
        return;
    };
    let store = open(&path);
    let won: u64 = thread::scope(|scope| {
        let run = |thread| work_as(&*store, 1 + number * THREADS + thread);
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    });
    println!("\nwon {won}");
}

#[test]
fn processes_and_threads_keep_their_own_and_share_exactly() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let store = open(&path);
    for counter in [&b"sum"[..], b"by cas"] {
        assert!(store.set(counter, b"0", &SetOptions::set()).expect("a write").is_stored());
    }
    assert_eq!(run_all("processes::worker", &path), ELECTIONS, "each has one winner");
    let workers = 1..=PROCESSES * THREADS;
    let sum = workers.clone().sum::<u64>() * OPERATIONS.div_ceil(4);
    let by_cas = PROCESSES * THREADS * OPERATIONS.div_ceil(20);
    assert_eq!(store.get(b"sum").expect("a read"), Some(sum.to_string().into_bytes()));
    assert_eq!(store.get(b"by cas").expect("a read"), Some(by_cas.to_string().into_bytes()));
    drop(store);
    let check = haypile::file::FileCheck::of(&path, |_| {}).expect("a report");
    assert_eq!(check.damaged, 0, "{check:?}");
    let stat = haypile::file::FileStat::of(&path).expect("a report");
    assert_eq!((stat.stats.evictions, stat.deaths), (0, 0));
}

/// Where each process notes that it asks for a key now.
fn asked(path: &Path, key: u64) -> PathBuf {
    path.with_extension(format!("asked-{key}"))
}

fn note(log: &Path) {
    let log = OpenOptions::new().create(true).append(true).open(log);
    log.and_then(|mut log| log.write_all(b".")).expect("noted");
}

#[test]
#[ignore = "another test starts it"]
fn computer() {
    let Some((path, _)) = told() else {
        return;
    };
    let cache = Cache::new(open(&path));
    for key in 0..COMPUTED {
        note(&asked(&path, key));
        let value = cache.get_or_compute(format!("computed-{key}"), None, || {
            note(&path.with_extension("log"));
            // Nobody finds the value before all have asked for it.
            let begin = Instant::now();
            while fs::metadata(asked(&path, key)).expect("noted").len() < PROCESSES {
                assert!(begin.elapsed() < LONG, "the others ask for {key}");
                thread::yield_now();
            }
            work::value(key, 500)
        });
        assert!(value.expect("a value") == work::value(key, 500));
    }
}

#[test]
fn a_value_is_computed_once_by_all_processes() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let log = path.with_extension("log");
    let _store = open(&path);
    let _ = run_all("processes::computer", &path);
    assert_eq!(fs::read(&log).expect("the log").len() as u64, COMPUTED);
}

/// Runs something in a forked child; says whether it ended well.
fn in_child(run: impl FnOnce() -> bool) -> bool {
    // SAFETY: this process has one thread that does anything: it was started for this.
    match unsafe { libc::fork() } {
        0 => {
            let ended_well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            // SAFETY: ends the child without the handlers of its parent.
            unsafe { libc::_exit(i32::from(!ended_well.unwrap_or(false))) }
        }
        child => {
            assert!(child > 0, "a child");
            let mut status = 0;
            // SAFETY: the child is this process', and the status is a valid place.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            status == 0
        }
    }
}

fn owner_slots(path: &Path) -> usize {
    haypile::file::FileStat::of(path).expect("a report").processes.len()
}

#[test]
#[ignore = "another test starts it"]
fn parent() {
    let Some((path, _)) = told() else {
        return;
    };
    let store = open(&path);
    assert!(store.set(b"count", b"1", &SetOptions::set()).expect("a write").is_stored());
    for _ in 0..3 {
        assert!(in_child(|| {
            // An end of its own, and a grandchild.
            let found = store.get(b"count").expect("a read").is_some();
            let counted = store.incr(b"count", 1).expect("a count").is_some();
            let both = owner_slots(&path) == 2;
            let grandchild = in_child(|| {
                store.incr(b"count", 1).expect("a count").is_some() && owner_slots(&path) == 3
            });
            found && counted && both && grandchild
        }));
        assert_eq!(owner_slots(&path), 1, "the parent has its slot, and the child none any more");
        assert!(store.incr(b"count", 1).expect("a count").is_some());
    }
    // A child that closes what it inherited.
    assert!(in_child(|| store.close().is_ok()));
    assert!(in_child(move || {
        drop(store);
        true
    }));
    let store = open(&path);
    assert_eq!(store.get(b"count").expect("a read"), Some(b"10".to_vec()));
}

#[test]
fn forked_children_attach_anew_and_leave_their_parents_slot_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let mut parent = start("processes::parent", &path, 0);
    let lines = child::lines(&mut parent, "");
    assert!(parent.wait().expect("its end").success(), "{lines:?}");
    let store = open(&path);
    assert_eq!(store.get(b"count").expect("a read"), Some(b"10".to_vec()));
}

#[test]
fn a_reader_sees_what_writers_do_and_writes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let missing = format!("file://{}?mode=ro", path.display());
    assert!(Registry::new().open(&missing).is_err(), "none is made");
    let writer = open(&path);
    let reader = open_with(&path, "&mode=ro");
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for number in 0..20_000_u64 {
                let key = (number % 50).to_le_bytes();
                let value = work::value(number % 50, 1_000 + (number % 50 * 8) as usize);
                let written = writer.set(&key, &value, &SetOptions::set()).expect("a write");
                assert!(written.is_stored());
            }
        });
        let mut hits = 0;
        while !writing.is_finished() || hits == 0 {
            for key in 0..50_u64 {
                if let Some(found) = reader.get(&key.to_le_bytes()).expect("a read") {
                    assert!(found == work::value(key, 1_000 + (key * 8) as usize));
                    hits += 1;
                }
            }
        }
    });
    assert_eq!(reader.len().expect("a count"), 50);
    for refused in [
        reader.set(b"key", b"value", &SetOptions::set()).map(drop),
        reader.delete(b"key").map(drop),
        reader.incr(b"key", 1).map(drop),
        reader.touch(b"key", haypile::Ttl::from(None)).map(drop),
        reader.clear(),
    ] {
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    }
    assert_eq!(owner_slots(&path), 1, "who only reads needs no owner slot");
}

#[test]
fn there_are_so_many_owner_slots_and_they_come_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let url = format!("file://{}?size=1MiB", path.display());
    let mut stores: Vec<Arc<dyn Store>> =
        (0..32).map(|_| Registry::new().open(&url).expect("an owner slot")).collect();
    let crowded_out = Registry::new().open(&url).expect("it can be read");
    assert!(crowded_out.warnings()[0].contains("all 32 places"), "{:?}", crowded_out.warnings());
    let error =
        crowded_out.set(b"key", b"value", &SetOptions::set()).expect_err("no owner slot is left");
    assert!(error.to_string().contains("all 32 places"), "{error}");
    let only_read = Registry::new().open(&format!("{url}&mode=ro")).expect("it needs none");
    assert!(stores[31].set(b"key", b"value", &SetOptions::set()).expect("a write").is_stored());
    assert!(only_read.get(b"key").expect("a read").is_some());
    assert_eq!(crowded_out.get(b"key").expect("a read").as_deref(), Some(&b"value"[..]));
    drop(stores.pop());
    // It is found when it is looked for, which is seldom.
    let mut written = crowded_out.set(b"key", b"its own", &SetOptions::set());
    for _ in 0..10_000 {
        if written.is_ok() {
            break;
        }
        written = crowded_out.set(b"key", b"its own", &SetOptions::set());
    }
    assert!(written.expect("an owner slot is free again").is_stored());
    assert_eq!(crowded_out.warnings(), [""; 0]);
    drop(crowded_out);
    let again = Registry::new().open(&url).expect("an owner slot is free again");
    assert!(again.get(b"key").expect("a read").is_some());
    drop((stores, again));
    for number in 0..300_u64 {
        let store = Registry::new().open(&url).expect("opened again");
        let text = number.to_string();
        assert!(
            store.set(b"key", text.as_bytes(), &SetOptions::set()).expect("a write").is_stored()
        );
        assert_eq!(store.get(b"key").expect("a read"), Some(text.into_bytes()));
        if number % 2 == 0 {
            store.close().expect("closed");
        }
    }
}

/// Number of owner slots that are locked, as the kernel tells; a process may have several.
fn taken_slots(path: &Path) -> usize {
    locked_slots(path).len()
}

/// Owner slots that are locked. The kernel's list comes page by page: an owner slot can be missing if locks of
/// others are released in the meantime.
fn locked_slots(path: &Path) -> BTreeSet<u64> {
    const OWNER_SLOTS_AT: u64 = 1 << 62;
    let inode = fs::metadata(path).expect("a file").ino();
    let locks = fs::read_to_string("/proc/locks").expect("the kernel's list");
    let owner_slot = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "OFDLCK", _, "WRITE", _, file, first, _] = words[..] else { return None };
        let first: u64 = first.parse().ok()?;
        let is_owner_slot = (OWNER_SLOTS_AT..OWNER_SLOTS_AT + 1_024).contains(&first);
        (is_owner_slot && file.ends_with(&format!(":{inode}"))).then_some(first)
    };
    locks.lines().filter_map(owner_slot).collect()
}

#[test]
fn a_file_of_64_mebibytes_has_room_for_many_processes() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let url = format!("file://{}?size=64MiB", path.display());
    // As many processes would: each has the file open for itself.
    let stores: Vec<_> =
        (0..300).map(|_| Registry::new().open(&url).expect("an owner slot")).collect();
    for (number, store) in (0_u64..).zip(&stores) {
        assert_eq!(store.warnings(), [""; 0]);
        let written = store.set(&number.to_le_bytes(), b"value", &SetOptions::set());
        assert!(written.expect("a write").is_stored());
    }
    let mut taken = BTreeSet::new();
    let begin = Instant::now();
    while taken.len() < stores.len() && begin.elapsed() < LONG {
        taken.extend(locked_slots(&path));
    }
    assert_eq!((taken.len(), stores[0].len().expect("a count")), (300, 300));
}

#[test]
#[ignore = "another test starts it"]
fn threads_come_and_go() {
    let Some((path, _)) = told() else {
        return;
    };
    let store = open(&path);
    let begin = Instant::now();
    let has_several = || taken_slots(&path) > 1 || begin.elapsed() > LONG;
    thread::scope(|scope| {
        for thread in 0..8_u64 {
            let (store, has_several) = (&store, &has_several);
            scope.spawn(move || {
                for number in 0_u64.. {
                    let written = store.set(&thread.to_le_bytes(), b"value", &SetOptions::set());
                    assert!(written.expect("a write").is_stored());
                    if number % 256 == 0 && has_several() {
                        return;
                    }
                }
            });
        }
    });
    let are_several = (0..64).any(|_| taken_slots(&path) > 1);
    assert!(are_several, "threads that meet have owner slots of their own");
    // It is looked for seldom, and at each look one is given back that no thread has used since the one
    // before. One thread at a time uses one slot, and which that is depends on its number.
    let write_alone = || {
        for _ in 0..10_000 {
            assert!(store.set(b"key", b"value", &SetOptions::set()).expect("a write").is_stored());
        }
    };
    let is_one = || {
        thread::scope(|scope| scope.spawn(write_alone).join().expect("no panic"));
        taken_slots(&path) == 1
    };
    let begin = Instant::now();
    while !is_one() {
        assert!(begin.elapsed() < LONG, "{} slots", taken_slots(&path));
    }
}

/// In a process of its own: a thread of another test would have the lowest number for as long as it runs.
#[test]
fn owner_slots_of_threads_that_write_no_more_are_given_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let mut process = start("processes::threads_come_and_go", &path, 0);
    let lines = child::lines(&mut process, "");
    assert!(process.wait().expect("its end").success(), "{lines:?}");
}

#[test]
fn those_who_replace_a_file_at_once_share_the_last() {
    let directory = tempfile::tempdir().expect("a directory");
    for round in 0..16 {
        let path = directory.path().join(round.to_string());
        let before = open(&path);
        let stores: Vec<_> = thread::scope(|scope| {
            let replace = || open_with(&path, "&recreate=yes");
            let replacing: Vec<_> = (0..6).map(|_| scope.spawn(replace)).collect();
            replacing.into_iter().map(|store| store.join().expect("no panic")).collect()
        });
        for (number, store) in (0_u64..).zip(&stores) {
            let written = store.set(&number.to_le_bytes(), b"value", &SetOptions::set());
            assert!(written.expect("a write").is_stored());
        }
        for store in stores.iter().chain([&before]) {
            for number in 0..stores.len() as u64 {
                let found = store.get(&number.to_le_bytes()).expect("a read");
                assert_eq!(found.as_deref(), Some(&b"value"[..]), "{number} in {round}");
            }
        }
    }
}
