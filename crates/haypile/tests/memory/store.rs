//! Limits, pages of keys, closing and statistics of a memory store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use haypile::memory::MemoryBuilder;
use haypile::{
    Cache, Cursor, Durability, Error, ManualClock, OpenError, Registry, SetOptions, Ttl, Written,
};
use haypile_policy::rules::memory::charge;

#[test]
fn what_is_too_large_names_the_limit_and_the_old_value_stays() {
    let cache = Cache::open("memory:size=2KiB,policy=lru").unwrap();
    cache.set("key", "old").unwrap();
    let limits = cache.store().limits();
    let limit = limits.max_value_bytes - 3;
    assert!((2_033..=2_048).contains(&charge(3, limit)));
    let error = cache.set("key", vec![0; usize::try_from(limit).unwrap() + 1]).unwrap_err();
    assert!(error.to_string().contains(&format!("at most {limit}")), "{error}");
    assert!(error.to_string().contains("memory://?size=2KiB&policy=lru"), "{error}");
    assert!(cache.store().reserve(b"key", usize::MAX, &SetOptions::set()).is_err());
    assert_eq!(cache.get("key").unwrap().unwrap(), b"old");
    cache.set("key", vec![0; usize::try_from(limit).unwrap()]).unwrap();
    assert_eq!(cache.store().bytes().unwrap(), charge(3, limit));

    let error = cache.set([b'k'; 2_000], "").unwrap_err();
    let Error::KeyTooLong { limit_bytes, .. } = error else { panic!("{error}") };
    assert_eq!(limit_bytes, limits.max_key_bytes);
    assert!(matches!(cache.get(vec![b'k'; 65_536]), Err(Error::KeyTooLong { .. })));
    assert_eq!(cache.get(vec![b'k'; 65_535]).unwrap(), None);
}

#[test]
fn a_counter_that_would_outgrow_the_cache_stays() {
    let cache = Cache::open("memory:size=1KiB").unwrap();
    let longest = cache.store().limits().max_key_bytes;
    let key = vec![b'k'; longest - 1];
    cache.set(&key, "9").unwrap();
    let error = cache.incr(&key, 1).unwrap_err();
    assert!(
        matches!(error, Error::ValueTooLarge { value_bytes: 2, limit_bytes: 1, .. }),
        "{error}"
    );
    assert_eq!(cache.get(&key).unwrap().unwrap(), b"9");
    assert_eq!(cache.decr(&key, 1).unwrap(), Some(8));
    let other = vec![b'l'; longest - 1];
    cache.set(&other, "0").unwrap();
    assert!(matches!(cache.decr(&other, 1), Ok(Some(0))));
    assert!(cache.store().bytes().unwrap() <= 1_024);
}

#[test]
fn a_reservation_that_is_dropped_changes_nothing() {
    let cache = Cache::open("memory:").unwrap();
    cache.set("key", "old").unwrap();
    let mut write = cache.store().reserve(b"key", 3, &SetOptions::set()).unwrap();
    assert_eq!(write.buffer().len(), 3);
    write.buffer().copy_from_slice(b"new");
    assert_eq!(cache.get("key").unwrap().unwrap(), b"old");
    drop(write);
    assert_eq!(cache.get("key").unwrap().unwrap(), b"old");
}

#[test]
fn a_reservation_judges_its_condition_at_commit() {
    let cache = Cache::open("memory:").unwrap();
    let write = cache.store().reserve(b"key", 3, &SetOptions::add()).unwrap();
    cache.set("key", "old").unwrap();
    assert_eq!(write.commit().unwrap(), Written::Exists);
    assert_eq!(cache.get("key").unwrap().unwrap(), b"old");
}

#[test]
fn keys_come_page_by_page_while_entries_leave() {
    let cache = Cache::open("memory:").unwrap();
    let names: BTreeSet<Vec<u8>> = (0..1_000_u32).map(|n| n.to_string().into_bytes()).collect();
    for name in &names {
        cache.set(name, "").unwrap();
    }
    let all: Vec<Vec<u8>> = cache.keys().map(Result::unwrap).collect();
    assert_eq!(all.len(), 1_000);
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), names);

    // A caller may change the cache between two keys.
    for key in cache.keys() {
        cache.delete(key.unwrap()).unwrap();
    }
    assert!(cache.store().is_empty().unwrap());
    let beyond = cache.store().keys(Cursor::new(u64::MAX, 0), usize::MAX).unwrap();
    assert_eq!((beyond.keys.len(), beyond.next), (0, None));
}

