//! `write=back`.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haypile::{Durability, Error, ManualClock, SetOptions, Store, Written};

use crate::hooked::{Hooked, failure};
use crate::{LONG, get, memory, options, set, tier};

struct Pair {
    clock: Arc<ManualClock>,
    upper: Arc<dyn Store>,
    lower: Arc<Hooked>,
    store: Arc<dyn Store>,
}

/// The writing thread is blocked: writes stay pending until the test ends that.
fn pair(write_max_bytes: u64) -> Pair {
    let clock = Arc::new(ManualClock::new());
    let upper = memory(64 << 10, &clock);
    let lower = Hooked::new(&memory(64 << 10, &clock));
    let below = Arc::clone(&lower) as Arc<dyn Store>;
    works(&lower);
    let options = options(LONG).write_back(Some(write_max_bytes));
    let store = Arc::new(tier(&upper, &below, options, &clock));
    Pair { clock, upper, lower, store }
}

fn works(lower: &Hooked) {
    lower.hook(|_| {
        if thread::current().name() == Some("haypile-write") { Err(failure()) } else { Ok(()) }
    });
}

fn sets(store: &dyn Store) -> u64 {
    store.stats().unwrap().sets
}

#[test]
fn what_waits_is_seen_and_is_written_once() {
    let Pair { upper, lower, store, .. } = pair(1 << 20);
    for value in ["1", "2", "3"] {
        set(&*store, "key", value);
    }
    assert_eq!(get(&*lower, "key"), None);
    assert_eq!(get(&*store, "key").unwrap(), "3");
    // Even if the upper level does not have the key.
    upper.clear().unwrap();
    assert_eq!(get(&*store, "key").unwrap(), "3");
    assert_eq!(&*store.get_pinned(b"key").unwrap().unwrap(), b"3");
    assert_eq!(store.get_many(&[b"key"]).unwrap()[0].as_ref().unwrap().0, b"3");
    assert!(store.contains(b"key").unwrap());
    assert_eq!((sets(&*lower), sets(&*store)), (0, 3));
    store.flush(Durability::Visible).unwrap();
    assert_eq!(get(&*lower, "key").unwrap(), "3");
    assert_eq!((sets(&*lower), sets(&*store)), (1, 3));
}

#[test]
fn what_counts_entries_writes_first() {
    let Pair { store, .. } = pair(1 << 20);
    set(&*store, "1", "");
    assert_eq!(store.len().unwrap(), 1);
    set(&*store, "2", "");
    assert_eq!(store.keys(haypile::Cursor::default(), 100).unwrap().keys.len(), 2);
    let bytes = store.bytes().unwrap();
    set(&*store, "3", "");
    assert!(store.bytes().unwrap() > bytes);
    assert!(!store.is_empty().unwrap());
}

#[test]
fn what_the_last_level_judges_is_written_first() {
    let Pair { lower, store, .. } = pair(1 << 20);
    let set = |value: &str| set(&*store, "key", value);
    set("1");
    assert_eq!(store.set(b"key", b"", &SetOptions::add()).unwrap(), Written::Exists);
    assert_eq!(get(&*lower, "key").unwrap(), "1");
    set("2");
    assert_eq!(store.set(b"key", b"3", &SetOptions::replace()).unwrap(), Written::Stored);
    assert_eq!(get(&*lower, "key").unwrap(), "3");
    set("4");
    assert_eq!(store.incr(b"key", 1).unwrap(), Some(5));
    set("6");
    assert_eq!(store.decr(b"key", 1).unwrap(), Some(5));
    set("7");
    assert!(store.touch(b"key", LONG.into()).unwrap());
    assert_eq!(get(&*lower, "key").unwrap(), "7");
    set("8");
    let hit = store.get_versioned_into(b"key", &mut Vec::new()).unwrap().unwrap();
    let cas = SetOptions::cas(hit.version.unwrap());
    set("9");
    assert_eq!(store.set(b"key", b"", &cas).unwrap(), Written::Changed);
    assert_eq!(get(&*lower, "key").unwrap(), "9");
    let hit = store.get_versioned_into(b"key", &mut Vec::new()).unwrap().unwrap();
    set("9 again");
    assert!(!store.delete_version(b"key", hit.version.unwrap()).unwrap());
    assert_eq!(get(&*lower, "key").unwrap(), "9 again");
    let mut reservation = store.reserve(b"key", 2, &SetOptions::set()).unwrap();
    reservation.buffer().copy_from_slice(b"10");
    set("11");
    assert_eq!(reservation.commit().unwrap(), Written::Stored);
    assert_eq!((get(&*lower, "key"), get(&*store, "key")), (Some("10".into()), Some("10".into())));
}

