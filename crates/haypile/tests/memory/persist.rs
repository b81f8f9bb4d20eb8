//! A memory store comes back with the entries that its options keep.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use haypile::memory::snapshot::{EntryRef, SnapshotWriter, WriteOptions};
use haypile::memory::{MemoryBuilder, PersistOptions};
use haypile::{Cache, Clock, Durability, Error, ManualClock, OpenError};
use haypile_policy::rules::memory::charge;
use tempfile::TempDir;

struct Place {
    folder: TempDir,
    clock: Arc<ManualClock>,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), clock: Arc::default() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("cache.snapshot")
    }

    fn options(&self) -> PersistOptions {
        PersistOptions::new(self.path())
    }

    fn open(&self, size_bytes: u64, policy: &str, options: PersistOptions) -> Cache {
        let builder = MemoryBuilder::new(size_bytes).policy(policy.parse().unwrap());
        let builder = builder.clock(self.clock.clone()).persist(options);
        Cache::new(builder.store().unwrap())
    }

    /// Loads a snapshot of `keys` in the background, the last one first. The loading thread waits
    /// before the key "stop" until the returned sender is dropped.
    fn load_as_far_as_stop(&self, keys: &[&str]) -> (Cache, mpsc::Sender<()>) {
        let now = self.clock.wall();
        let write = WriteOptions::new(now, "memory://");
        let mut writer = SnapshotWriter::create(&self.path(), write).unwrap();
        for key in keys {
            let (key, value) = (key.as_bytes(), b"value".as_slice());
            writer
                .push(EntryRef { key, value, marks: &[], expires: None, written: now, uses: 1 })
                .unwrap();
        }
        writer.finish().unwrap();
        let (stopped, is_stopped) = mpsc::channel();
        let (go, wait) = mpsc::channel::<()>();
        let wait = Mutex::new(wait);
        let hasher = move |key: &[u8]| {
            if key == b"stop" {
                stopped.send(()).unwrap();
                let _ = wait.lock().unwrap().recv();
            }
            key.len() as u64
        };
        let options = self.options().in_background(true);
        let builder = MemoryBuilder::new(1 << 20).clock(self.clock.clone()).persist(options);
        let cache = Cache::new(builder.fingerprint(hasher).store().unwrap());
        is_stopped.recv().unwrap();
        (cache, go)
    }
}

fn keys(cache: &Cache) -> BTreeSet<String> {
    cache.keys().map(|key| String::from_utf8(key.unwrap()).unwrap()).collect()
}

#[test]
fn what_was_there_is_there_again_with_its_life() {
    let place = Place::new();
    let cache = place.open(1 << 20, "s3fifo", place.options());
    for number in 0..100 {
        cache.set(format!("key {number}"), format!("value {number}")).unwrap();
    }
    cache.set("", "").unwrap();
    cache.set_with_ttl("mortal", "1", Duration::from_secs(10)).unwrap();
    cache.set_with_ttl("gone", "1", Duration::from_secs(1)).unwrap();
    place.clock.advance(Duration::from_secs(4));
    cache.close().unwrap();

    let cache = place.open(1 << 20, "s3fifo", place.options());
    assert_eq!(cache.len().unwrap(), 102);
    assert_eq!(cache.get("key 42").unwrap().unwrap(), b"value 42");
    assert_eq!(cache.get("").unwrap().unwrap(), b"");
    let hit = cache.store().get_into(b"mortal", &mut Vec::new()).unwrap().unwrap();
    assert_eq!(hit.expires_in, Some(Duration::from_secs(6)));
    let stats = cache.stats().unwrap();
    let loading = stats.loading.expect("something was loaded");
    assert_eq!(loading.entries, stats.entries);
    assert!([loading.read_ns, loading.check_ns, loading.insert_ns].iter().all(|ns| *ns > 0));
    assert_eq!((stats.sets, stats.evictions), (0, 0), "loading does not use the cache");
    assert!(cache.store().warnings().is_empty());
    place.clock.advance(Duration::from_secs(6));
    assert_eq!(cache.get("mortal").unwrap(), None);
}

