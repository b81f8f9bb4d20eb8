//! Levels by their URL.

use std::sync::Arc;
use std::time::Duration;

use haypile::{Cache, Freshness, ManualClock, Registry, SetOptions, Store};

use crate::{get, set};

fn open(url: &str) -> Arc<dyn Store> {
    Registry::new().open(url).unwrap()
}

fn message(url: &str) -> String {
    Registry::new().open(url).unwrap_err().to_string()
}

#[test]
fn they_are_named_in_both_forms_and_say_what_is_the_default() {
    for (url, name) in [
        (
            "memory:size=1MiB+memory:size=4MiB,policy=lru",
            "memory://?size=1MiB&policy=s3fifo&stale=1s -> memory://?size=4MiB&policy=lru",
        ),
        (
            "memory://?write=back&size=1MiB&stale=90s -> none://",
            "memory://?size=1MiB&policy=s3fifo&stale=1m30s&write=back&write_max=16MiB -> none://",
        ),
        (
            "memory:policy=slru,stale=1ms,protected=70+memory:write=back,write_max=1KiB+none",
            "memory://?size=64MiB&policy=slru:protected=70&stale=1ms -> \
             memory://?size=64MiB&policy=s3fifo&stale=1s&write=back&write_max=1KiB -> none://",
        ),
    ] {
        let store = open(url);
        assert_eq!(store.describe(), name);
        assert_eq!(open(name).describe(), name);
        let (_, registry) = (store, Registry::new());
        let canonical = registry.parse(url).unwrap();
        assert_eq!(registry.parse(&canonical.to_string()).unwrap(), canonical);
        assert_eq!(registry.parse(&canonical.short().to_string()).unwrap(), canonical);
    }
}

#[test]
fn what_is_wrong_is_an_error_that_says_what_is_allowed() {
    for (url, parts) in [
        ("memory:stale=1s", ["'stale'", "has none below it"]),
        ("memory:+memory:write=back", ["'write'", "in front of another"]),
        ("memory:stale=1+none", ["'stale'", "500ms"]),
        ("memory:stale=0s+none", ["'stale'", "above zero"]),
        ("memory:write=behind+none", ["'behind'", "through, back"]),
        ("memory:write_max=1MiB+none", ["'write_max'", "needs 'write'"]),
        ("memory:write=back,write_max=1+none", ["'write_max'", "1KiB"]),
        ("memory:fresh=1s+none", ["'fresh'", "size, policy"]),
        ("none:size=1MiB,stale=1s+none", ["'none'", "'size'"]),
        ("memory:+nothing:", ["'nothing'", "memory, none"]),
        ("memory:+redis:h", ["'redis'", "not registered"]),
    ] {
        let message = message(url);
        for part in parts {
            assert!(message.contains(part), "{url}: '{message}' does not say '{part}'");
        }
    }
}

#[test]
fn the_ttl_of_the_last_level_is_that_of_entries() {
    let clock = Arc::new(ManualClock::new());
    let registry = Registry::new().with_clock(Arc::clone(&clock) as Arc<_>);
    let seconds = Duration::from_secs;
    for write in ["through", "back"] {
        let url = format!("memory:stale=1h,write={write}+memory:ttl=10s");
        let store = registry.open(&url).unwrap();
        set(&*store, "key", "value");
        let hit = store.get_into(b"key", &mut Vec::new()).unwrap().unwrap();
        assert_eq!(hit.expires_in, Some(seconds(10)));
        clock.advance(seconds(10));
        assert_eq!(get(&*store, "key"), None);
    }
}

#[test]
fn the_ttl_of_an_upper_level_is_that_of_copies() {
    let clock = Arc::new(ManualClock::new());
    let registry = Registry::new().with_clock(Arc::clone(&clock) as Arc<_>);
    let seconds = Duration::from_secs;
    let store = registry.open("memory:ttl=2s,stale=1h+memory:").unwrap();
    let _ = store.set(b"key", b"value", &SetOptions::set().with_ttl(seconds(60))).unwrap();
    clock.advance(seconds(1));
    assert_eq!(get(&*store, "key").unwrap(), "value");
    clock.advance(seconds(1));
    assert_eq!(get(&*store, "key").unwrap(), "value");
    let levels = store.stats_by_level().unwrap();
    assert_eq!((levels[0].stats.hits, levels[1].stats.hits), (1, 1));
}

