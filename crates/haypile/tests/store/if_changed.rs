//! Reads that copy nothing where the entry still has a version that the caller knows.

use std::time::Duration;

use haypile::{Cache, Hit, ManualClock, Registry, SetOptions, Version};
use std::sync::Arc;

/// Caches of all kinds that have versions.
fn urls(dir: &tempfile::TempDir) -> Vec<String> {
    let file = |name: &str| format!("file:{},size=4MiB", dir.path().join(name).display());
    vec![
        "memory:size=4MiB".to_owned(),
        "memory:size=4MiB,policy=lru".to_owned(),
        "memory:size=4MiB,compress=lz4".to_owned(),
        file("plain"),
        file("compressed") + ",compress=zstd",
        file("verified") + ",verify=always",
        file("spaced") + ",namespace=of",
        format!("memory:size=4MiB -> {}", file("lower")),
    ]
}

/// Reads unless the entry has a version: the hit, and the value if it was copied.
fn read(cache: &Cache, key: &str, version: Version) -> Option<(Hit, Vec<u8>)> {
    let mut buffer = b"left over".to_vec();
    let hit = cache.store().get_if_changed_into(key.as_bytes(), version, &mut buffer).unwrap();
    if hit.is_none() {
        assert!(buffer.is_empty());
    }
    hit.map(|hit| (hit, buffer))
}

#[test]
fn what_has_not_changed_is_not_copied() {
    let dir = tempfile::tempdir().unwrap();
    for url in urls(&dir) {
        let cache = Cache::open(&url).unwrap();
        let other = Version::from_raw(u64::MAX >> 20);
        for value in [vec![], b"short".to_vec(), vec![7; 20_000], (0..=255).collect::<Vec<u8>>()] {
            cache.set("key", &value).unwrap();
            let (_, version) = cache.get_versioned("key").unwrap().unwrap();
            let (hit, copied) = read(&cache, "key", version).unwrap();
            assert_eq!((hit.version, copied.len()), (Some(version), 0), "{url}");
            let (hit, copied) = read(&cache, "key", other).unwrap();
            assert_eq!((hit.version, copied), (Some(version), value.clone()), "{url}");
            // The same value is another version.
            cache.set("key", &value).unwrap();
            let (hit, copied) = read(&cache, "key", version).unwrap();
            assert!(hit.version.is_some() && hit.version != Some(version), "{url}");
            assert_eq!(copied, value, "{url}");
        }
        let (_, version) = cache.get_versioned("key").unwrap().unwrap();
        cache.delete("key").unwrap();
        assert!(read(&cache, "key", version).is_none(), "{url}");
        assert!(read(&cache, "never written", version).is_none(), "{url}");
        // A counter.
        cache.set("key", "1").unwrap();
        let (_, version) = cache.get_versioned("key").unwrap().unwrap();
        cache.incr("key", 1).unwrap();
        assert_eq!(read(&cache, "key", version).unwrap().1, b"2", "{url}");
    }
}

#[test]
fn an_entry_that_is_out_of_date_is_none() {
    let dir = tempfile::tempdir().unwrap();
    for url in urls(&dir) {
        let clock = Arc::new(ManualClock::new());
        let store =
            Registry::new().with_clock(Arc::<ManualClock>::clone(&clock)).open(&url).unwrap();
        let cache = Cache::new(store);
        cache.set_with_ttl("key", "value", Duration::from_secs(10)).unwrap();
        let (_, version) = cache.get_versioned("key").unwrap().unwrap();
        let (hit, _) = read(&cache, "key", version).unwrap();
        assert!(hit.expires_in.unwrap() <= Duration::from_secs(10), "{url}");
        clock.advance(Duration::from_secs(11));
        assert!(read(&cache, "key", version).is_none(), "{url}");
        let spaced = cache.in_groups(["group"]).unwrap();
        assert!(spaced.write("grouped", "value", SetOptions::set()).unwrap().is_stored());
        let (_, version) = cache.get_versioned("grouped").unwrap().unwrap();
        assert!(read(&cache, "grouped", version).unwrap().1.is_empty(), "{url}");
        assert_eq!(
            read(&cache, "grouped", Version::from_raw(u64::MAX >> 20)).unwrap().1,
            b"value",
            "{url}"
        );
        cache.invalidate("group").unwrap();
        assert!(read(&cache, "grouped", version).is_none(), "{url}");
    }
}

#[test]
fn it_counts_as_a_hit_and_keeps_the_entry_in_use() {
    let dir = tempfile::tempdir().unwrap();
    for url in urls(&dir) {
        let cache = Cache::open(&url).unwrap();
        cache.set("key", "value").unwrap();
        let (_, version) = cache.get_versioned("key").unwrap().unwrap();
        let before = cache.stats().unwrap();
        for _ in 0..3 {
            read(&cache, "key", version).unwrap();
        }
        read(&cache, "none", version);
        let after = cache.stats().unwrap();
        assert_eq!((after.hits - before.hits, after.misses - before.misses), (3, 1), "{url}");
    }
}

/// A file in the place of another has other versions: whoever kept one would take a new value for the old one.
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
#[test]
fn versions_of_a_file_that_was_replaced_are_of_none_of_its_entries() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("file:{},size=4MiB", dir.path().join("file").display());
    let mut versions = Vec::new();
    for _ in 0..8 {
        let cache = Cache::open(&format!("{url},recreate=yes")).unwrap();
        cache.set("key", "value").unwrap();
        let (_, version) = cache.get_versioned("key").unwrap().unwrap();
        assert!(!versions.contains(&version), "{versions:?}");
        versions.push(version);
    }
}
