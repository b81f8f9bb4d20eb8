//! Groups of entries: an invalidation is seen by every reader, and nothing else is.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haypile::{Cache, Error, Layer, PendingCompute, Polled, SetOptions, Store, Written};
use proptest::prelude::*;

const TTL: Duration = Duration::from_hours(1);

/// Caches of every kind that has groups.
fn caches(folder: &Path) -> Vec<Cache> {
    let path = |name: &str| folder.join(name).display().to_string();
    let urls = [
        "memory:size=1MiB".to_owned(),
        "memory:size=1MiB,policy=lru,shards=1".to_owned(),
        format!("memory:size=1MiB,persist={}", path("snapshot")),
        "memory:size=1MiB,compress=zstd,compress_min=64".to_owned(),
        #[cfg(target_os = "linux")]
        format!("file:{},size=1MiB", path("plain")),
        #[cfg(target_os = "linux")]
        format!("file:{},size=1MiB,verify=always,namespace=spaced", path("verified")),
        #[cfg(target_os = "linux")]
        format!("file:{},size=1MiB,compress=lz4,compress_min=64", path("compressed")),
        #[cfg(target_os = "linux")]
        format!("file:{},size=1MiB,record={}", path("recorded"), path("recording")),
        #[cfg(target_os = "linux")]
        format!("memory:size=256KiB -> file:{},size=1MiB", path("below")),
        #[cfg(target_os = "linux")]
        format!("memory:size=256KiB -> memory:size=512KiB -> file:{},size=1MiB", path("last")),
    ];
    urls.iter().map(|url| Cache::open(url).unwrap()).collect()
}

fn for_each_cache(test: impl Fn(&Cache, &str)) {
    let folder = tempfile::tempdir().unwrap();
    for cache in caches(folder.path()) {
        test(&cache, &cache.store().describe());
    }
}

/// Asserts that each way to read says the same of a key.
fn assert_read(cache: &Cache, key: &str, value: Option<&[u8]>, what: &str) {
    let copied = cache.get(key).unwrap();
    assert_eq!(copied.as_deref(), value, "get of {key} in {what}");
    let versioned = cache.get_versioned(key).unwrap().map(|(value, _)| value);
    assert_eq!(versioned.as_deref(), value, "get_versioned of {key} in {what}");
    let pinned = cache.get_pinned(key).unwrap();
    assert_eq!(pinned.as_deref(), value, "get_pinned of {key} in {what}");
    let in_place = cache.store().get_in_place(key.as_bytes()).unwrap();
    assert_eq!(in_place.as_deref(), value, "get_in_place of {key} in {what}");
    let many = cache.get_many(&[key]).unwrap();
    assert_eq!(many[0].as_deref(), value, "get_many of {key} in {what}");
    assert_eq!(cache.contains(key).unwrap(), value.is_some(), "contains of {key} in {what}");
    let is_listed = cache.keys().any(|listed| listed.unwrap() == key.as_bytes());
    assert_eq!(is_listed, value.is_some(), "keys, {key} in {what}");
}

#[test]
fn an_invalidation_makes_all_entries_of_its_group_a_miss_and_no_others() {
    for_each_cache(|cache, what| {
        let of = |groups: &[&str]| cache.in_groups(groups).unwrap();
        cache.set("free", "value").unwrap();
        of(&["a"]).set("of a", "value").unwrap();
        of(&["b"]).set_with_ttl("of b", "value", TTL).unwrap();
        of(&["c", "a", "b"]).set_with_ttl("of all", "value", TTL).unwrap();
        for key in ["free", "of a", "of b", "of all"] {
            assert_read(cache, key, Some(b"value"), what);
        }
        cache.invalidate("nobody's").unwrap();
        cache.invalidate("a").unwrap();
        for key in ["of a", "of all"] {
            assert_read(cache, key, None, what);
        }
        for key in ["free", "of b"] {
            assert_read(cache, key, Some(b"value"), what);
        }
        // What is written from now on is of after the invalidation.
        of(&["a"]).set("of a", "next").unwrap();
        assert_read(cache, "of a", Some(b"next"), what);
        // The groups of an entry are those of its last write.
        cache.set("of a", "free now").unwrap();
        cache.invalidate("a").unwrap();
        assert_read(cache, "of a", Some(b"free now"), what);
        of(&["b"]).set("free", "of b now").unwrap();
        cache.invalidate("b").unwrap();
        assert_read(cache, "free", None, what);
    });
}