#[test]
fn options_of_any_level_do_what_they_do() {
    let store = open("memory:compress=zstd,namespace=a+memory:compress=lz4,size=1MiB");
    let text = "again and ".repeat(100);
    set(&*store, "key", &text);
    assert_eq!(get(&*store, "key").unwrap(), text);
    let cache = Cache::new(store);
    assert_eq!(cache.get_versioned("key").unwrap().unwrap().0, text.as_bytes());
    assert!(cache.store().bytes().unwrap() < 500);
}

#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
mod files {
    use std::thread;

    use super::*;

    #[test]
    fn what_is_below_outlives_what_is_in_front() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("lower.haypile");
        for write in ["through", "back"] {
            let url = format!("memory:size=1MiB,write={write}+file:{},size=1MiB", file.display());
            let store = open(&url);
            set(&*store, write, "value");
            store.close().unwrap();
            assert_eq!(get(&*open(&url), write).unwrap(), "value");
        }
    }

    #[test]
    fn a_file_that_is_only_read_can_stand_before_and_below() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name).display().to_string();
        set(&*open(&format!("file:{},size=1MiB", file("a"))), "a", "1");
        set(&*open(&format!("file:{},size=1MiB", file("b"))), "b", "2");
        let store = open(&format!("file:{},mode=ro+file:{},mode=ro", file("a"), file("b")));
        assert_eq!(get(&*store, "b").unwrap(), "2");
        // Entries of the upper level are not counted as its own.
        assert_eq!(get(&*store, "a"), None);
        let error = store.set(b"b", b"3", &SetOptions::set()).unwrap_err().to_string();
        assert!(error.contains("cannot do this"), "{error}");
        assert_eq!(get(&*store, "b").unwrap(), "2");
    }

    /// Opens two stores of one file in one process, as two processes would have them.
    #[test]
    fn of_two_processes_one_computes_and_the_other_sees_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("lower.haypile");
        let url = format!("memory:size=1MiB,stale=1h+file:{},size=1MiB", file.display());
        let (one, other) = (Cache::open(&url).unwrap(), Cache::open(&url).unwrap());
        thread::scope(|scope| {
            let value = one
                .get_or_compute("key", None, || {
                    let waits =
                        scope.spawn(|| other.get_or_compute("key", None, || b"not this".to_vec()));
                    drop(waits);
                    b"value".to_vec()
                })
                .unwrap();
            assert_eq!(value, b"value");
        });
        assert_eq!(other.get("key").unwrap().unwrap(), b"value");
    }

    /// The same, with a copy in the upper level that is older than the other process' value.
    #[test]
    fn a_value_that_another_process_refreshed_is_not_computed_again() {
        let seconds = Duration::from_secs;
        let clock = Arc::new(ManualClock::new());
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("lower.haypile");
        let url = format!("memory:size=1MiB,stale=1h+file:{},size=1MiB", file.display());
        let open = || Cache::new(Registry::new().with_clock(clock.clone()).open(&url).unwrap());
        let (one, other) = (open(), open());
        let freshness = Freshness::new(seconds(10)).with_stale(seconds(100));
        let compute = |value: &'static str| move || value.as_bytes().to_vec();
        assert_eq!(one.get_or_refresh("key", freshness, compute("1")).unwrap(), b"1");
        assert_eq!(other.get_or_refresh("key", freshness, compute("not this")).unwrap(), b"1");
        clock.advance(seconds(10));
        assert_eq!(one.get_or_refresh("key", freshness, compute("2")).unwrap(), b"2");
        assert_eq!(other.get("key").unwrap().unwrap(), b"1");
        assert_eq!(other.get_or_refresh("key", freshness, compute("3")).unwrap(), b"2");
    }

    #[test]
    fn single_flight_over_processes_is_not_lost_by_compressing_or_recording() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).display().to_string();
        for options in ["compress=lz4".to_owned(), format!("record={}", at("trace"))] {
            let url = format!("file:{},size=1MiB,{options}", at("claims"));
            let store = open(&url);
            assert!(matches!(store.claim(b"key", None).unwrap(), haypile::Claim::Held { .. }));
        }
    }
}
