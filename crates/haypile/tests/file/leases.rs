//! A removal is not undone by a value that was computed before it, in whatever process.

use std::fs;
use std::path::Path;
use std::time::Duration;

use haypile::{Cache, Lease, PendingCompute, Polled, Registry, SetOptions, Written};

use crate::child;
use crate::places::Places;

/// Opens the file once more, as another process does.
fn open(path: &Path, namespace: &str) -> Cache {
    let namespace = if namespace.is_empty() { "" } else { &format!("&namespace={namespace}") };
    let url = format!("file://{}?size=1MiB{namespace}", path.display());
    Cache::new(Registry::new().open(&url).expect("a store"))
}

fn get(cache: &Cache, key: &str) -> Option<Vec<u8>> {
    cache.get(key).expect("a read")
}

/// Writes until the file has been filled several times.
fn fill(cache: &Cache) {
    for number in 0..4_000_u32 {
        cache.set(number.to_le_bytes(), [0; 1_000]).expect("room can be made");
    }
}

/// Ways to change a key, each with the value that readers may find afterwards.
const CHANGES: &[(&str, fn(&Cache), Option<&str>)] = &[
    ("delete", |cache| _ = cache.delete("key").expect("a deletion"), None),
    ("delete_many", |cache| drop(cache.delete_many(&["other", "key"])), None),
    ("clear", |cache| cache.clear().expect("a clearing"), None),
    ("set", |cache| cache.set("key", "new").expect("a write"), Some("new")),
    ("incr", |cache| drop(cache.incr("key", 1)), Some("8")),
    (
        "set, then delete",
        |cache| {
            cache.set("key", "new").expect("a write");
            assert!(cache.delete("key").expect("a deletion"));
        },
        None,
    ),
    (
        "set, then delete its version",
        |cache| {
            cache.set("key", "new").expect("a write");
            let (_, version) = cache.get_versioned("key").expect("a read").expect("it is there");
            assert!(cache.delete_version("key", version).expect("a deletion"));
        },
        None,
    ),
    (
        "set, then evicted",
        |cache| {
            cache.set("key", "new").expect("a write");
            fill(cache);
            assert_eq!(get(cache, "key"), None, "it was used once, and has left");
        },
        None,
    ),
    (
        "set, then expired and recycled",
        |cache| {
            cache.set_with_ttl("key", "new", Duration::from_millis(1)).expect("a write");
            while get(cache, "key").is_some() {}
            fill(cache);
        },
        None,
    ),
];

/// Whether the key has a value when the lease is granted: `incr` changes one.
fn has_value(change: &str) -> bool {
    change == "incr"
}

#[test]
fn a_lease_is_revoked_by_every_change_of_its_key() {
    for namespace in ["", "spaced"] {
        for (name, change, left) in CHANGES {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("cache");
            let (mine, theirs) = (open(&path, namespace), open(&path, namespace));
            if has_value(name) {
                theirs.set("key", "7").expect("a write");
            }
            let lease = mine.lease("key").expect("a lease");
            change(&theirs);
            let written = mine.write("key", "old", SetOptions::leased(lease)).expect("an outcome");
            assert_eq!(written, Written::Revoked, "{name}, namespace '{namespace}'");
            assert_eq!(get(&theirs, "key").as_deref(), left.map(str::as_bytes), "{name}");
            assert_eq!(mine.stats().expect("counts").revoked, 1);
        }
    }
}

#[test]
fn a_computation_does_not_undo_what_another_process_has_removed() {
    for namespace in ["", "spaced"] {
        for (name, change, left) in CHANGES.iter().filter(|(name, ..)| !has_value(name)) {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("cache");
            let (mine, theirs) = (open(&path, namespace), open(&path, namespace));
            let compute = || {
                change(&theirs);
                b"old".to_vec()
            };
            let value = mine.get_or_compute("key", None, compute).expect("a value");
            assert_eq!(value, b"old", "of its caller, it is as good as any");
            let left = left.map(str::as_bytes);
            assert_eq!(get(&theirs, "key").as_deref(), left, "{name}, namespace '{namespace}'");

            let _ = theirs.delete("key").expect("a deletion");
            let pending = PendingCompute::begin(&mine, "key", None).expect("a call");
            let Polled::Compute(computation) = pending.poll().expect("an answer") else {
                panic!("nobody else computes")
            };
            assert!(computation.is_current());
            change(&theirs);
            assert!(!computation.is_current(), "{name}: callers that come now compute again");
            computation.store(b"old");
            assert_eq!(get(&theirs, "key").as_deref(), left, "{name}, in a task");
        }
    }
}

