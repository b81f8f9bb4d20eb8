//! `none://` accepts everything and holds nothing.

use haypile::{Cache, Durability, Error, SetOptions, Version, Written};

#[test]
fn nothing_is_retained() {
    let cache = Cache::open("none://").unwrap();
    cache.set("key", "value").unwrap();
    assert_eq!(cache.get("key").unwrap(), None);
    assert!(cache.add("key", "value").unwrap());
    assert!(!cache.replace("key", "value").unwrap());
    assert_eq!(cache.cas("key", "value", Version::from_raw(1)).unwrap(), Written::Absent);
    assert!(!cache.delete("key").unwrap());
    assert!(!cache.store().delete_version(b"key", Version::from_raw(1)).unwrap());
    assert!(!cache.contains("key").unwrap());
    assert_eq!(cache.incr("key", 1).unwrap(), None);
    assert_eq!(cache.keys().count(), 0);
    let stats = cache.store().stats().unwrap();
    assert_eq!((stats.misses, stats.sets, stats.declined, stats.bytes), (1, 2, 2, 0));
    assert_eq!((stats.deletes, stats.delete_misses), (0, 2));
}

#[test]
fn a_reservation_commits_into_nothing() {
    let cache = Cache::open("none:").unwrap();
    let mut write = cache.store().reserve(b"key", 3, &SetOptions::set()).unwrap();
    write.buffer().copy_from_slice(b"abc");
    assert_eq!(write.commit().unwrap(), Written::Stored);
    assert!(matches!(
        cache.store().reserve(b"key", usize::MAX, &SetOptions::set()),
        Err(Error::OutOfMemory { bytes: usize::MAX, .. })
    ));
}

#[test]
fn limits_and_closing_hold_here_too() {
    let cache = Cache::open("none:").unwrap();
    assert!(matches!(
        cache.get(vec![0; 65_536]),
        Err(Error::KeyTooLong { limit_bytes: 65_535, .. })
    ));
    cache.store().flush(Durability::Visible).unwrap();
    assert!(matches!(cache.store().flush(Durability::Disk), Err(Error::Unsupported { .. })));
    cache.store().close().unwrap();
    assert!(matches!(cache.set("key", "value"), Err(Error::Closed { .. })));
    assert_eq!(cache.stats().unwrap().sets, 0);
}