#[test]
fn the_ttl_of_the_url_holds_unless_a_write_says_otherwise() {
    let clock = Arc::new(ManualClock::new());
    let registry = Registry::new().with_clock(clock.clone());
    let cache = Cache::new(registry.open("memory:size=1MiB,ttl=500ms").unwrap());
    assert_eq!(cache.store().describe(), "memory://?size=1MiB&policy=s3fifo&ttl=500ms");
    cache.set("of cache", "").unwrap();
    cache.set_with_ttl("never", "", None).unwrap();
    cache.set_with_ttl("longer", "", Duration::from_secs(1)).unwrap();
    assert!(matches!(cache.set_with_ttl("zero", "", Duration::ZERO), Err(Error::ZeroTtl)));
    assert!(matches!(cache.touch("never", Duration::ZERO), Err(Error::ZeroTtl)));

    clock.advance(Duration::from_nanos(499_999_999));
    assert!(cache.contains("of cache").unwrap());
    clock.advance(Duration::from_nanos(1));
    let keys: BTreeSet<Vec<u8>> = cache.keys().map(Result::unwrap).collect();
    assert_eq!(keys, [b"longer".to_vec(), b"never".to_vec()].into());
    assert_eq!(cache.get("of cache").unwrap(), None);
    assert!(cache.touch("never", Ttl::Default).unwrap());
    clock.advance(Duration::from_millis(500));
    assert!(!cache.contains("never").unwrap());
    assert!(cache.add("longer", "again").unwrap());
    assert_eq!(cache.store().stats().unwrap().expired, 3);
}

#[test]
fn expired_entries_leave_before_anything_is_evicted() {
    let clock = Arc::new(ManualClock::new());
    let size = 4 * charge(1, 200);
    let builder = MemoryBuilder::new(size).clock(clock.clone()).policy("lru".parse().unwrap());
    let cache = Cache::new(builder.store().unwrap());
    cache.set("a", [0; 200]).unwrap();
    cache.set_with_ttl("b", [0; 200], Duration::from_secs(1)).unwrap();
    cache.set("c", [0; 200]).unwrap();
    cache.set("d", [0; 200]).unwrap();
    // The search for expired entries may lag by a little over a millisecond.
    clock.advance(Duration::from_millis(1_002));
    cache.set("e", [0; 200]).unwrap();
    let stats = cache.store().stats().unwrap();
    assert_eq!((stats.expired, stats.evictions, stats.entries), (1, 0, 4));
    cache.set("f", [0; 200]).unwrap();
    assert!(!cache.contains("a").unwrap());
    assert_eq!(cache.store().stats().unwrap().evictions, 1);
}

#[test]
fn an_entry_expires_by_its_last_ttl_and_no_other() {
    let seconds = Duration::from_secs;
    let clock = Arc::new(ManualClock::new());
    let cache = Cache::new(MemoryBuilder::new(1 << 20).clock(clock.clone()).store().unwrap());
    for key in ["overwritten", "touched", "overwritten forever", "touched forever"] {
        cache.set_with_ttl(key, "", seconds(10)).unwrap();
    }
    cache.set_with_ttl("overwritten", "", seconds(30)).unwrap();
    assert!(cache.touch("touched", seconds(30)).unwrap());
    cache.set_with_ttl("overwritten forever", "", None).unwrap();
    assert!(cache.touch("touched forever", None).unwrap());
    cache.set_with_ttl("shortened", "", seconds(1_000)).unwrap();
    cache.set_with_ttl("shortened", "", seconds(10)).unwrap();
    cache.set_with_ttl("also shortened", "", seconds(1_000)).unwrap();
    assert!(cache.touch("also shortened", seconds(10)).unwrap());
    // A write removes expired entries that nobody reads.
    for (left, expired) in [(4, 2), (2, 4)] {
        clock.advance(seconds(20));
        cache.set("write", "").unwrap();
        let stats = cache.stats().unwrap();
        assert_eq!((stats.entries, stats.expired), (left + 1, expired));
    }
    assert!(cache.contains("overwritten forever").unwrap());
    assert!(cache.contains("touched forever").unwrap());
}

/// After many removals, the remaining entries move to lower slots.
#[test]
fn entries_that_have_moved_expire() {
    let clock = Arc::new(ManualClock::new());
    let builder = MemoryBuilder::new(1 << 20).shards(1).clock(clock.clone());
    let cache = Cache::new(builder.store().unwrap());
    for key in 0..1_000_u32 {
        cache.set_with_ttl(key.to_le_bytes(), "", Duration::from_secs(10)).unwrap();
    }
    for key in 0..960_u32 {
        assert!(cache.delete(key.to_le_bytes()).unwrap());
    }
    clock.advance(Duration::from_secs(11));
    // A write removes eight.
    for left in [32, 24, 16, 8, 0, 0] {
        cache.set("write", "").unwrap();
        assert_eq!(cache.len().unwrap(), left + 1);
    }
}