/// A caller that comes after the deletion gets nothing of before it, though a computation of before goes on.
#[test]
fn later_callers_do_not_join_a_computation_whose_key_another_process_has_removed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let (mine, theirs) = (open(&path, ""), open(&path, ""));
    let old = mine.get_or_compute("key", None, || {
        assert!(!theirs.delete("key").expect("a deletion"));
        let later = std::thread::scope(|scope| {
            let later = || mine.get_or_compute("key", None, || b"new".to_vec());
            scope.spawn(later).join().expect("no panic")
        });
        assert_eq!(later.expect("a value"), b"new");
        b"old".to_vec()
    });
    assert_eq!(old.expect("a value"), b"old");
    assert_eq!(get(&theirs, "key").as_deref(), Some(&b"new"[..]));
}

#[test]
fn a_lease_serves_once_and_then_the_next_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let (mine, theirs) = (open(&path, ""), open(&path, ""));
    let lease = mine.lease("key").expect("a lease");
    let options = SetOptions::leased(lease);
    // Whoever shares the file may use it.
    assert!(theirs.write("key", "one", options).expect("an outcome").is_stored());
    assert_eq!(mine.write("key", "two", options).expect("an outcome"), Written::Revoked);
    let options = SetOptions::leased(mine.lease("key").expect("a lease"));
    assert!(mine.write("key", "two", options).expect("an outcome").is_stored());
    assert_eq!(get(&theirs, "key").as_deref(), Some(&b"two"[..]));
}

#[test]
fn what_is_not_a_change_of_the_key_revokes_nothing() {
    type Act = fn(&Cache, &Cache);
    let acts: &[(&str, Act)] = &[
        ("nothing", |_, _| {}),
        ("a touch", |cache, _| {
            assert!(cache.touch("key", Duration::from_hours(1)).expect("a touch"));
        }),
        ("reads", |cache, _| assert!(get(cache, "key").is_some())),
        ("a removal under a condition that does not hold", |cache, _| {
            assert!(!cache.compare_and_delete("key", "another").expect("an outcome"));
        }),
        ("a write that is refused", |cache, _| {
            assert!(!cache.add("key", "another").expect("an outcome"));
        }),
        ("the clearing of another namespace", |_, other| other.clear().expect("a clearing")),
        ("six removals of other keys, again and again", |cache, _| {
            for number in 0..6_000 {
                let _ = cache.delete((number % 6_u32).to_le_bytes()).expect("a deletion");
            }
        }),
    ];
    for namespace in ["", "spaced"] {
        for (name, act) in acts {
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join("cache");
            let (mine, theirs) = (open(&path, namespace), open(&path, namespace));
            let other = open(&path, "other");
            mine.set_with_ttl("key", "value", Duration::from_mins(1)).expect("a write");
            other.set("key", "of the other").expect("a write");
            let lease = mine.lease("key").expect("a lease");
            act(&theirs, &other);
            let written = mine.write("key", "next", SetOptions::leased(lease)).expect("an outcome");
            assert_eq!(written, Written::Stored, "{name}, namespace '{namespace}'");
        }
    }
}

/// An entry that has expired is still what the lease knows.
#[test]
fn a_value_may_expire_while_the_next_one_is_computed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let cache = open(&path, "");
    cache.set_with_ttl("key", "value", Duration::from_millis(1)).expect("a write");
    let lease = cache.lease("key").expect("a lease");
    while get(&cache, "key").is_some() {}
    assert!(cache.write("key", "next", SetOptions::leased(lease)).expect("one").is_stored());
}

#[test]
fn a_lease_of_anything_else_is_revoked() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let cache = open(&path, "");
    let store = |cache: &Cache, key: &str, lease| {
        cache.write(key, "value", SetOptions::leased(lease)).expect("an outcome")
    };
    let lease = cache.lease("key").expect("a lease");
    assert_eq!(store(&cache, "kez", lease), Written::Revoked, "of another key");
    assert_eq!(store(&open(&path, "spaced"), "key", lease), Written::Revoked, "of no namespace");
    for bit in 0..8 * Lease::BYTES {
        let mut bytes = lease.to_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(store(&cache, "key", Lease::from_bytes(bytes)), Written::Revoked, "bit {bit}");
    }
    for bytes in [[0; Lease::BYTES], [0xFF; Lease::BYTES]] {
        assert_eq!(store(&cache, "key", Lease::from_bytes(bytes)), Written::Revoked);
    }
    let other = open(&directory.path().join("other"), "");
    assert_eq!(store(&other, "key", lease), Written::Revoked, "of another file");
    let replaced = format!("file://{}?size=1MiB&recreate=yes", path.display());
    let replaced = Cache::open(&replaced).expect("a cache");
    assert_eq!(store(&replaced, "key", lease), Written::Revoked, "of the file that was replaced");
    drop((cache, replaced));

    haypile::file::hooks::set_boot_id(Some("before"));
    let cache = open(&path, "");
    let lease = cache.lease("key").expect("a lease");
    drop(cache);
    assert_eq!(store(&open(&path, ""), "key", lease), Written::Stored, "as long as the boot lasts");
    let lease = open(&path, "").lease("key").expect("a lease");
    haypile::file::hooks::set_boot_id(Some("after"));
    assert_eq!(store(&open(&path, ""), "key", lease), Written::Revoked, "of before the reboot");
    haypile::file::hooks::set_boot_id(None);
}