#[test]
fn values_of_every_length_are_what_was_written() {
    for_each_cache(|cache, what| {
        for groups in [1, 2, 3, 64] {
            let names: Vec<String> = (0..groups).map(|number| format!("group {number}")).collect();
            let grouped = cache.in_groups(&names).unwrap();
            for length in (0..20).chain([1_000, 10_001, 65_536, 70_003]) {
                let value: Vec<u8> =
                    (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
                // Longer ones than the level holds are refused.
                match grouped.set("key", &value) {
                    Ok(()) => assert_read(cache, "key", Some(&value), what),
                    Err(error) => assert!(matches!(error, Error::ValueTooLarge { .. }), "{error}"),
                }
            }
            cache.set("key", "short").unwrap();
        }
    });
}

#[test]
fn an_invalidated_entry_is_none_to_every_operation() {
    for_each_cache(|cache, what| {
        let grouped = cache.in_groups(["g"]).unwrap();
        let dead = |key: &str| {
            grouped.set(key, "7").unwrap();
            cache.invalidate("g").unwrap();
        };
        dead("key");
        assert!(!cache.delete("key").unwrap(), "{what}");
        dead("key");
        assert!(!cache.touch("key", TTL).unwrap(), "{what}");
        assert_eq!(cache.incr("key", 1).unwrap(), None, "{what}");
        assert!(!cache.replace("key", "8").unwrap(), "{what}");
        grouped.set("key", "7").unwrap();
        let (_, version) = cache.get_versioned("key").unwrap().unwrap();
        cache.invalidate("g").unwrap();
        assert_eq!(cache.cas("key", "8", version).unwrap(), Written::Absent, "{what}");
        assert!(!cache.delete_version("key", version).unwrap(), "{what}");
        assert!(!cache.compare_and_delete("key", "7").unwrap(), "{what}");
        assert!(cache.add("key", "9").unwrap(), "{what}");
        assert_read(cache, "key", Some(b"9"), what);
    });
}

#[test]
fn a_touched_or_counted_entry_keeps_its_groups() {
    for_each_cache(|cache, what| {
        for ttl in [None, Some(TTL)] {
            let grouped = cache.in_groups(["g", "h"]).unwrap();
            grouped.set_with_ttl("key", "7", ttl).unwrap();
            assert_eq!(cache.incr("key", 1).unwrap(), Some(8), "{what}");
            assert_eq!(cache.decr("key", 3).unwrap(), Some(5), "{what}");
            for ttl in [Some(TTL), None, Some(TTL)] {
                assert!(cache.touch("key", ttl).unwrap(), "{what}");
                assert_read(cache, "key", Some(b"5"), what);
            }
            cache.invalidate("h").unwrap();
            assert_read(cache, "key", None, what);
        }
    });
}

#[test]
fn a_life_that_is_reported_is_that_of_the_entry() {
    for_each_cache(|cache, what| {
        let grouped = cache.in_groups(["g"]).unwrap();
        grouped.set_with_ttl("key", "value", TTL).unwrap();
        let mut value = Vec::new();
        let hit = cache.store().get_into(b"key", &mut value).unwrap().unwrap();
        assert!(hit.has_groups, "{what}");
        assert!(hit.expires_in.is_some_and(|left| left <= TTL && left > TTL / 2), "{what}");
        grouped.set_with_ttl("key", "value", None).unwrap();
        let hit = cache.store().get_into(b"key", &mut value).unwrap().unwrap();
        assert_eq!((hit.expires_in, hit.has_groups), (None, true), "{what}");
        cache.set("key", "value").unwrap();
        let hit = cache.store().get_into(b"key", &mut value).unwrap().unwrap();
        assert!(!hit.has_groups, "{what}");
    });
}

#[test]
fn a_lease_is_revoked_by_an_invalidation_of_the_groups_that_its_value_has() {
    for_each_cache(|cache, what| {
        let grouped = cache.in_groups(["g", "h"]).unwrap();
        for (invalidated, written) in [("h", Written::Revoked), ("other", Written::Stored)] {
            let lease = cache.lease("key").unwrap();
            cache.invalidate(invalidated).unwrap();
            let options = SetOptions::leased(lease);
            assert_eq!(grouped.write("key", "old", options).unwrap(), written, "{what}");
            assert_eq!(cache.get("key").unwrap().is_some(), written.is_stored(), "{what}");
        }
        // In no group, it does not depend on one.
        let lease = cache.lease("key").unwrap();
        cache.invalidate("g").unwrap();
        assert!(cache.write("key", "free", SetOptions::leased(lease)).unwrap().is_stored());
        assert_read(cache, "key", Some(b"free"), what);
    });
}

#[test]
fn a_computation_does_not_undo_an_invalidation_of_its_group() {
    for_each_cache(|cache, what| {
        let grouped = cache.in_groups(["g"]).unwrap();
        let old = grouped.get_or_compute("key", None, || {
            cache.invalidate("g").unwrap();
            // A later caller gets nothing older.
            let later = || grouped.get_or_compute("key", None, || b"new".to_vec());
            let later = thread::scope(|scope| scope.spawn(later).join().unwrap());
            assert_eq!(later.unwrap(), b"new", "{what}");
            b"old".to_vec()
        });
        assert_eq!(old.unwrap(), b"old");
        assert_read(cache, "key", Some(b"new"), what);
        cache.invalidate("g").unwrap();
        assert_read(cache, "key", None, what);
    });
}

#[test]
fn groups_may_come_of_a_computation() {
    for_each_cache(|cache, what| {
        for (invalidated, is_stored) in [("its own", false), ("another", true)] {
            let pending = PendingCompute::begin(cache, "key", None).unwrap();
            let Polled::Compute(computation) = pending.poll().unwrap() else {
                panic!("nobody else computes")
            };
            cache.invalidate(invalidated).unwrap();
            computation.store_in_groups(b"value", ["its own"]).unwrap();
            assert_eq!(cache.get("key").unwrap().is_some(), is_stored, "{invalidated}, {what}");
        }
        cache.invalidate("its own").unwrap();
        assert_read(cache, "key", None, what);
    });
}

#[test]
fn more_groups_and_longer_names_than_an_entry_can_have_are_refused() {
    for_each_cache(|cache, what| {
        let (longest, most) = ("x".repeat(250), vec!["g"; 64]);
        cache.in_groups([&longest]).unwrap().set("key", "value").unwrap();
        cache.invalidate(&longest).unwrap();
        cache.in_groups(&most).unwrap().set("key", "value").unwrap();
        let too_long = format!("{longest}x");
        for groups in [vec![too_long.as_str()], vec![""], vec!["g"; 65]] {
            let error = cache.in_groups(&groups).unwrap_err();
            assert!(matches!(error, Error::Group { .. }), "{error} in {what}");
            let groups: Vec<&[u8]> = groups.iter().map(|group| group.as_bytes()).collect();
            let set = cache.store().set_in_groups(b"key", b"", &SetOptions::set(), &groups);
            assert!(matches!(set, Err(Error::Group { .. })), "{what}");
        }
        for group in [too_long.as_str(), ""] {
            assert!(matches!(cache.invalidate(group), Err(Error::Group { .. })), "{what}");
        }
        assert_read(cache, "key", Some(b"value"), what);
    });
}

/// They count as expired and not as evicted, and none is kept for having been used.
#[test]
fn invalidated_entries_leave_when_their_room_is_needed() {
    for_each_cache(|cache, what| {
        let grouped = cache.in_groups(["g"]).unwrap();
        let fill = |cache: &Cache| {
            for number in 0..6_000_u32 {
                cache.set(number.to_le_bytes(), [7; 500]).unwrap();
                let _ = cache.get(number.to_le_bytes()).unwrap();
            }
        };
        fill(&grouped);
        let (before, entries) = (cache.stats().unwrap(), cache.len().unwrap());
        cache.invalidate("g").unwrap();
        assert_eq!(cache.keys().count(), 0, "{what}");
        fill(cache);
        let after = cache.stats().unwrap();
        // Compressed, all of it fits.
        let is_file = what.starts_with("file:") && !what.contains("compress");
        assert!(!is_file || after.expired - before.expired > entries / 2, "{after:?} in {what}");
        assert!(cache.keys().count() > 0, "{what}");
    });
}

/// Snapshots keep the groups of entries; a clock that begins again is before every invalidation.
#[test]
fn a_snapshot_keeps_groups_and_nothing_that_was_invalidated() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("memory:size=1MiB,persist={}", folder.path().join("snapshot").display());
    let cache = Cache::open(&url).unwrap();
    for number in 0..5 {
        // The clock goes beyond that of the next process.
        cache.invalidate(format!("group {number}")).unwrap();
    }
    cache.in_groups(["kept", "other"]).unwrap().set_with_ttl("kept", "value", TTL).unwrap();
    cache.in_groups(["gone"]).unwrap().set("gone", "value").unwrap();
    cache.set("free", "value").unwrap();
    cache.invalidate("gone").unwrap();
    cache.close().unwrap();

    let cache = Cache::open(&url).unwrap();
    assert_read(&cache, "free", Some(b"value"), "the next process");
    assert_read(&cache, "kept", Some(b"value"), "the next process");
    assert_read(&cache, "gone", None, "the next process");
    cache.invalidate("other").unwrap();
    assert_read(&cache, "kept", None, "the next process");
    assert_read(&cache, "free", Some(b"value"), "the next process");
}

