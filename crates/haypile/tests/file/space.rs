//! A file system that takes room for each page that is written, as btrfs does: with too little of it,
//! nothing is written. `volumes` has a real one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haypile::file::hooks::set_free_bytes;
use haypile::{Cache, Claim, Error, ManualClock, Registry, SetOptions, Store, Ttl};
use tempfile::TempDir;

use crate::work;

const SECOND: Duration = Duration::from_secs(1);
const ENOUGH: u64 = 64 << 20;

struct Setting {
    directory: TempDir,
    registry: Registry,
    clock: Arc<ManualClock>,
}

impl Setting {
    fn new() -> Self {
        set_free_bytes(Some(2 * ENOUGH));
        let clock = Arc::new(ManualClock::new());
        let registry = Registry::new().with_clock(Arc::clone(&clock) as _);
        Self { directory: tempfile::tempdir().expect("a directory"), registry, clock }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    fn open(&self) -> Arc<dyn Store> {
        let url = format!("file://{}?size=1MiB", self.path().display());
        self.registry.open(&url).expect("a store")
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(self.path()).expect("its bytes")
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        set_free_bytes(None);
    }
}

fn set(store: &dyn Store, key: &[u8], value: &[u8]) {
    assert!(store.set(key, value, &SetOptions::set()).expect("a write").is_stored());
}

/// Everything that a program can ask for, while nothing can be written.
fn use_all(store: &dyn Store) {
    let refused = |outcome: Result<(), Error>| {
        let error = outcome.expect_err("nothing can be written").to_string();
        assert!(
            error.contains("lies on btrfs") && error.contains("67108864 bytes are free"),
            "{error}"
        );
    };
    refused(store.set(b"key", b"another", &SetOptions::set()).map(drop));
    refused(store.delete(b"key").map(drop));
    refused(store.incr(b"count", 1).map(drop));
    refused(store.touch(b"key", Ttl::from(None)).map(drop));
    refused(store.clear());
    assert_eq!(store.get(b"key").expect("a read").as_deref(), Some(&b"value"[..]));
    assert_eq!(store.get(b"missing").expect("a read"), None);
    assert!(store.contains(b"key").expect("a read"));
    assert!(store.get_pinned(b"long").expect("a read").is_some());
    assert_eq!(store.len().expect("a count"), 3);
    assert_eq!(store.stats().expect("counts").entries, 3);
    assert!(matches!(store.claim(b"computed", None), Ok(Claim::Unneeded)));
    assert!(
        store.warnings()[0].contains("this process only reads the cache until"),
        "{:?}",
        store.warnings()
    );
}

fn filled(setting: &Setting) -> Arc<dyn Store> {
    let store = setting.open();
    set(&*store, b"key", b"value");
    set(&*store, b"count", b"1");
    set(&*store, b"long", &work::value(1, 70_000));
    store
}

#[test]
fn a_file_on_btrfs_is_warned_of() {
    let setting = Setting::new();
    let warnings = setting.open().warnings();
    assert!(warnings[0].contains("lies on btrfs") && warnings[0].contains("fewer than 67108864"));
    set_free_bytes(None);
    assert_eq!(setting.open().warnings(), [""; 0]);
}

#[test]
fn while_space_is_low_nothing_is_written_and_what_is_there_is_read() {
    let setting = Setting::new();
    let store = filled(&setting);
    let cache = Cache::new(setting.open());
    for round in 0..3 {
        set_free_bytes(Some(ENOUGH - 1));
        // It is asked for once in a second.
        set(&*store, b"key", b"value");
        setting.clock.advance(SECOND);
        let before = setting.bytes();
        use_all(&*store);
        let computed = cache.get_or_compute("computed", None, || b"anything".to_vec());
        assert_eq!(computed.expect("a value"), b"anything");
        // Opening it, and ending, write nothing either.
        let other = setting.open();
        use_all(&*other);
        drop(other);
        setting.clock.advance(SECOND);
        use_all(&*store);
        assert!(setting.bytes() == before, "something was written in round {round}");
        set_free_bytes(Some(ENOUGH));
        setting.clock.advance(SECOND);
        set(&*store, b"key", b"value");
        assert!(store.warnings()[0].contains("while fewer than"), "{:?}", store.warnings());
        assert_eq!(store.incr(b"count", 1).expect("a count"), Some(2 + round));
    }
    let stat = haypile::file::FileStat::of(&setting.path()).expect("a report");
    assert!(stat.processes.len() <= 2, "owner slots were given back: {:?}", stat.processes);
}

#[test]
fn a_store_that_ends_while_space_is_low_writes_nothing() {
    let setting = Setting::new();
    let (store, other) = (filled(&setting), setting.open());
    set_free_bytes(Some(0));
    let before = setting.bytes();
    store.close().expect("closed");
    drop((store, other));
    assert!(setting.bytes() == before);
    set_free_bytes(Some(ENOUGH));
    set(&*setting.open(), b"key", b"value");
}

#[test]
fn a_file_is_made_where_enough_stays_free() {
    let setting = Setting::new();
    set_free_bytes(Some(ENOUGH + (1 << 20) - 1));
    let url = |path: &Path| format!("file://{}?size=1MiB", path.display());
    let error = setting.registry.open(&url(&setting.path())).expect_err("too little").to_string();
    assert!(error.contains("needs 67108864 in addition"), "{error}");
    assert_eq!(fs::read_dir(setting.directory.path()).expect("a folder").count(), 0);
    set_free_bytes(Some(ENOUGH + (1 << 20)));
    assert!(setting.registry.open(&url(&setting.path())).is_ok());
}