/// Of one that may only read, nothing could be stored.
#[test]
fn who_may_only_read_gets_no_lease() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    open(&path, "").set("key", "value").expect("a write");
    let cache = Cache::open(&format!("file://{}?mode=ro", path.display())).expect("a cache");
    let error = cache.lease("key").expect_err("it writes nothing").to_string();
    assert!(error.contains("lease"), "{error}");
}

/// A clearing removes expired entries as well: they would come back if the clock were set back.
#[test]
fn the_clearing_of_a_namespace_leaves_nothing_of_it_and_all_of_others() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let (one, other, none) = (open(&path, "one"), open(&path, "other"), open(&path, ""));
    for number in 0..2_000_u32 {
        let key = number.to_le_bytes();
        for cache in [&one, &other, &none] {
            cache.set(key, "value").expect("a write");
        }
    }
    let keys = |cache: &Cache| cache.keys().collect::<Result<Vec<_>, _>>().expect("keys").len();
    let (others, without) = (keys(&other), keys(&none));
    assert!(keys(&one) > 0 && others > 0 && without > 0);
    one.clear().expect("a clearing");
    assert_eq!((keys(&one), keys(&other), keys(&none)), (0, others, without));
}

/// Two processes: one computes, and the other deletes and ends.
#[test]
fn a_removal_by_a_process_that_has_ended_counts() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let cache = open(&path, "");
    let value = cache.get_or_compute("key", None, || {
        let mut child =
            child::start("leases::deleter", &[("HAYPILE_TEST_PATH", path.display().to_string())]);
        assert!(child.wait().expect("its end").success());
        b"old".to_vec()
    });
    assert_eq!(value.expect("a value"), b"old");
    assert_eq!(get(&cache, "key"), None);
}

#[test]
#[ignore = "another test starts it"]
fn deleter() {
    let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
        return;
    };
    assert!(!open(Path::new(&path), "").delete("key").expect("a deletion"));
}

#[cfg(feature = "crash-points")]
mod steps {
    use std::io::{BufRead, BufReader, Write};

    use haypile::Error;
    use rustix::process::{Pid, Signal, kill_process};

    use super::*;
    use crate::stop::is_stopped;

