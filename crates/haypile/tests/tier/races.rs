//! Races with a read or a write in the lower level.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use haypile::memory::MemoryBuilder;
use haypile::tier::TieredStore;
use haypile::{ManualClock, SetOptions, Store, SystemClock, Ttl};

use crate::hooked::{Hooked, When};
use crate::{LONG, get, memory, options, set, tier};

type Read = fn(&dyn Store) -> Option<Vec<u8>>;

struct Pair {
    upper: Arc<dyn Store>,
    lower: Arc<Hooked>,
    /// The lower level without hooks, as another process uses it.
    elsewhere: Arc<dyn Store>,
    store: Arc<dyn Store>,
}

fn pair() -> Pair {
    let clock = Arc::new(ManualClock::new());
    let (upper, elsewhere) = (memory(64 << 10, &clock), memory(64 << 10, &clock));
    let lower = Hooked::new(&elsewhere);
    let below = Arc::clone(&lower) as Arc<dyn Store>;
    let store = Arc::new(tier(&upper, &below, options(LONG), &clock));
    Pair { upper, lower, elsewhere, store }
}

#[test]
fn a_value_that_is_changed_after_it_was_read_is_not_promoted() {
    let changes: [fn(&dyn Store); 9] = [
        |store| set(store, "key", "2"),
        |store| assert!(store.set(b"key", b"2", &SetOptions::replace()).unwrap().is_stored()),
        |store| drop(store.set_many(&[(b"key", b"2", SetOptions::set())])),
        |store| assert!(store.delete(b"key").unwrap()),
        |store| drop(store.delete_many(&[b"key"])),
        |store| assert_eq!(store.incr(b"key", 1).unwrap(), Some(2)),
        |store| assert_eq!(store.decr(b"key", 1).unwrap(), Some(0)),
        |store| {
            let mut reservation = store.reserve(b"key", 1, &SetOptions::set()).unwrap();
            reservation.buffer().copy_from_slice(b"2");
            let _ = reservation.commit().unwrap();
        },
        |store| store.clear().unwrap(),
    ];
    let reads: [Read; 3] = [
        |store| store.get(b"key").unwrap(),
        |store| store.get_pinned(b"key").unwrap().map(|value| value.to_vec()),
        |store| store.get_many(&[b"key"]).unwrap().remove(0).map(|(value, _)| value),
    ];
    for change in changes {
        for read in reads {
            let Pair { lower, elsewhere, store, .. } = pair();
            set(&*elsewhere, "key", "1");
            let writer = Arc::clone(&store);
            lower.once(When::After("get"), move || change(&*writer));
            assert_eq!(read(&*store).unwrap(), b"1");
            assert_eq!(get(&*store, "key"), get(&*elsewhere, "key"));
            assert_ne!(get(&*store, "key").as_deref(), Some("1"));
        }
    }
}

#[test]
fn a_life_that_is_changed_after_it_was_read_is_not_promoted() {
    let Pair { lower, elsewhere, store, .. } = pair();
    set(&*elsewhere, "key", "1");
    let writer = Arc::clone(&store);
    lower
        .once(When::After("get"), move || assert!(writer.touch(b"key", Ttl::After(LONG)).unwrap()));
    assert_eq!(get(&*store, "key").unwrap(), "1");
    let hit = store.get_into(b"key", &mut Vec::new()).unwrap().unwrap();
    assert_eq!(hit.expires_in, Some(LONG));
}

#[test]
fn a_read_during_a_write_is_not_promoted_and_sees_no_copy() {
    for when in [When::Before("set"), When::After("set")] {
        let Pair { upper, lower, store, .. } = pair();
        set(&*store, "key", "1");
        let (reader, read) = (Arc::clone(&store), Arc::new(Mutex::new(None)));
        let (kept, seen) = (Arc::clone(&upper), Arc::clone(&read));
        lower.once(when, move || {
            *seen.lock().unwrap() = get(&*reader, "key");
            assert!(kept.get(b"key").unwrap().is_none());
        });
        set(&*store, "key", "2");
        let below = if when == When::Before("set") { "1" } else { "2" };
        assert_eq!(read.lock().unwrap().as_deref(), Some(below));
        assert_eq!(get(&*store, "key").unwrap(), "2");
    }
}

#[test]
fn of_two_reads_only_the_first_to_end_is_promoted() {
    let Pair { lower, elsewhere, store, .. } = pair();
    set(&*elsewhere, "key", "1");
    let reader = Arc::clone(&store);
    let other_process = Arc::clone(&elsewhere);
    lower.once(When::After("get"), move || {
        set(&*other_process, "key", "2");
        assert_eq!(get(&*reader, "key").unwrap(), "2");
    });
    assert_eq!(get(&*store, "key").unwrap(), "1");
    assert_eq!(get(&*store, "key").unwrap(), "2");
}