#[test]
fn what_is_deleted_while_it_waits_is_not_written() {
    let Pair { lower, store, .. } = pair(1 << 20);
    set(&*store, "key", "1");
    assert!(store.delete(b"key").unwrap());
    assert!(!store.delete(b"key").unwrap());
    set(&*store, "key", "2");
    store.clear().unwrap();
    assert_eq!(get(&*store, "key"), None);
    store.flush(Durability::Visible).unwrap();
    assert_eq!((get(&*lower, "key"), sets(&*lower)), (None, 0));
}

#[test]
fn what_expires_while_it_waits_still_takes_the_place_of_what_is_below() {
    let second = Duration::from_secs(1);
    for ends_by_delete in [false, true] {
        let Pair { clock, lower, store, .. } = pair(1 << 20);
        set(&*lower, "key", "old");
        let short = SetOptions::set().with_ttl(second);
        let _ = store.set(b"key", b"new", &short).unwrap();
        clock.advance(second);
        assert_eq!(get(&*store, "key"), None);
        assert!(store.get_many(&[b"key"]).unwrap()[0].is_none());
        assert!(!store.contains(b"key").unwrap());
        assert_eq!(store.stats().unwrap().misses, 2);
        assert_eq!(get(&*lower, "key").unwrap(), "old");
        if ends_by_delete {
            assert!(!store.delete(b"key").unwrap());
        } else {
            store.flush(Durability::Visible).unwrap();
        }
        assert_eq!(get(&*lower, "key"), None);
    }
}

#[test]
fn where_there_is_no_room_it_is_written_at_once() {
    let Pair { lower, store, .. } = pair(1 << 10);
    let mut waiting = 0;
    for key in 0..20 {
        set(&*store, &key.to_string(), "value");
        waiting += u64::from(get(&*lower, &key.to_string()).is_none());
    }
    assert_eq!(waiting, (1 << 10) / (160 + 1 + 5));
    // Even in the place of a pending write.
    let large = "x".repeat(1 << 10);
    set(&*store, "0", &large);
    assert_eq!(get(&*lower, "0").unwrap(), large);
    store.flush(Durability::Visible).unwrap();
    assert_eq!(get(&*lower, "0").unwrap(), large);
    assert_eq!(store.len().unwrap(), 20);
}

#[test]
fn a_value_that_is_too_large_below_is_refused_at_once() {
    let Pair { store, .. } = pair(1 << 20);
    set(&*store, "key", "old");
    let result = store.set(b"key", &vec![0; 100_000], &SetOptions::set());
    assert!(matches!(result, Err(Error::ValueTooLarge { .. })));
    assert_eq!(get(&*store, "key").unwrap(), "old");
}

#[test]
fn a_lower_level_that_fails_gets_it_later() {
    let Pair { lower, store, .. } = pair(1 << 20);
    lower.fails(true);
    set(&*store, "key", "value");
    assert!(matches!(store.flush(Durability::Visible), Err(Error::Backend { .. })));
    assert!(matches!(store.incr(b"key", 1), Err(Error::Backend { .. })));
    assert_eq!(get(&*store, "key").unwrap(), "value");
    let versioned = store.get_versioned_into(b"key", &mut Vec::new());
    assert!(matches!(versioned, Err(Error::Backend { .. })));
    works(&lower);
    store.flush(Durability::Visible).unwrap();
    assert_eq!(get(&*lower, "key").unwrap(), "value");
}