#[test]
fn a_store_that_is_dropped_is_saved_and_one_that_is_asked_to_is() {
    let place = Place::new();
    let cache = place.open(1 << 20, "lru", place.options());
    cache.set("a", "1").unwrap();
    cache.flush(Durability::Disk).unwrap();
    cache.set("b", "2").unwrap();
    assert_eq!(keys(&place.open(1 << 20, "lru", place.options())), ["a".to_owned()].into());
    drop(cache);
    let both = ["a".to_owned(), "b".to_owned()].into();
    assert_eq!(keys(&place.open(1 << 20, "lru", place.options())), both);
}

#[test]
fn the_url_says_all_of_it() {
    let place = Place::new();
    let path = place.path();
    let url = format!(
        "memory:size=1MiB,persist={},persist_max=64KiB,persist_age=1h,persist_load=background,\
         allow_shared=yes",
        path.display()
    );
    let cache = Cache::open(&url).unwrap();
    let name = cache.store().describe();
    let options = "&persist_max=64KiB&persist_age=1h&persist_load=background&allow_shared=yes";
    assert!(name.ends_with(options), "{name}");
    cache.set("key", "value").unwrap();
    cache.close().unwrap();
    let again = Cache::open(&name).unwrap();
    // A save waits for the end of loading.
    again.flush(Durability::Disk).unwrap();
    assert_eq!(again.get("key").unwrap().unwrap(), b"value");
}

/// A smaller store keeps the most used entries, under policies that know them. LIRS would refuse
/// all in a store of sixty entries: its queue of newcomers has room for less than one.
#[test]
fn a_smaller_store_takes_the_most_used() {
    for policy in ["lru", "slru", "clock", "sieve", "s3fifo", "arc", "wtinylfu"] {
        let place = Place::new();
        let large = place.open(1 << 20, policy, place.options());
        for number in 0..200 {
            large.set(format!("{number:03}"), [1; 100]).unwrap();
        }
        let often: BTreeSet<String> = (100..140).map(|number| format!("{number:03}")).collect();
        for _ in 0..3 {
            for key in &often {
                large.get(key).unwrap();
            }
        }
        large.close().unwrap();
        let small = place.open(60 * charge(3, 100), policy, place.options());
        let kept = keys(&small);
        assert!(kept.len() >= 50, "{policy} has loaded {}", kept.len());
        let most = often.intersection(&kept).count();
        assert!(most >= 38, "{policy} has kept {most} of 40");
        // They also stay when others arrive.
        for number in 0..30 {
            small.set(format!("new {number}"), [1; 99]).unwrap();
        }
        let most = often.intersection(&keys(&small)).count();
        assert!(most >= 25, "{policy} has kept {most} of 40 next to new ones");
    }
}

#[test]
fn what_is_written_is_bounded_by_bytes_and_by_age() {
    let place = Place::new();
    let options = || place.options().max_age(Duration::from_mins(1)).max_bytes(20_000);
    let cache = place.open(1 << 20, "lru", options());
    cache.set("old", "1").unwrap();
    place.clock.advance(Duration::from_secs(61));
    for number in 0..100 {
        cache.set(format!("{number:03}"), [1; 1_000]).unwrap();
    }
    cache.close().unwrap();
    let size = fs::metadata(place.path()).unwrap().len();
    assert!((15_000..=20_000).contains(&size), "{size}");
    let kept = keys(&place.open(1 << 20, "lru", options()));
    assert!(!kept.contains("old"));
    let youngest: BTreeSet<String> =
        (100 - kept.len()..100).map(|number| format!("{number:03}")).collect();
    assert_eq!(kept, youngest);
}

#[test]
fn a_file_that_cannot_be_read_is_a_warning_and_an_empty_cache() {
    let place = Place::new();
    let cache = place.open(1 << 20, "lru", place.options());
    cache.set("key", [7; 10_000]).unwrap();
    cache.close().unwrap();
    let whole = fs::read(place.path()).unwrap();
    for bytes in [&whole[..whole.len() / 2], b"garbage", &[0; 5_000]] {
        fs::write(place.path(), bytes).unwrap();
        let cache = place.open(1 << 20, "lru", place.options());
        assert!(cache.is_empty().unwrap());
        let warnings = cache.store().warnings();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].contains("cache.snapshot"), "{warnings:?}");
        cache.set("works", "all the same").unwrap();
    }
}

