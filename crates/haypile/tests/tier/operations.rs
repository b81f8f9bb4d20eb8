//! The effect of each operation on each level.

use std::sync::Arc;
use std::time::Duration;

use haypile::tier::{TierOptions, TieredStore};
use haypile::{
    Cache, Durability, Error, Freshness, ManualClock, NoneStore, SetOptions, Store, Written,
};

use crate::hooked::{Hooked, When};
use crate::{LONG, get, hits, memory, options, set, tier};

struct Pair {
    clock: Arc<ManualClock>,
    upper: Arc<dyn Store>,
    lower: Arc<dyn Store>,
    store: Arc<dyn Store>,
}

fn pair(options: TierOptions) -> Pair {
    let clock = Arc::new(ManualClock::new());
    let (upper, lower) = (memory(64 << 10, &clock), memory(64 << 10, &clock));
    let store = Arc::new(tier(&upper, &lower, options, &clock));
    Pair { clock, upper, lower, store }
}

#[test]
fn a_hit_below_is_promoted_with_what_is_left_of_its_life() {
    let Pair { clock, upper, lower, store } = pair(options(LONG));
    let seconds = Duration::from_secs;
    let _ = lower.set(b"key", b"value", &SetOptions::set().with_ttl(seconds(10))).unwrap();
    clock.advance(seconds(4));
    let left =
        |store: &dyn Store| store.get_into(b"key", &mut Vec::new()).unwrap().unwrap().expires_in;
    assert_eq!(left(&*store), Some(seconds(6)));
    assert_eq!(left(&*upper), Some(seconds(6)));
    clock.advance(seconds(5));
    assert_eq!(left(&*store), Some(seconds(1)));
    assert_eq!(hits(&lower), 1);
    clock.advance(seconds(1));
    assert_eq!(get(&*store, "key"), None);
}

type Read = fn(&dyn Store) -> haypile::Hit;

#[test]
fn a_hit_names_the_level_that_had_the_entry() {
    let clock = Arc::new(ManualClock::new());
    let stores: Vec<Arc<dyn Store>> = (0..3).map(|_| memory(64 << 10, &clock)).collect();
    let below: Arc<dyn Store> = Arc::new(tier(&stores[1], &stores[2], options(LONG), &clock));
    let store = tier(&stores[0], &below, options(LONG), &clock);
    let reads: [Read; 4] = [
        |store| store.get_into(b"key", &mut Vec::new()).unwrap().unwrap(),
        |store| store.get_versioned_into(b"key", &mut Vec::new()).unwrap().unwrap(),
        |store| store.get_pinned(b"key").unwrap().unwrap().hit(),
        |store| store.get_many(&[b"key"]).unwrap()[0].as_ref().unwrap().1,
    ];
    for read in reads {
        for store in &stores[..2] {
            store.clear().unwrap();
        }
        set(&*stores[2], "key", "value");
        assert_eq!([read(&store).level, read(&store).level], [2, 0]);
        stores[0].clear().unwrap();
        assert_eq!([read(&store).level, read(&store).level], [1, 0]);
    }
}

#[test]
fn what_is_left_of_a_life_is_told_beyond_that_of_the_copy() {
    let seconds = Duration::from_secs;
    let Pair { clock, lower, store, .. } = pair(options(seconds(3)));
    let _ = store.set(b"key", b"value", &SetOptions::set().with_ttl(seconds(100))).unwrap();
    for second in 0..3 {
        let hit = store.get_into(b"key", &mut Vec::new()).unwrap().unwrap();
        assert_eq!(hit.expires_in, Some(seconds(100 - second)));
        clock.advance(seconds(1));
    }
    assert_eq!(hits(&lower), 0);
    assert_eq!(get(&*store, "key").unwrap(), "value");
    assert_eq!(hits(&lower), 1);
}

#[test]
fn a_write_is_in_both_and_a_read_of_it_in_front() {
    let Pair { upper, lower, store, .. } = pair(options(LONG));
    set(&*store, "key", "value");
    assert_eq!(get(&*lower, "key").unwrap(), "value");
    let before = hits(&lower);
    assert_eq!(get(&*store, "key").unwrap(), "value");
    assert_eq!(&*store.get_pinned(b"key").unwrap().unwrap(), b"value");
    assert_eq!(store.get_many(&[b"key"]).unwrap()[0].as_ref().unwrap().0, b"value");
    assert_eq!((hits(&lower), hits(&upper)), (before, 3));
    let stats = store.stats().unwrap();
    assert_eq!((stats.hits, stats.misses, stats.sets), (before + 3, 0, 1));
    let levels = store.stats_by_level().unwrap();
    assert_eq!(levels.len(), 2);
    assert_eq!((levels[0].stats.hits, levels[1].stats.hits), (3, before));
    assert_eq!(store.len().unwrap(), 1);
    assert_eq!(store.bytes().unwrap(), lower.bytes().unwrap());
    assert_eq!(store.limits(), lower.limits());
}

