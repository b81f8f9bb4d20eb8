//! `mode=copy` of a file that others go on changing.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haypile::{ManualClock, Registry, SetOptions, Store};

use crate::work;

const SECOND: Duration = Duration::from_secs(1);

fn open(path: &Path, options: &str) -> Arc<dyn Store> {
    Registry::new().open(&format!("file://{}?{options}", path.display())).expect("a store")
}

/// A copy whose second ends when the clock is told to.
fn copy(path: &Path) -> (Arc<dyn Store>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    let registry = Registry::new().with_clock(Arc::clone(&clock) as _);
    let url = format!("file://{}?mode=copy", path.display());
    (registry.open(&url).expect("a store"), clock)
}

fn set(store: &dyn Store, key: &[u8], value: &[u8]) {
    assert!(store.set(key, value, &SetOptions::set()).expect("a write").is_stored());
}

fn get(store: &dyn Store, key: &[u8]) -> Option<Vec<u8>> {
    store.get(key).expect("a read")
}

#[test]
fn a_copy_is_at_most_a_second_old() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let owner = open(&path, "size=1MiB");
    set(&*owner, b"changed", b"one");
    set(&*owner, b"deleted", b"there");
    let (copy, clock) = copy(&path);
    assert_eq!(get(&*copy, b"changed").as_deref(), Some(&b"one"[..]));
    assert!(copy.contains(b"deleted").expect("a read"));
    for round in 0..3_u64 {
        set(&*owner, b"changed", &round.to_le_bytes());
        clock.advance(SECOND);
        assert_eq!(get(&*copy, b"changed").as_deref(), Some(&round.to_le_bytes()[..]));
    }
    assert!(owner.delete(b"deleted").expect("a deletion"));
    clock.advance(SECOND);
    assert!(!copy.contains(b"deleted").expect("a read"));
    assert_eq!(copy.len().expect("a count"), 1);
    owner.clear().expect("a clearing");
    clock.advance(SECOND);
    assert_eq!((get(&*copy, b"changed"), copy.len().expect("a count")), (None, 0));
}

#[test]
fn a_copy_finds_what_has_moved_or_is_new_since_it_read_the_index() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let owner = open(&path, "size=1MiB");
    set(&*owner, b"kept", &work::value(0, 300));
    // The clock stands still.
    let (copy, _clock) = copy(&path);
    for round in 0..5_u64 {
        assert_eq!(get(&*copy, b"kept"), Some(work::value(0, 300)), "{round}");
        // Everything is written over several times, and what is read stays.
        for number in 0..6_000 {
            set(&*owner, &(round << 32 | number).to_le_bytes(), &work::value(number, 900));
            assert!(number % 16 > 0 || get(&*owner, b"kept").is_some(), "it is in use");
        }
        for number in 5_990..6_000 {
            let found = get(&*copy, &(round << 32 | number).to_le_bytes());
            assert_eq!(found, Some(work::value(number, 900)), "{number} in {round}");
        }
    }
}

#[test]
fn a_copy_follows_the_path() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("cache");
    let owner = open(&path, "size=1MiB");
    set(&*owner, b"key", b"of the first");
    let (copy, clock) = copy(&path);
    assert_eq!(get(&*copy, b"key").as_deref(), Some(&b"of the first"[..]));
    let second = open(&path, "size=2MiB&recreate=yes");
    set(&*second, b"key", b"of the second");
    clock.advance(SECOND);
    assert_eq!(get(&*copy, b"key").as_deref(), Some(&b"of the second"[..]));
    assert!(copy.limits().capacity_bytes > Some(1 << 20));
    fs::remove_file(&path).expect("removed");
    clock.advance(SECOND);
    assert_eq!(get(&*copy, b"key").as_deref(), Some(&b"of the second"[..]), "it is in use");
    let third = open(&path, "size=1MiB&compress=lz4");
    set(&*third, b"key", b"of the third");
    for _ in 0..2 {
        clock.advance(SECOND);
        let error = copy.get(b"key").expect_err("another compression").to_string();
        assert!(error.contains("made with compress=lz4"), "{error}");
    }
    let other = directory.path().join("other");
    fs::write(&other, "not a cache").expect("written");
    fs::rename(&other, &path).expect("renamed");
    clock.advance(SECOND);
    assert!(copy.get(b"key").is_err());
    fs::remove_file(&path).expect("removed");
    set(&*open(&path, "size=1MiB"), b"key", b"of the fourth");
    clock.advance(SECOND);
    assert_eq!(get(&*copy, b"key").as_deref(), Some(&b"of the fourth"[..]));
}