#[test]
fn the_file_of_another_program_is_not_overwritten() {
    let place = Place::new();
    fs::write(place.path(), "a thesis").unwrap();
    let cache = place.open(1 << 20, "lru", place.options());
    cache.set("key", "value").unwrap();
    let error = cache.close().unwrap_err();
    assert!(matches!(error, Error::Backend { .. }), "{error}");
    assert_eq!(fs::read(place.path()).unwrap(), b"a thesis");
    assert!(matches!(cache.get("key"), Err(Error::Closed { .. })));
}

/// Checks that a cache refuses a file that other users can write, with `reason`, and uses it if
/// that is allowed.
#[cfg(unix)]
fn is_used_only_if_allowed(place: &Place, reason: &str) {
    let says_all = |text: &str| {
        for part in [place.path().to_str().unwrap(), reason, "allow_shared=yes"] {
            assert!(text.contains(part), "'{text}' does not say '{part}'");
        }
    };
    let before = fs::read(place.path()).unwrap();
    let url = format!("memory:size=1MiB,policy=lru,persist={}", place.path().display());
    for cache in [place.open(1 << 20, "lru", place.options()), Cache::open(&url).unwrap()] {
        assert!(cache.is_empty().unwrap());
        let warnings = cache.store().warnings();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        says_all(&warnings[0]);
        cache.set("new", "value").unwrap();
        let errors = [cache.flush(Durability::Disk).unwrap_err(), cache.close().unwrap_err()];
        for error in errors {
            assert!(matches!(error, Error::Backend { .. }), "{error}");
            says_all(&error.to_string());
        }
        drop(cache);
        assert_eq!(fs::read(place.path()).unwrap(), before);
    }

    let cache = place.open(1 << 20, "lru", place.options().allow_shared(true));
    assert_eq!(keys(&cache), ["key".to_owned()].into());
    drop(cache);
    // It was replaced by a file of this user.
    let cache = place.open(1 << 20, "lru", place.options());
    assert_eq!(keys(&cache), ["key".to_owned()].into());
    assert!(cache.store().warnings().is_empty());
}

#[cfg(unix)]
#[test]
fn a_snapshot_that_others_can_write_is_used_only_if_that_is_allowed() {
    use std::os::unix::fs::PermissionsExt;

    for mode in [0o620, 0o602] {
        let place = Place::new();
        let cache = place.open(1 << 20, "lru", place.options());
        cache.set("key", "value").unwrap();
        cache.close().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).unwrap();
        let url = format!("memory:persist={},allow_shared=yes", place.path().display());
        assert_eq!(keys(&Cache::open(&url).unwrap()), ["key".to_owned()].into());
        fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).unwrap();
        is_used_only_if_allowed(&place, &format!("mode {mode:o}"));
    }
}

#[cfg(unix)]
#[test]
fn a_snapshot_of_another_user_is_used_only_if_that_is_allowed() {
    let place = Place::new();
    let cache = place.open(1 << 20, "lru", place.options());
    cache.set("key", "value").unwrap();
    cache.close().unwrap();
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can make a file of another user");
        return;
    }
    std::os::unix::fs::chown(place.path(), Some(65_533), None).unwrap();
    is_used_only_if_allowed(&place, "uid 65533");
}

#[test]
fn a_folder_that_is_not_there_is_an_error_at_the_start() {
    let options = PersistOptions::new(Path::new("/nowhere/at/all/cache.snapshot"));
    let error = MemoryBuilder::new(1 << 20).persist(options).store().unwrap_err();
    assert!(matches!(error, OpenError::Backend { .. }));
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}

/// Loading in the background does not undo later operations: an older value does not replace a
/// newer one, and a deleted key does not come back.
#[test]
fn what_happens_while_loading_wins() {
    let place = Place::new();
    let cache = place.open(8 << 20, "s3fifo", place.options());
    for number in 0..20_000 {
        cache.set(format!("{number:05}"), "old").unwrap();
    }
    cache.close().unwrap();
    let background = || place.options().in_background(true);
    let cache = place.open(8 << 20, "s3fifo", background());
    // The outcome is the same whether these come before or after loading.
    for number in 0..2_000 {
        let key = format!("{:05}", number * 10);
        if number % 2 == 0 {
            cache.set(&key, "new").unwrap();
        } else {
            cache.delete(&key).unwrap();
        }
    }
    // A save waits for the end of loading.
    cache.flush(Durability::Disk).unwrap();
    for number in 0..20_000 {
        let value = cache.get(format!("{number:05}")).unwrap();
        let expected: Option<&[u8]> = match number {
            _ if number % 20 == 0 => Some(b"new"),
            _ if number % 10 == 0 => None,
            _ => Some(b"old"),
        };
        assert_eq!(value.as_deref(), expected, "{number}");
    }
    cache.close().unwrap();

    let cache = place.open(8 << 20, "s3fifo", background());
    cache.clear().unwrap();
    cache.flush(Durability::Disk).unwrap();
    assert!(cache.is_empty().unwrap(), "what was cleared does not come back");
}