#[test]
fn versions_are_those_of_the_last_level() {
    let Pair { lower, store, .. } = pair(options(LONG));
    let cache = Cache::new(Arc::clone(&store));
    cache.set("key", "1").unwrap();
    let hit = store.get_into(b"key", &mut Vec::new()).unwrap().unwrap();
    assert_eq!(hit.version, None);
    let (_, version) = cache.get_versioned("key").unwrap().unwrap();
    let below = lower.get_into(b"key", &mut Vec::new()).unwrap().unwrap();
    assert_eq!(below.version, Some(version));
    // From here on the copy has the version.
    let before = hits(&lower);
    let hit = store.get_into(b"key", &mut Vec::new()).unwrap().unwrap();
    assert_eq!(hit.version, Some(version));
    assert_eq!(cache.get_versioned("key").unwrap().unwrap().1, version);
    assert_eq!(hits(&lower), before);
    // Another process writes: the copy and its version are out of date.
    set(&*lower, "key", "2");
    assert_eq!(cache.cas("key", "3", version).unwrap(), Written::Changed);
    assert_eq!(get(&*store, "key").unwrap(), "2");
}

#[test]
fn a_copy_of_what_has_no_version_is_asked_for_it_once() {
    let clock = Arc::new(ManualClock::new());
    let (upper, lower) = (memory(64 << 10, &clock), memory(64 << 10, &clock));
    let below = Arc::new(Versionless(Arc::clone(&lower))) as Arc<dyn Store>;
    let store = tier(&upper, &below, options(LONG), &clock);
    set(&store, "key", "value");
    for _ in 0..3 {
        let hit = store.get_versioned_into(b"key", &mut Vec::new()).unwrap().unwrap();
        assert_eq!(hit.version, None);
    }
    assert_eq!(hits(&lower), 1);
}

#[test]
fn a_value_that_is_too_large_for_the_front_is_only_below() {
    let clock = Arc::new(ManualClock::new());
    let (upper, lower) = (memory(1 << 10, &clock), memory(64 << 10, &clock));
    let store = tier(&upper, &lower, options(LONG), &clock);
    set(&store, "key", "small");
    let large = "x".repeat(10_000);
    set(&store, "key", &large);
    for _ in 0..2 {
        assert_eq!(get(&store, "key").unwrap(), large);
    }
    assert_eq!(hits(&upper), 0);
    let error = store.set(b"key", &vec![0; 100_000], &SetOptions::set()).unwrap_err();
    assert!(matches!(error, Error::ValueTooLarge { .. }));
    assert_eq!(get(&store, "key").unwrap(), large);
    assert!(store.warnings().is_empty());
}

#[test]
fn what_somebody_else_put_into_the_front_is_not_believed() {
    let Pair { upper, store, .. } = pair(options(LONG));
    set(&*upper, "key", "nonsense");
    assert_eq!(get(&*store, "key"), None);
    assert!(store.get_pinned(b"key").unwrap().is_none());
    assert_eq!(store.get_many(&[b"key"]).unwrap(), [None]);
    let stats = store.stats().unwrap();
    assert_eq!((stats.hits, stats.misses), (0, 3));
}

#[test]
fn with_an_unknown_ttl_of_the_last_level_a_write_does_not_reach_the_front() {
    let Pair { upper, lower, store, .. } =
        pair(TierOptions::new().stale(LONG).write_back(Some(1 << 20)));
    set(&*store, "key", "1");
    assert_eq!((upper.len().unwrap(), lower.len().unwrap()), (0, 1));
    let both = [(&b"key"[..], &b"2"[..], SetOptions::set().with_ttl(None))];
    assert_eq!(store.set_many(&both).remove(0).unwrap(), Written::Stored);
    assert_eq!((upper.len().unwrap(), lower.len().unwrap()), (1, 1));
    set(&*store, "key", "3");
    assert_eq!((upper.len().unwrap(), get(&*store, "key").unwrap()), (0, "3".to_owned()));
}