/// A store without groups, such as one on a server, says so and changes nothing.
#[test]
fn a_store_without_groups_refuses_them() {
    #[derive(Debug)]
    struct Plain(Arc<dyn Store>);

    impl Layer for Plain {
        fn inner(&self) -> &dyn Store {
            &*self.0
        }

        fn set_in_groups(
            &self,
            key: &[u8],
            value: &[u8],
            options: &SetOptions,
            groups: &[&[u8]],
        ) -> Result<Written, Error> {
            if groups.is_empty() {
                return self.0.set(key, value, options);
            }
            Err(Error::Unsupported { operation: "groups", store: self.describe() })
        }

        fn invalidate(&self, _: &[u8]) -> Result<(), Error> {
            Err(Error::Unsupported { operation: "groups", store: self.describe() })
        }
    }

    let cache = Cache::new(Arc::new(Plain(Arc::clone(Cache::open("memory:").unwrap().store()))));
    cache.set("key", "value").unwrap();
    let grouped = cache.in_groups(["g"]).unwrap();
    let refused = [grouped.set("key", "next"), grouped.invalidate("g")];
    for error in refused.map(Result::unwrap_err) {
        assert!(error.to_string().contains("cannot do this: groups"), "{error}");
    }
    assert_eq!(cache.get("key").unwrap().as_deref(), Some(b"value".as_slice()));
    // A computed value is served, and the failure counted.
    cache.delete("key").unwrap();
    assert_eq!(grouped.get_or_compute("key", None, || b"computed".to_vec()).unwrap(), b"computed");
    assert_eq!(cache.get("key").unwrap(), None);
    assert_eq!(cache.stats().unwrap().refused_values, 1);
    assert_eq!(cache.warnings().len(), 1, "{:?}", cache.warnings());
}