/// A key that is removed before its older value is loaded does not come back with it.
#[test]
fn a_key_that_leaves_while_loading_stays_away() {
    let second = Duration::from_secs(1);
    let expires = |cache: &Cache, clock: &ManualClock| {
        cache.set_with_ttl("key", "new", second).unwrap();
        clock.advance(second);
        assert_eq!(cache.get("key").unwrap(), None);
    };
    let is_deleted = |cache: &Cache, _: &ManualClock| {
        assert!(!cache.delete("key").unwrap());
    };
    let is_cleared = |cache: &Cache, _: &ManualClock| cache.clear().unwrap();
    for change in [&expires as &dyn Fn(&Cache, &ManualClock), &is_deleted, &is_cleared] {
        let place = Place::new();
        let (cache, go) = place.load_as_far_as_stop(&["key", "stop"]);
        change(&cache, &place.clock);
        drop(go);
        // A save waits for the end of loading.
        cache.flush(Durability::Disk).unwrap();
        assert_eq!(cache.get("key").unwrap(), None);
    }
}

/// If keys share a fingerprint, a snapshot may contain a key twice.
#[test]
fn what_is_deleted_by_its_version_while_loading_does_not_come_back() {
    let place = Place::new();
    let (cache, go) = place.load_as_far_as_stop(&["key", "stop", "key"]);
    let version = cache.get_versioned("key").unwrap().unwrap().1;
    assert!(cache.store().delete_version(b"key", version).unwrap());
    drop(go);
    // A save waits for the end of loading.
    cache.flush(Durability::Disk).unwrap();
    assert_eq!(keys(&cache), ["stop".to_owned()].into());
}

/// A store that nobody holds any longer stops loading, and the unloaded entries are not lost: the
/// file stays as it was.
#[test]
fn a_store_that_is_dropped_while_it_loads_is_not_saved() {
    let place = Place::new();
    let cache = place.open(1 << 20, "lru", place.options());
    for number in 0..100 {
        cache.set(format!("old {number}"), "value").unwrap();
    }
    cache.close().unwrap();
    let before = fs::read(place.path()).unwrap();

    // The loading thread hashes keys: it stops at the fiftieth until `go` is dropped. When the
    // store and its hasher are gone, nobody sends to `end` any longer.
    let (stopped, is_stopped) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let (alive, end) = mpsc::channel::<()>();
    let (count, wait, alive) = (AtomicUsize::new(0), Mutex::new(wait), Mutex::new(alive));
    let hasher = move |key: &[u8]| {
        let _ = &alive;
        if key.starts_with(b"old") && count.fetch_add(1, Ordering::Relaxed) == 50 {
            stopped.send(()).unwrap();
            let _ = wait.lock().unwrap().recv();
        }
        key.iter().fold(0_u64, |sum, &byte| sum.wrapping_mul(257).wrapping_add(byte.into()))
    };
    let options = place.options().in_background(true);
    let builder = MemoryBuilder::new(1 << 20).clock(place.clock.clone()).persist(options);
    let cache = Cache::new(builder.fingerprint(hasher).store().unwrap());
    is_stopped.recv().unwrap();
    cache.set("new", "value").unwrap();
    drop(cache);
    drop(go);
    assert!(end.recv().is_err(), "nothing is sent");
    assert!(fs::read(place.path()).unwrap() == before, "the file was written again");
}

#[test]
fn a_flush_to_disk_needs_a_file() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
    let cache = Cache::new(MemoryBuilder::new(1 << 20).clock(clock).store().unwrap());
    cache.flush(Durability::Visible).unwrap();
    let error = cache.flush(Durability::Disk).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }));
    assert!(error.to_string().contains("persist="), "{error}");
}
