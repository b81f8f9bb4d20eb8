//! A level that fails.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use haypile::{Cache, Error, ManualClock, SetOptions, Store, Ttl};

use crate::hooked::{Hooked, When, failure};
use crate::{LONG, get, memory, options, set, tier};

type Write = fn(&dyn Store) -> haypile::Result<()>;

struct Pair {
    upper: Arc<Hooked>,
    lower: Arc<Hooked>,
    store: Arc<dyn Store>,
}

fn pair() -> Pair {
    let clock = Arc::new(ManualClock::new());
    let hooked = || Hooked::new(&memory(64 << 10, &clock));
    let (upper, lower) = (hooked(), hooked());
    let levels = [Arc::clone(&upper) as Arc<dyn Store>, Arc::clone(&lower) as Arc<dyn Store>];
    let store = Arc::new(tier(&levels[0], &levels[1], options(LONG), &clock));
    Pair { upper, lower, store }
}

#[test]
fn a_hit_in_front_does_not_notice_that_the_lower_level_fails() {
    let Pair { lower, store, .. } = pair();
    set(&*store, "key", "value");
    lower.fails(true);
    assert_eq!(get(&*store, "key").unwrap(), "value");
    assert_eq!(&*store.get_pinned(b"key").unwrap().unwrap(), b"value");
    assert!(store.contains(b"key").unwrap());
    let found = store.get_many(&[b"key", b"other"]).unwrap();
    assert_eq!(found[0].as_ref().unwrap().0, b"value");
    assert!(found[1].is_none());
    let versioned = store.get_versioned_into(b"key", &mut Vec::new());
    assert!(matches!(versioned, Err(Error::Backend { .. })));
    let cache = Cache::new(store);
    let value = cache.get_or_compute("key", None, || panic!("computed what is in front"));
    assert_eq!(value.unwrap(), b"value");
    assert_eq!(cache.get_or_compute("new", None, || b"computed".to_vec()).unwrap(), b"computed");
    assert_eq!(cache.compute_stats().refused_values, 1);
}

#[test]
fn a_miss_whose_lower_level_fails_is_a_miss_that_is_counted_and_warned_of() {
    let Pair { lower, store, .. } = pair();
    set(&*lower, "key", "value");
    lower.fails(true);
    assert_eq!(get(&*store, "key"), None);
    assert!(store.get_many(&[b"key", b"other"]).unwrap().iter().all(Option::is_none));
    assert!(!store.contains(b"key").unwrap());
    let stats = store.stats().unwrap();
    assert_eq!((stats.hits, stats.misses), (0, 3));
    let warnings = store.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("3 reads of the lower level failed"), "{warnings:?}");
    assert!(warnings[0].contains("connection refused"), "{warnings:?}");
    lower.fails(false);
    assert_eq!(get(&*store, "key").unwrap(), "value");
}

#[test]
fn a_write_that_fails_is_an_error_and_leaves_nothing_in_front() {
    let writes: [(&str, Write); 7] = [
        ("set", |store| store.set(b"key", b"2", &SetOptions::set()).map(drop)),
        ("set", |store| store.set_many(&[(b"key", b"2", SetOptions::set())]).remove(0).map(drop)),
        ("delete", |store| store.delete(b"key").map(drop)),
        ("delete", |store| store.delete_many(&[b"key"]).remove(0).map(drop)),
        ("incr", |store| store.incr(b"key", 1).map(drop)),
        ("touch", |store| store.touch(b"key", Ttl::After(LONG)).map(drop)),
        ("clear", |store| store.clear()),
    ];
    for (operation, write) in writes {
        for when in [When::Before(operation), When::After(operation)] {
            let Pair { lower, store, .. } = pair();
            set(&*store, "key", "1");
            lower.hook(move |at| if at == when { Err(failure()) } else { Ok(()) });
            assert!(matches!(write(&*store), Err(Error::Backend { .. })), "{when:?}");
            // A read reveals the outcome.
            assert_eq!(get(&*store, "key"), get(&*lower, "key"), "{when:?}");
            let happened = matches!(when, When::After(_)) && operation != "touch";
            assert_eq!(get(&*store, "key").as_deref() != Some("1"), happened, "{when:?}");
        }
    }
}

#[test]
fn a_front_that_fails_is_done_without() {
    let Pair { upper, store, .. } = pair();
    set(&*store, "key", "1");
    upper.fails(true);
    assert_eq!(get(&*store, "key").unwrap(), "1");
    assert_eq!(store.get_many(&[b"key"]).unwrap()[0].as_ref().unwrap().0, b"1");
    assert!(store.contains(b"key").unwrap());
    assert_eq!(store.incr(b"key", 1).unwrap(), Some(2));
    assert!(store.delete(b"key").unwrap());
    set(&*store, "key", "3");
    assert_eq!(get(&*store, "key").unwrap(), "3");
    store.clear().unwrap();
    assert_eq!(get(&*store, "key"), None);
    let warnings = store.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("operations on the upper level failed"), "{warnings:?}");
}

#[test]
fn other_errors_of_the_lower_level_are_the_callers() {
    let Pair { store, .. } = pair();
    let key = vec![0; 70_000];
    assert!(matches!(store.get(&key), Err(Error::KeyTooLong { .. })));
    assert!(matches!(store.get_many(&[&key]), Err(Error::KeyTooLong { .. })));
    set(&*store, "key", "text");
    assert!(matches!(store.incr(b"key", 1), Err(Error::NotACounter { .. })));
    assert_eq!(get(&*store, "key").unwrap(), "text");
    let zero = SetOptions::set().with_ttl(std::time::Duration::ZERO);
    assert!(matches!(store.set(b"key", b"", &zero), Err(Error::ZeroTtl)));
    assert_eq!(get(&*store, "key").unwrap(), "text");
    assert!(store.warnings().is_empty());
}

#[test]
fn a_copy_that_fails_leaves_no_earlier_value_of_the_same_call() {
    let Pair { upper, store, .. } = pair();
    let copies = AtomicUsize::new(0);
    upper.hook(move |when| {
        let is_second = when == When::Before("reserve") && copies.fetch_add(1, Relaxed) > 0;
        if is_second { Err(failure()) } else { Ok(()) }
    });
    let entries: [(&[u8], &[u8], SetOptions); 3] = [
        (b"other", b"0", SetOptions::set()),
        (b"key", b"1", SetOptions::set()),
        (b"key", b"2", SetOptions::set()),
    ];
    assert!(store.set_many(&entries).into_iter().all(|written| written.unwrap().is_stored()));
    assert!(upper.contains(b"other").unwrap() && !upper.contains(b"key").unwrap());
    assert_eq!(get(&*store, "key").unwrap(), "2");
}

/// Of a write that fails, nobody knows whether it has happened.
#[test]
fn a_failed_write_leaves_no_copy_of_an_earlier_one_of_the_same_call() {
    let Pair { upper, lower, store } = pair();
    let writes = AtomicUsize::new(0);
    lower.hook(move |when| {
        let is_second = when == When::After("set") && writes.fetch_add(1, Relaxed) > 0;
        if is_second { Err(failure()) } else { Ok(()) }
    });
    let entries: [(&[u8], &[u8], SetOptions); 2] =
        [(b"key", b"1", SetOptions::set()), (b"key", b"2", SetOptions::set())];
    let written = store.set_many(&entries);
    assert!(matches!(&written[..], [Ok(_), Err(Error::Backend { .. })]), "{written:?}");
    assert!(!upper.contains(b"key").unwrap());
    assert_eq!(get(&*store, "key").unwrap(), "2");
}