#[derive(Clone, Debug)]
enum Step {
    Set { key: usize, groups: Vec<usize>, ttl: bool },
    Invalidate(usize),
    Delete(usize),
    Touch(usize),
    Incr(usize),
    Clear,
}

const KEYS: usize = 6;
const GROUPS: usize = 5;

fn step() -> impl Strategy<Value = Step> {
    let groups = prop::collection::vec(0..GROUPS, 0..4);
    prop_oneof![
        6 => (0..KEYS, groups, any::<bool>()).prop_map(|(key, groups, ttl)| Step::Set { key, groups, ttl }),
        4 => (0..GROUPS).prop_map(Step::Invalidate),
        1 => (0..KEYS).prop_map(Step::Delete),
        1 => (0..KEYS).prop_map(Step::Touch),
        1 => (0..KEYS).prop_map(Step::Incr),
        1 => Just(Step::Clear),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Against a table of values with their groups.
    #[test]
    fn caches_with_groups_are_like_the_model(steps in prop::collection::vec(step(), 1..60)) {
        for_each_cache(|cache, what| {
            let mut model: HashMap<usize, (u64, HashSet<usize>)> = HashMap::new();
            let name = |group: &usize| format!("group {group}");
            for (number, step) in (1_000_u64..).zip(&steps) {
                match step {
                    Step::Set { key, groups, ttl } => {
                        let grouped = cache.in_groups(groups.iter().map(name)).unwrap();
                        let ttl = ttl.then_some(TTL);
                        grouped.set_with_ttl(key.to_string(), number.to_string(), ttl).unwrap();
                        model.insert(*key, (number, groups.iter().copied().collect()));
                    }
                    Step::Invalidate(group) => {
                        cache.invalidate(name(group)).unwrap();
                        model.retain(|_, (_, groups)| !groups.contains(group));
                    }
                    Step::Delete(key) => {
                        let deleted = cache.delete(key.to_string()).unwrap();
                        assert_eq!(deleted, model.remove(key).is_some(), "{what}");
                    }
                    Step::Touch(key) => {
                        let touched = cache.touch(key.to_string(), TTL).unwrap();
                        assert_eq!(touched, model.contains_key(key), "{what}");
                    }
                    Step::Incr(key) => {
                        let next = model.get_mut(key).map(|(value, _)| {
                            *value += 1;
                            *value
                        });
                        assert_eq!(cache.incr(key.to_string(), 1).unwrap(), next, "{what}");
                    }
                    Step::Clear => {
                        cache.clear().unwrap();
                        model.clear();
                    }
                }
                for key in 0..KEYS {
                    let value = cache.get(key.to_string()).unwrap();
                    let wanted = model.get(&key).map(|(value, _)| value.to_string().into_bytes());
                    assert_eq!(value, wanted, "key {key} after {step:?} in {what}");
                }
            }
            let listed: HashSet<Vec<u8>> = cache.keys().map(Result::unwrap).collect();
            let wanted = model.keys().map(|key| key.to_string().into_bytes()).collect();
            assert_eq!(listed, wanted, "{what}");
        });
    }
}