#[test]
fn of_many_with_one_key_the_last_one_is_in_front() {
    let Pair { store, .. } = pair(TierOptions::new().stale(LONG));
    let never = SetOptions::set().with_ttl(None);
    let entries: [(&[u8], &[u8], SetOptions); 3] =
        [(b"key", b"1", never), (b"key", b"2", SetOptions::set()), (b"other", b"3", never)];
    assert!(store.set_many(&entries).into_iter().all(|written| written.unwrap().is_stored()));
    assert_eq!(get(&*store, "key").unwrap(), "2");
    assert_eq!(get(&*store, "other").unwrap(), "3");
}

#[test]
fn of_many_with_one_key_no_earlier_one_is_in_front() {
    let clock = Arc::new(ManualClock::new());
    let second = Duration::from_secs(1);
    let large = "x".repeat(10_000);
    for (value, life, elapsed) in [
        // Too large for the upper level.
        (large.as_str(), None, Duration::ZERO),
        // Its life ends while it is written.
        ("short", Some(second), second / 2),
    ] {
        let (upper, inner) = (memory(1 << 10, &clock), memory(64 << 10, &clock));
        let lower = Hooked::new(&inner);
        let (below, later) = (Arc::clone(&lower) as Arc<dyn Store>, Arc::clone(&clock));
        lower.hook(move |when| {
            if when == When::After("set") {
                later.advance(elapsed);
            }
            Ok(())
        });
        let store = tier(&upper, &below, options(LONG), &clock);
        let entries: [(&[u8], &[u8], SetOptions); 2] = [
            (b"key", b"earlier", SetOptions::set()),
            (b"key", value.as_bytes(), SetOptions::set().with_ttl(life)),
        ];
        assert!(store.set_many(&entries).into_iter().all(|written| written.unwrap().is_stored()));
        assert_eq!(get(&*upper, "key"), None);
        assert_eq!(get(&store, "key"), get(&*inner, "key"));
        assert_ne!(get(&store, "key").as_deref(), Some("earlier"));
    }
}

#[test]
fn a_value_with_a_version_that_has_no_copy_leaves_none_of_the_value_before() {
    let clock = Arc::new(ManualClock::new());
    let (upper, lower) = (memory(1 << 10, &clock), memory(64 << 10, &clock));
    let store = tier(&upper, &lower, options(LONG), &clock);
    set(&store, "key", "small");
    // Another process, and then a read that does not use the copy.
    let large = "x".repeat(10_000);
    set(&*lower, "key", &large);
    let versioned = |store: &TieredStore| {
        let mut value = Vec::new();
        store.get_versioned_into(b"key", &mut value).unwrap().map(|_| value)
    };
    assert_eq!(versioned(&store).unwrap(), large.as_bytes());
    assert_eq!(get(&store, "key").unwrap(), large);
    set(&store, "key", "small");
    assert!(lower.delete(b"key").unwrap());
    assert_eq!((versioned(&store), get(&store, "key")), (None, None));
}

#[test]
fn a_flush_to_disk_is_one_of_the_last_level() {
    let Pair { store, .. } = pair(options(LONG));
    store.flush(Durability::Visible).unwrap();
    assert!(matches!(store.flush(Durability::Disk), Err(Error::Unsupported { .. })));
}

#[test]
fn closing_closes_all_levels_and_twice_is_no_error() {
    for write_max_bytes in [None, Some(1 << 20)] {
        let Pair { upper, lower, store, .. } = pair(options(LONG).write_back(write_max_bytes));
        set(&*store, "key", "value");
        store.close().unwrap();
        store.close().unwrap();
        for store in [&upper, &lower, &store] {
            assert!(matches!(store.get(b"key"), Err(Error::Closed { .. })));
            let result = store.set(b"key", b"", &SetOptions::set());
            assert!(matches!(result, Err(Error::Closed { .. })));
        }
        assert!(matches!(store.contains(b"key"), Err(Error::Closed { .. })));
        assert!(matches!(store.get_many(&[b"key"]), Err(Error::Closed { .. })));
        assert_eq!(store.stats().unwrap().sets, 1);
    }
}

#[test]
fn a_version_to_delete_is_compared_in_the_last_level() {
    let Pair { upper, lower, store, .. } = pair(options(LONG));
    let version = || {
        let hit = store.get_versioned_into(b"key", &mut Vec::new()).unwrap().unwrap();
        hit.version.unwrap()
    };
    set(&*store, "key", "1");
    let old = version();
    // By another process: the upper level is not told.
    set(&*lower, "key", "2");
    assert_eq!(get(&*store, "key").unwrap(), "1");
    assert!(!store.delete_version(b"key", old).unwrap());
    assert_eq!(get(&*store, "key").unwrap(), "2");
    assert!(store.delete_version(b"key", version()).unwrap());
    assert!(!upper.contains(b"key").unwrap() && !lower.contains(b"key").unwrap());
    assert_eq!(get(&*store, "key"), None);
}

