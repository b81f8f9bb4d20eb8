//! Every method of [`Store`] reaches the store that a wrapper is around: no wrapper forgets one.
//!
//! The methods are those of the trait's source, so that a new one cannot be left out here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haypile::compress::{CompressedStore, Compression};
use haypile::record::{RecordOptions, RecordingStore};
use haypile::tier::{TierOptions, TieredStore};
use haypile::url::CacheUrl;
use haypile::{
    Claim, ClaimHolder, Cursor, Durability, Error, Found, Hit, Layer, Lease, LevelStats, Limits,
    NoneStore, OwnedPinned, Page, Pinned, Reservation, SetOptions, Stats, Store, SystemClock, Ttl,
    Version, Writers, Written,
};

type Result<T> = std::result::Result<T, Error>;

/// A store that notes which of its methods are called.
#[derive(Debug)]
struct Calls {
    inner: NoneStore,
    names: Mutex<Vec<&'static str>>,
}

impl Calls {
    fn new() -> Arc<Self> {
        Arc::new(Self { inner: NoneStore::new(), names: Mutex::default() })
    }

    fn note(&self, name: &'static str) -> &NoneStore {
        self.names.lock().unwrap().push(name);
        &self.inner
    }

    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.names.lock().unwrap())
    }
}

/// Writes each method so that it notes its name and calls the same of the store inside.
macro_rules! noted {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        impl Store for Calls {
            $(fn $name(&self, $($argument: $type),*) -> $result {
                self.note(stringify!($name)).$name($($argument),*)
            })*
        }
    };
}