#[test]
fn what_waits_is_written_at_the_end() {
    for closes in [false, true] {
        let Pair { clock, lower, store, .. } = pair(1 << 20);
        let kept = Hooked::new(&(lower as Arc<dyn Store>));
        let below = Arc::clone(&kept) as Arc<dyn Store>;
        drop(store);
        let options = options(LONG).write_back(Some(1 << 20));
        let store = tier(&memory(64 << 10, &clock), &below, options, &clock);
        set(&store, "key", "value");
        if closes {
            store.close().unwrap();
            assert_eq!(sets(&store), 1);
        } else {
            drop(store);
            assert_eq!(get(&*kept, "key").unwrap(), "value");
        }
        assert_eq!(sets(&*kept), 1);
    }
}

#[test]
fn what_cannot_be_written_at_the_end_is_lost_and_said_to_be() {
    let Pair { lower, store, .. } = pair(1 << 20);
    lower.fails(true);
    set(&*store, "1", "value");
    set(&*store, "2", "value");
    assert!(matches!(store.close(), Err(Error::Backend { .. })));
    let warnings = store.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("2 accepted writes"), "{warnings:?}");
    store.close().unwrap();
}

#[test]
fn what_is_refused_for_good_is_lost_and_what_it_replaced_does_not_come_back() {
    let clock = Arc::new(ManualClock::new());
    let inner = memory(64 << 10, &clock);
    let hooked = Hooked::new(&inner);
    works(&hooked);
    let below = Arc::clone(&hooked) as Arc<dyn Store>;
    let options = options(LONG).write_back(Some(1 << 20));
    let store = tier(&memory(64 << 10, &clock), &below, options, &clock);
    set(&*inner, "key", "old");
    set(&store, "key", &"x".repeat(10_000));
    set(&store, "other", "value");
    inner.resize(2 << 10).unwrap();
    assert!(matches!(store.flush(Durability::Visible), Err(Error::ValueTooLarge { .. })));
    assert_eq!((get(&store, "key"), get(&*inner, "key")), (None, None));
    assert_eq!(get(&*inner, "other").unwrap(), "value");
    let warnings = store.warnings();
    assert!(warnings[0].contains("1 accepted writes"), "{warnings:?}");
    store.flush(Durability::Visible).unwrap();
}

#[test]
fn a_thread_writes_by_itself_also_after_failures() {
    let Pair { lower, store, .. } = pair(1 << 20);
    set(&*store, "1", "value");
    set(&*store, "2", "value");
    lower.fails(false);
    // The thread tries again within a tenth of a second; nothing else writes.
    while sets(&*lower) < 2 {
        thread::yield_now();
    }
    assert_eq!(get(&*lower, "2").unwrap(), "value");
}

/// The file counts milliseconds, the copy in front nanoseconds.
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
#[test]
fn what_has_expired_below_before_its_copy_is_not_found_again_after_a_miss() {
    let micros = Duration::from_micros;
    let clock = Arc::new(ManualClock::new());
    let directory = tempfile::tempdir().unwrap();
    let url = format!("file://{}?size=1MiB", directory.path().join("lower").display());
    let lower = haypile::Registry::new().with_clock(clock.clone()).open(&url).unwrap();
    let options = options(LONG).write_back(Some(1 << 20));
    let store = tier(&memory(64 << 10, &clock), &lower, options, &clock);
    clock.advance(micros(900));
    let ttl = SetOptions::set().with_ttl(micros(300));
    assert!(store.set(b"key", b"value", &ttl).unwrap().is_stored());
    store.flush(Durability::Visible).unwrap();
    clock.advance(micros(150));
    assert!(store.get_versioned_into(b"key", &mut Vec::new()).unwrap().is_none());
    assert_eq!(get(&store, "key"), None);
    assert!(!store.contains(b"key").unwrap());
}