#[test]
fn a_value_to_delete_is_compared_in_the_last_level() {
    for write_back in [None, Some(1 << 20)] {
        let Pair { upper, lower, store, .. } = pair(options(LONG).write_back(write_back));
        set(&*store, "key", "1");
        assert!(!store.compare_and_delete(b"key", b"2").unwrap());
        // By another process: the upper level is not told.
        set(&*lower, "key", "2");
        assert!(!store.compare_and_delete(b"key", b"1").unwrap());
        assert_eq!(get(&*store, "key").unwrap(), "2");
        assert!(store.compare_and_delete(b"key", b"2").unwrap());
        assert!(!upper.contains(b"key").unwrap() && !lower.contains(b"key").unwrap());
        assert_eq!(get(&*store, "key"), None);
    }
}

#[test]
fn a_lower_level_that_holds_nothing_judges_all_the_same() {
    let clock = Arc::new(ManualClock::new());
    let lower = Arc::new(NoneStore::new()) as Arc<dyn Store>;
    let store = tier(&memory(64 << 10, &clock), &lower, options(LONG), &clock);
    set(&store, "key", "value");
    assert_eq!(get(&store, "key").unwrap(), "value");
    assert_eq!(store.set(b"key", b"", &SetOptions::replace()).unwrap(), Written::Absent);
    assert_eq!(get(&store, "key"), None);
}

#[test]
fn a_value_is_refreshed_through_levels() {
    let seconds = Duration::from_secs;
    let Pair { clock, lower, store, .. } = pair(options(seconds(2)));
    let cache = Cache::new(store);
    let freshness = Freshness::new(seconds(10)).with_stale(seconds(100));
    let refreshed = |value: &'static str| {
        let value = cache.get_or_refresh("key", freshness, || value.as_bytes().to_vec()).unwrap();
        String::from_utf8(value).unwrap()
    };
    assert_eq!(refreshed("1"), "1");
    clock.advance(seconds(1));
    // The life of the copy differs from that of the value.
    assert_eq!(refreshed("2"), "1");
    clock.advance(seconds(9));
    assert_eq!(refreshed("3"), "3");
    assert_eq!(get(&*lower, "key").unwrap(), "3");
    assert_eq!(cache.compute_stats().refused_values, 0);
}

/// A store that returns no versions.
#[derive(Debug)]
struct Versionless(Arc<dyn Store>);

impl Store for Versionless {
    fn url(&self) -> haypile::url::CacheUrl {
        self.0.url()
    }

    fn limits(&self) -> haypile::Limits {
        self.0.limits()
    }

    fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> haypile::Result<Option<haypile::Hit>> {
        let hit = self.0.get_into(key, buffer)?;
        Ok(hit.map(|hit| haypile::Hit::new(None, hit.expires_in)))
    }

    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> haypile::Result<Written> {
        self.0.set(key, value, options)
    }

    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> haypile::Result<Box<dyn haypile::Reservation + '_>> {
        self.0.reserve(key, value_bytes, options)
    }

    fn delete(&self, key: &[u8]) -> haypile::Result<bool> {
        self.0.delete(key)
    }

    fn touch(&self, key: &[u8], ttl: haypile::Ttl) -> haypile::Result<bool> {
        self.0.touch(key, ttl)
    }

    fn incr(&self, key: &[u8], delta: u64) -> haypile::Result<Option<u64>> {
        self.0.incr(key, delta)
    }

    fn decr(&self, key: &[u8], delta: u64) -> haypile::Result<Option<u64>> {
        self.0.decr(key, delta)
    }

    fn contains(&self, key: &[u8]) -> haypile::Result<bool> {
        self.0.contains(key)
    }

    fn clear(&self) -> haypile::Result<()> {
        self.0.clear()
    }

    fn keys(&self, from: haypile::Cursor, limit: usize) -> haypile::Result<haypile::Page> {
        self.0.keys(from, limit)
    }

    fn len(&self) -> haypile::Result<u64> {
        self.0.len()
    }

    fn bytes(&self) -> haypile::Result<u64> {
        self.0.bytes()
    }

    fn stats(&self) -> haypile::Result<haypile::Stats> {
        self.0.stats()
    }

    fn flush(&self, durability: Durability) -> haypile::Result<()> {
        self.0.flush(durability)
    }

    fn close(&self) -> haypile::Result<()> {
        self.0.close()
    }
}