noted! {
    fn url() -> CacheUrl;
    fn describe() -> String;
    fn limits() -> Limits;
    fn compression() -> Option<Compression>;
    fn get_into(key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>>;
    fn get_versioned_into(key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>>;
    fn get_if_changed_into(key: &[u8], version: Version, buffer: &mut Vec<u8>) -> Result<Option<Hit>>;
    fn get(key: &[u8]) -> Result<Option<Vec<u8>>>;
    fn get_pinned(key: &[u8]) -> Result<Option<Pinned<'_>>>;
    fn get_in_place(key: &[u8]) -> Result<Option<Pinned<'_>>>;
    fn get_in_place_verified(key: &[u8]) -> Result<Option<Pinned<'_>>>;
    fn set(key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written>;
    fn set_in_groups(key: &[u8], value: &[u8], options: &SetOptions, groups: &[&[u8]]) -> Result<Written>;
    fn invalidate(group: &[u8]) -> Result<()>;
    fn reserve(key: &[u8], value_bytes: usize, options: &SetOptions) -> Result<Box<dyn Reservation + '_>>;
    fn lease(key: &[u8]) -> Result<Lease>;
    fn check_lease(key: &[u8], lease: Lease, groups: &[&[u8]]) -> Result<bool>;
    fn delete(key: &[u8]) -> Result<bool>;
    fn delete_version(key: &[u8], version: Version) -> Result<bool>;
    fn compare_and_delete(key: &[u8], expected: &[u8]) -> Result<bool>;
    fn touch(key: &[u8], ttl: Ttl) -> Result<bool>;
    fn incr(key: &[u8], delta: u64) -> Result<Option<u64>>;
    fn decr(key: &[u8], delta: u64) -> Result<Option<u64>>;
    fn contains(key: &[u8]) -> Result<bool>;
    fn get_many(keys: &[&[u8]]) -> Result<Vec<Found>>;
    fn set_many(entries: &[(&[u8], &[u8], SetOptions)]) -> Vec<Result<Written>>;
    fn delete_many(keys: &[&[u8]]) -> Vec<Result<bool>>;
    fn clear() -> Result<()>;
    fn keys(from: Cursor, limit: usize) -> Result<Page>;
    fn len() -> Result<u64>;
    fn is_empty() -> Result<bool>;
    fn bytes() -> Result<u64>;
    fn stats() -> Result<Stats>;
    fn stats_by_level() -> Result<Vec<LevelStats>>;
    fn warnings() -> Vec<String>;
    fn writers() -> Vec<Writers>;
    fn flush(durability: Durability) -> Result<()>;
    fn claim(key: &[u8], take_over: Option<ClaimHolder>) -> Result<Claim<'_>>;
    fn await_claim(key: &[u8], holder: ClaimHolder, at_most: Duration) -> ();
    fn compute_wait() -> Duration;
    fn resize(size_bytes: u64) -> Result<()>;
    fn close() -> Result<()>;
}

/// Returns the names of the trait's methods, in the order of its source.
fn methods() -> Vec<&'static str> {
    let source = include_str!("../../src/store.rs");
    let from = source.find("pub trait Store").unwrap();
    let body = &source[from..from + source[from..].find("\n}\n").unwrap()];
    body.lines()
        .filter_map(|line| line.strip_prefix("    fn "))
        .map(|line| line.split(['(', '<']).next().unwrap())
        .collect()
}

/// Calls a method by its name.
fn call(store: &dyn Store, method: &str) {
    let (key, value, options) = (b"key".as_slice(), b"value".as_slice(), SetOptions::set());
    let holder = ClaimHolder::new(1, false);
    match method {
        "url" => drop(store.url()),
        "describe" => drop(store.describe()),
        "limits" => _ = store.limits(),
        "compression" => _ = store.compression(),
        "get_into" => _ = store.get_into(key, &mut Vec::new()),
        "get_versioned_into" => _ = store.get_versioned_into(key, &mut Vec::new()),
        "get_if_changed_into" => {
            _ = store.get_if_changed_into(key, Version::from_raw(1), &mut Vec::new());
        }
        "get" => drop(store.get(key)),
        "get_pinned" => drop(store.get_pinned(key)),
        "get_in_place" => drop(store.get_in_place(key)),
        "get_in_place_verified" => drop(store.get_in_place_verified(key)),
        "set" => _ = store.set(key, value, &options),
        "set_in_groups" => _ = store.set_in_groups(key, value, &options, &[b"group"]),
        "invalidate" => _ = store.invalidate(b"group"),
        "reserve" => drop(store.reserve(key, value.len(), &options)),
        "lease" => _ = store.lease(key),
        "check_lease" => _ = store.check_lease(key, Lease::from_bytes([0; Lease::BYTES]), &[]),
        "delete" => _ = store.delete(key),
        "delete_version" => _ = store.delete_version(key, Version::from_raw(1)),
        "compare_and_delete" => _ = store.compare_and_delete(key, value),
        "touch" => _ = store.touch(key, Ttl::Never),
        "incr" => _ = store.incr(key, 1),
        "decr" => _ = store.decr(key, 1),
        "contains" => _ = store.contains(key),
        "get_many" => drop(store.get_many(&[key])),
        "set_many" => drop(store.set_many(&[(key, value, options)])),
        "delete_many" => drop(store.delete_many(&[key])),
        "clear" => _ = store.clear(),
        "keys" => drop(store.keys(Cursor::default(), 1)),
        "len" => _ = store.len(),
        "is_empty" => _ = store.is_empty(),
        "bytes" => _ = store.bytes(),
        "stats" => drop(store.stats()),
        "stats_by_level" => drop(store.stats_by_level()),
        "warnings" => drop(store.warnings()),
        "writers" => drop(store.writers()),
        "flush" => _ = store.flush(Durability::Visible),
        "claim" => drop(store.claim(key, None)),
        "await_claim" => store.await_claim(key, holder, Duration::ZERO),
        "compute_wait" => _ = store.compute_wait(),
        "resize" => _ = store.resize(1 << 20),
        "close" => _ = store.close(),
        _ => panic!(
            "Store has a new method, '{method}': call it here, and forward it in `Layer` and `TieredStore`"
        ),
    }
}

/// Calls each method of a wrapper, and checks that it calls the same of the store inside, or those of `instead`.
/// Closing comes last in the trait's source.
fn check(wrapper: &dyn Store, inner: &Calls, instead: &[(&str, &[&str])]) {
    let instead: BTreeMap<_, _> = instead.iter().copied().collect();
    for method in methods() {
        inner.take();
        call(wrapper, method);
        let called = inner.take();
        match instead.get(method) {
            None => assert!(called.contains(&method), "{method} called {called:?}"),
            Some([]) => assert!(called.is_empty(), "{method} called {called:?}"),
            Some(expected) => {
                let all = expected.iter().all(|name| called.contains(name));
                assert!(all && !called.contains(&method), "{method} called {called:?}");
            }
        }
    }
}

const OWN_TEXT: (&str, &[&str]) = ("describe", &["url"]);
/// Into a buffer of its own.
const GET: (&str, &[&str]) = ("get", &["get_into"]);

#[test]
fn the_source_lists_the_methods() {
    let methods = methods();
    assert!(methods.len() > 30 && methods.contains(&"get_in_place"), "{methods:?}");
    assert_eq!(methods.last(), Some(&"close"));
}

#[test]
fn the_store_inside_notes_every_method() {
    let calls = Calls::new();
    check(&*calls, &calls, &[]);
}

#[derive(Debug)]
struct Nothing(Arc<Calls>);

impl Layer for Nothing {
    fn inner(&self) -> &dyn Store {
        &*self.0
    }
}

#[test]
fn a_layer_that_changes_nothing_forwards_everything() {
    let calls = Calls::new();
    check(&Nothing(Arc::clone(&calls)), &calls, &[OWN_TEXT, GET]);
}

#[test]
fn a_recording_forwards_everything() {
    let (calls, dir) = (Calls::new(), tempfile::tempdir().unwrap());
    let options = RecordOptions::new(dir.path().join("recording"));
    let clock = Arc::new(SystemClock::new());
    let recording =
        RecordingStore::new(Arc::clone(&calls) as Arc<dyn Store>, options, clock).unwrap();
    check(&recording, &calls, &[OWN_TEXT, GET]);
}

#[test]
fn a_compressed_store_forwards_everything() {
    let calls = Calls::new();
    let store = CompressedStore::new(Arc::clone(&calls) as Arc<dyn Store>, Compression::Lz4, 256);
    check(&store, &calls, &[OWN_TEXT, GET, ("compression", &[])]);
}

/// Returns a store of two levels, and both.
fn levels() -> (TieredStore, Arc<Calls>, Arc<Calls>) {
    let (upper, lower) = (Calls::new(), Calls::new());
    let level = |calls: &Arc<Calls>| Arc::clone(calls) as Arc<dyn Store>;
    let options = TierOptions::default();
    let tiered =
        TieredStore::new(level(&upper), level(&lower), options, Arc::new(SystemClock::new()));
    (tiered, upper, lower)
}

#[test]
fn levels_forward_everything_to_the_lower_level() {
    let (tiered, _, lower) = levels();
    let instead: &[(&str, &[&str])] = &[
        OWN_TEXT,
        GET,
        ("compression", &[]),
        // What the upper level does not have is copied there.
        ("get_pinned", &["get_into"]),
        ("get_in_place", &["get_into"]),
        ("get_in_place_verified", &["get_into"]),
        ("get_if_changed_into", &["get_versioned_into"]),
    ];
    check(&tiered, &lower, instead);
}

#[test]
fn levels_read_in_the_upper_level_first() {
    let (tiered, upper, _) = levels();
    let reads = methods().into_iter().filter(|method| method.starts_with("get_"));
    let versioned = ["get_versioned_into", "get_if_changed_into"];
    for method in reads.filter(|method| !versioned.contains(method)) {
        upper.take();
        call(&tiered, method);
        let called = upper.take();
        assert!(called.contains(&method), "{method} called {called:?}");
    }
    for method in ["clear", "stats", "stats_by_level", "warnings", "writers", "flush", "close"] {
        upper.take();
        call(&tiered, method);
        let called = upper.take();
        assert!(called.contains(&method), "{method} called {called:?}");
    }
}

/// A short value of a file stays in place also where its file compresses, records, or is the upper level.
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
#[test]
fn a_short_value_of_a_file_stays_in_place_under_every_wrapper() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    for url in [
        format!("file:{},size=4MiB", at("plain")),
        format!("file:{},size=4MiB,compress=lz4", at("compressed")),
        format!("file:{},size=4MiB,record={}", at("recorded"), at("recording")),
        format!("file:{},size=4MiB -> memory:size=4MiB", at("upper")),
    ] {
        let cache = haypile::Cache::open(&url).unwrap();
        cache.set("key", "a short value").unwrap();
        // A first read brings it into the upper level.
        assert!(cache.get("key").unwrap().is_some(), "{url}");
        let value: OwnedPinned = cache.get_in_place_owned("key").unwrap().unwrap();
        assert_eq!(&*value, b"a short value");
        assert!(format!("{value:?}").contains("copied: false"), "{url}: {value:?}");
    }
}