    /// Takes a lease, says so, waits to be told to go on, and stores the old value.
    #[test]
    #[ignore = "another test starts it"]
    fn computer() {
        let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
            return;
        };
        let cache =
            open(Path::new(&path), &child::variable("HAYPILE_TEST_NAMESPACE").expect("one"));
        let lease = cache.lease("key").expect("a lease");
        println!("leased");
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).expect("a line");
        // Whatever comes of it.
        let _ = cache.write("key", "old", SetOptions::leased(lease));
    }

    /// The steps of a write under a lease.
    const WRITING: &[&str] = &[
        "append.locked",
        "append.lengths-written",
        "append.reserved",
        "append.half-filled",
        "append.filled",
        "bucket.locked",
        "set.counted",
        "set.published",
    ];

    /// One stores at each step of another's removal. If the removal has succeeded, the value does not stay.
    #[test]
    fn a_computer_that_is_stopped_at_any_step_undoes_no_removal() {
        for namespace in ["", "spaced"] {
            for (name, remove) in [
                (
                    "delete",
                    (|cache| cache.delete("key").map(drop)) as fn(&Cache) -> Result<(), Error>,
                ),
                ("clear", |cache| cache.clear()),
            ] {
                for step in WRITING {
                    let directory = tempfile::tempdir().expect("a directory");
                    let path = directory.path().join("cache");
                    let cache = open(&path, namespace);
                    let variables = [
                        ("HAYPILE_TEST_PATH", path.display().to_string()),
                        ("HAYPILE_TEST_NAMESPACE", namespace.to_owned()),
                        ("HAYPILE_STOP_AT", (*step).to_owned()),
                    ];
                    let mut child = child::start_with_input("leases::steps::computer", &variables);
                    let output = child.stdout.as_mut().expect("a pipe");
                    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
                    assert!(lines.any(|line| line.ends_with("leased")), "it takes a lease");
                    child.stdin.take().expect("a pipe").write_all(b"go\n").expect("it reads");
                    assert!(is_stopped(&child), "it comes to {step}");
                    // While the bucket's lock is held, it fails; a clearing is noted by then, which refuses the value.
                    let removed = remove(&cache);
                    let is_busy = matches!(removed, Err(Error::Busy { .. }));
                    kill_process(Pid::from_child(&child), Signal::CONT).expect("it is there");
                    assert!(child.wait().expect("its end").success());
                    let what = format!("{name} at {step}, namespace '{namespace}'");
                    if is_busy {
                        let left = get(&cache, "key");
                        assert!(left.is_none_or(|value| value == b"old"), "{what}");
                    } else {
                        removed.expect(&what);
                        assert_eq!(get(&cache, "key"), None, "{what}");
                    }
                }
            }
        }
    }

    #[test]
    #[ignore = "another test starts it"]
    fn remover() {
        let Some(path) = child::variable("HAYPILE_TEST_PATH") else {
            return;
        };
        let cache =
            open(Path::new(&path), &child::variable("HAYPILE_TEST_NAMESPACE").expect("one"));
        let removed = match child::variable("HAYPILE_TEST_REMOVAL").expect("one").as_str() {
            "delete" => cache.delete("key").map(drop),
            _ => cache.clear(),
        };
        removed.expect("it is removed");
    }

    /// A removal that was killed has not returned. What it has removed is not undone, and what it has not stays.
    #[test]
    fn a_removal_that_is_killed_at_any_step_is_done_or_not() {
        let steps = ["bucket.locked", "removal.counted", "removal.noted", "bucket.emptied"];
        let deletion = [("delete", "delete.emptied"), ("clear", "clear.emptied")];
        let removals = [("delete", ""), ("delete", "spaced"), ("clear", "spaced")];
        for (removal, namespace) in removals {
            let last = deletion.iter().find(|(name, _)| *name == removal).expect("one").1;
            for step in steps.into_iter().chain([last]) {
                let directory = tempfile::tempdir().expect("a directory");
                let path = directory.path().join("cache");
                let cache = open(&path, namespace);
                cache.set("key", "before").expect("a write");
                let lease = cache.lease("key").expect("a lease");
                let mut child = child::start(
                    "leases::steps::remover",
                    &[
                        ("HAYPILE_TEST_PATH", path.display().to_string()),
                        ("HAYPILE_TEST_NAMESPACE", namespace.to_owned()),
                        ("HAYPILE_TEST_REMOVAL", removal.to_owned()),
                        // A clearing comes to the lock of many buckets before.
                        ("HAYPILE_CRASH_AT", step.to_owned()),
                    ],
                );
                assert!(!child.wait().expect("its end").success(), "it comes to {step}");
                let what = format!("{removal} at {step}, namespace '{namespace}'");
                let is_there = get(&cache, "key").is_some();
                let written = cache.write("key", "old", SetOptions::leased(lease)).expect("one");
                assert!(is_there || written == Written::Revoked, "{what}: {written:?}");
                // All goes on.
                cache.delete("key").expect("a deletion");
                let lease = cache.lease("key").expect("a lease");
                let written = cache.write("key", "next", SetOptions::leased(lease)).expect("one");
                assert!(written.is_stored(), "{what}");
            }
        }
    }
}

/// Bytes of a file, of any content.
#[test]
fn removals_of_garbage_refuse_and_do_no_harm() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let cache = open(&path, "");
    let lease = cache.lease("key").expect("a lease");
    drop(cache);
    let mut bytes = fs::read(&path).expect("its bytes");
    let removals = Places::of(&bytes).removals;
    for (at, byte) in bytes[removals].iter_mut().enumerate() {
        // Counts that are far behind their notes, or before them.
        *byte = if at % 64 < 8 { 0x15 } else { u8::try_from(at % 251).expect("less than 256") };
    }
    fs::write(&path, &bytes).expect("it is written");
    let cache = open(&path, "");
    assert_eq!(
        cache.write("key", "old", SetOptions::leased(lease)).expect("one"),
        Written::Revoked
    );
    for number in 0..100_u32 {
        let key = number.to_le_bytes();
        cache.set(key, "value").expect("a write");
        assert!(cache.delete(key).expect("a deletion"));
        let lease = cache.lease(key).expect("a lease");
        cache.delete(key).expect("a deletion");
        let written = cache.write(key, "old", SetOptions::leased(lease)).expect("one");
        assert_eq!(written, Written::Revoked);
    }
}