#[test]
fn an_entry_that_outgrows_the_rest_stays_or_is_gone_whole() {
    let cache = Cache::open("memory:size=2KiB,policy=fifo").unwrap();
    cache.set("first", "1").unwrap();
    cache.set("second", "2").unwrap();
    // The first in is the first out, even if the room is for its own new value.
    let longest = usize::try_from(cache.store().limits().max_value_bytes - 5).unwrap();
    cache.set("first", vec![7; longest]).unwrap();
    assert_eq!(cache.get("first").unwrap(), None);
    assert_eq!(cache.get("second").unwrap().unwrap(), b"2");
    let stats = cache.store().stats().unwrap();
    assert_eq!((stats.sets, stats.evictions, stats.entries), (3, 1, 1));
}

#[test]
fn statistics_count_by_operation() {
    let cache = Cache::open("memory:policy=lru").unwrap();
    cache.set("a", "1").unwrap();
    assert!(!cache.add("a", "2").unwrap());
    assert!(cache.replace("a", "3").unwrap());
    let (value, version) = cache.get_versioned("a").unwrap().unwrap();
    assert_eq!(value, b"3");
    assert_eq!(cache.cas("a", "4", version).unwrap(), Written::Stored);
    assert_eq!(cache.cas("a", "5", version).unwrap(), Written::Changed);
    assert_eq!(cache.incr("a", 38).unwrap(), Some(42));
    assert_eq!(cache.get("b").unwrap(), None);
    assert!(cache.contains("a").unwrap());
    assert_eq!(cache.get_many(&["a", "b"]).unwrap(), [Some(b"42".to_vec()), None]);
    let written = cache.set_many(&[("b", ""), ("c", "")], SetOptions::add());
    let written: Vec<Written> = written.into_iter().map(Result::unwrap).collect();
    assert_eq!(written, [Written::Stored; 2]);
    let deleted = cache.delete_many(&["c", "d"]);
    assert_eq!(deleted.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [true, false]);
    assert!(cache.touch("a", None).unwrap());
    assert!(!cache.touch("d", None).unwrap());
    assert_eq!(cache.decr("d", 1).unwrap(), None);
    assert!(matches!(cache.incr("b", 1), Err(Error::NotACounter { .. })));
    assert!(!cache.replace("d", "1").unwrap());
    let stats = cache.stats().unwrap();
    assert_eq!((stats.hits, stats.misses), (2, 2));
    assert_eq!((stats.sets, stats.unmet), (6, 3));
    assert_eq!((stats.deletes, stats.delete_misses), (1, 1));
    assert_eq!((stats.touches, stats.touch_misses), (1, 1));
    assert_eq!((stats.counts, stats.count_misses), (1, 1));
    assert_eq!((stats.entries, stats.bytes), (2, charge(1, 2) + charge(1, 0)));
    assert_eq!(stats.capacity_bytes, Some(64 << 20));
    let text = cache.prometheus().unwrap();
    let store = cache.store().describe();
    let labels = format!("level=\"0\",store=\"{store}\",operation=\"get\",result=\"hit\"");
    assert!(text.contains(&format!("haypile_operations_total{{{labels}}} 2\n")), "{text}");
}

#[test]
fn an_entry_is_deleted_by_its_version_only_while_it_has_it() {
    let clock = Arc::new(ManualClock::new());
    let builder = MemoryBuilder::new(64 << 10).clock(clock.clone());
    let cache = Cache::new(builder.store().unwrap());
    let store = cache.store();
    let version = || cache.get_versioned("key").unwrap().unwrap().1;
    cache.set("key", "old").unwrap();
    let old = version();
    cache.set("key", "new").unwrap();
    assert!(!store.delete_version(b"key", old).unwrap());
    assert_eq!(cache.get("key").unwrap().unwrap(), b"new");
    let new = version();
    assert!(cache.touch("key", Duration::from_secs(1)).unwrap());
    assert!(store.delete_version(b"key", new).unwrap());
    assert!(!store.delete_version(b"key", new).unwrap());
    assert_eq!((cache.get("key").unwrap(), store.bytes().unwrap()), (None, 0));
    cache.set_with_ttl("key", "mortal", Duration::from_secs(1)).unwrap();
    let expired = version();
    clock.advance(Duration::from_secs(1));
    assert!(!store.delete_version(b"key", expired).unwrap());
    let stats = cache.stats().unwrap();
    assert_eq!((stats.deletes, stats.delete_misses, stats.expired), (1, 3, 1));
    let error = store.delete_version(&vec![0; 65_536], old).unwrap_err();
    assert!(matches!(error, Error::KeyTooLong { .. }), "{error}");
    cache.close().unwrap();
    assert!(matches!(store.delete_version(b"key", old), Err(Error::Closed { .. })));
}