/// The older of two values is promoted while the newer one is read.
#[test]
fn of_two_reads_the_one_with_the_newer_value_leaves_no_older_copy() {
    let Pair { upper, lower, elsewhere, store } = pair();
    set(&*elsewhere, "key", "1");
    let (reader, other_process) = (Arc::clone(&store), Arc::clone(&elsewhere));
    lower.once(When::Before("get"), move || {
        assert_eq!(get(&*reader, "key").unwrap(), "1");
        set(&*other_process, "key", "2");
    });
    assert_eq!(get(&*store, "key").unwrap(), "2");
    assert_eq!(upper.len().unwrap(), 0);
    assert_eq!(get(&*store, "key").unwrap(), "2");
    // A copy of the same value stays.
    upper.clear().unwrap();
    let reader = Arc::clone(&store);
    lower.once(When::Before("get"), move || drop(get(&*reader, "key")));
    assert_eq!(get(&*store, "key").unwrap(), "2");
    assert_eq!(upper.len().unwrap(), 1);
}

#[test]
fn a_write_that_was_overwritten_and_read_before_it_ends_has_no_copy() {
    let Pair { lower, elsewhere, store, .. } = pair();
    let (reader, other_process) = (Arc::clone(&store), Arc::clone(&elsewhere));
    lower.once(When::After("set"), move || {
        set(&*other_process, "key", "3");
        assert_eq!(get(&*reader, "key").unwrap(), "3");
    });
    set(&*store, "key", "2");
    assert_eq!(get(&*store, "key").unwrap(), "3");
}

#[test]
fn keys_that_are_written_together_and_in_any_order_do_not_wait_for_ever() {
    let store = &pair().store;
    let names: Vec<Vec<u8>> = (0..600_u32).map(|key| key.to_le_bytes().to_vec()).collect();
    let (forth, back): (Vec<&[u8]>, Vec<&[u8]>) = (
        names.iter().map(Vec::as_slice).collect(),
        names.iter().rev().map(Vec::as_slice).collect(),
    );
    thread::scope(|scope| {
        for keys in [&forth, &back] {
            scope.spawn(move || {
                for _ in 0..20 {
                    let entries: Vec<_> =
                        keys.iter().map(|key| (*key, *key, SetOptions::set())).collect();
                    assert!(store.set_many(&entries).iter().all(Result::is_ok));
                    store.delete_many(keys);
                    store.clear().unwrap();
                }
            });
        }
    });
}

/// Each key has one writer, which counts up; nobody sees a number decrease, nor one before the last
/// that was written when the read began.
#[test]
fn numbers_never_go_down() {
    const KEYS: usize = 4;
    for write_max_bytes in [None, Some(700), Some(1 << 20)] {
        // The upper level has room for two of the keys.
        let (upper, lower) = (small(600), small(64 << 10));
        let options = options(LONG).write_back(write_max_bytes);
        let store = TieredStore::new(upper, lower, options, Arc::new(SystemClock::new()));
        let (store, ends) = (&store, &AtomicBool::new(false));
        let written = &[const { AtomicU64::new(0) }; KEYS];
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(move || {
                    let mut last = [0; KEYS];
                    let mut key = 0;
                    while !ends.load(Ordering::Relaxed) {
                        key = (key + 1) % KEYS;
                        let bound = written[key].load(Ordering::Acquire).max(last[key]);
                        let number = store.get(&[b'k', u8::try_from(key).unwrap()]).unwrap();
                        let number = number
                            .map_or(0, |number| u64::from_le_bytes(number.try_into().unwrap()));
                        assert!(number >= bound, "{number} of {key} after {bound}");
                        last[key] = number;
                    }
                });
            }
            let writers: Vec<_> = (0..2)
                .map(|writer| {
                    scope.spawn(move || {
                        for number in 1..3_000_u64 {
                            for key in [writer, writer + 2] {
                                let name = [b'k', u8::try_from(key).unwrap()];
                                let value = number.to_le_bytes();
                                let _ = store.set(&name, &value, &SetOptions::set()).unwrap();
                                written[key].store(number, Ordering::Release);
                            }
                        }
                    })
                })
                .collect();
            let joined: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
            ends.store(true, Ordering::Relaxed);
            assert!(joined.iter().all(Result::is_ok));
        });
    }
}

fn small(size_bytes: u64) -> Arc<dyn Store> {
    MemoryBuilder::new(size_bytes.max(1 << 10)).shards(Some(1)).store().unwrap()
}