#[test]
fn an_entry_is_deleted_by_its_value_only_while_it_has_it() {
    let clock = Arc::new(ManualClock::new());
    let builder = MemoryBuilder::new(64 << 10).clock(clock.clone());
    let cache = Cache::new(builder.store().unwrap());
    assert!(!cache.compare_and_delete("key", "").unwrap());
    cache.set("key", "").unwrap();
    assert!(!cache.compare_and_delete("key", "a").unwrap());
    assert!(cache.compare_and_delete("key", "").unwrap());
    cache.set_with_ttl("key", "mortal", Duration::from_secs(1)).unwrap();
    assert!(!cache.compare_and_delete("key", "mortal ").unwrap());
    clock.advance(Duration::from_secs(1));
    assert!(!cache.compare_and_delete("key", "mortal").unwrap());
    let stats = cache.stats().unwrap();
    assert_eq!((stats.hits, stats.deletes, stats.delete_misses, stats.expired), (0, 1, 4, 1));
    let error = cache.compare_and_delete(vec![0; 65_536], "").unwrap_err();
    assert!(matches!(error, Error::KeyTooLong { .. }), "{error}");
    cache.close().unwrap();
    assert!(matches!(cache.compare_and_delete("key", ""), Err(Error::Closed { .. })));
}

#[test]
fn of_many_writes_each_stands_for_itself() {
    let cache = Cache::open("memory:").unwrap();
    cache.set("there", "old").unwrap();
    let (set, add) = (SetOptions::set(), SetOptions::add());
    let too_long = vec![b'k'; 65_536];
    let zero = set.with_ttl(Duration::ZERO);
    let written = cache.store().set_many(&[
        (b"zero", b"", zero),
        (&too_long, b"", set),
        (b"there", b"new", add),
        (b"new", b"1", add),
    ]);
    assert!(matches!(
        written[..],
        [
            Err(Error::ZeroTtl),
            Err(Error::KeyTooLong { .. }),
            Ok(Written::Exists),
            Ok(Written::Stored),
        ]
    ));
    let deleted = cache.store().delete_many(&[&too_long, b"new"]);
    assert!(matches!(deleted[..], [Err(Error::KeyTooLong { .. }), Ok(true)]));
    let found = cache.store().get_many(&[b"there", b"new"]).unwrap();
    let (value, hit) = found[0].as_ref().unwrap();
    assert_eq!((value.as_slice(), found[1].is_none()), (&b"old"[..], true));
    assert_eq!(cache.cas("there", "x", hit.version.unwrap()).unwrap(), Written::Stored);
    assert_eq!(&*cache.get_pinned("there").unwrap().unwrap(), b"x");
    cache.clear().unwrap();
    assert!(cache.is_empty().unwrap());
}

#[test]
fn a_namespace_is_all_of_a_memory_store() {
    let registry = Registry::new();
    let [one, other] = ["memory:namespace=one", "memory:namespace=other"]
        .map(|url| Cache::new(registry.open(url).unwrap()));
    assert!(one.store().describe().ends_with("&namespace=one"));
    one.set("key", "1").unwrap();
    other.set("key", "2").unwrap();
    other.store().clear().unwrap();
    assert_eq!(other.keys().count(), 0);
    assert_eq!((one.store().len().unwrap(), one.keys().count()), (1, 1));
}

#[test]
fn a_closed_store_says_so() {
    let cache = Cache::open("memory:").unwrap();
    cache.set("key", "value").unwrap();
    let write = cache.store().reserve(b"key", 1, &SetOptions::set()).unwrap();
    cache.store().close().unwrap();
    cache.store().close().unwrap();
    assert!(matches!(write.commit(), Err(Error::Closed { .. })));
    let error = cache.get("key").unwrap_err();
    assert!(error.to_string().contains("memory://?size=64MiB"), "{error}");
    assert!(cache.keys().next().unwrap().is_err());
    // Entries of every shard.
    for number in 0..1_000_u32 {
        assert!(matches!(cache.get(number.to_le_bytes()), Err(Error::Closed { .. })));
    }
    assert_eq!((cache.stats().unwrap().sets, cache.stats().unwrap().entries), (1, 0));
}

#[test]
fn a_flush_to_disk_is_unsupported() {
    let cache = Cache::open("memory:").unwrap();
    cache.store().flush(Durability::Visible).unwrap();
    let error = cache.store().flush(Durability::Disk).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }));
    assert!(error.to_string().contains("flush to disk"), "{error}");
}

#[test]
fn a_ttl_of_zero_is_refused_by_the_builder() {
    let builder = MemoryBuilder::new(1 << 20).ttl(Some(Duration::ZERO));
    assert!(matches!(builder.store(), Err(OpenError::ZeroTtl)));
}

#[test]
fn sizes_out_of_range_are_refused_by_the_builder_too() {
    for size in [0, 1_023, (256 << 30) + 1, u64::MAX] {
        let error = MemoryBuilder::new(size).store().unwrap_err();
        assert!(matches!(error, OpenError::SizeOutOfRange { .. }), "{error}");
    }
}
