//! A store that compresses behaves like one that does not, except for the space that values take.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use haypile::compress::{CompressedStore, Compression};
use haypile::{Cache, Error, NoneStore, Registry, SetOptions, Store, Ttl, WriteMode, Written};
use haypile_policy::rules::memory::{MIN_SIZE_BYTES, OVERHEAD_BYTES};
use proptest::prelude::*;

use crate::hooked::{Hooked, When};

const MARKER: [u8; 4] = [0xF9, b'h', b'p', 0xF9];

fn set(store: &dyn Store, key: &[u8], value: &[u8]) {
    assert_eq!(store.set(key, value, &SetOptions::set()).unwrap(), Written::Stored);
}

/// A store that compresses, and the inner store.
fn pair(compression: &str) -> (Arc<CompressedStore>, Arc<dyn Store>) {
    let inner = Registry::new().open("memory:policy=lru,size=1MiB").unwrap();
    let compression: Compression = compression.parse().unwrap();
    (Arc::new(CompressedStore::new(inner.clone(), compression, 64)), inner)
}

#[derive(Clone, Debug)]
enum Op {
    Write {
        key: u8,
        value: Vec<u8>,
        mode: Mode,
        reserve: bool,
    },
    SetMany(Vec<(u8, Vec<u8>)>),
    Get(u8),
    GetMany(Vec<u8>),
    Incr(u8, u64),
    Decr(u8, u64),
    Touch(u8),
    Delete(u8),
    DeleteVersion(u8),
    /// With this value; without one, with that of the entry.
    CompareAndDelete(u8, Option<Vec<u8>>),
}

#[derive(Clone, Copy, Debug)]
enum Mode {
    Set,
    Add,
    Replace,
    Cas,
}

/// Values that are short or long, that compress or do not, and that look like stored forms.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let repeated = (any::<u8>(), 0..400_usize).prop_map(|(byte, count)| vec![byte; count]);
    let random = prop::collection::vec(any::<u8>(), 0..200);
    let marked =
        prop::collection::vec(any::<u8>(), 0..100).prop_map(|rest| [&MARKER[..], &rest].concat());
    let marked_repeated = (0..300_usize).prop_map(|count| [&MARKER[..], &vec![1; count]].concat());
    let number = any::<u64>().prop_map(|number| number.to_string().into_bytes());
    prop_oneof![repeated, random, marked, marked_repeated, number]
}

fn op() -> impl Strategy<Value = Op> {
    let key = || 0..5_u8;
    let mode = prop_oneof![Just(Mode::Set), Just(Mode::Add), Just(Mode::Replace), Just(Mode::Cas)];
    prop_oneof![
        6 => (key(), value(), mode, any::<bool>())
            .prop_map(|(key, value, mode, reserve)| Op::Write { key, value, mode, reserve }),
        2 => prop::collection::vec((key(), value()), 0..6).prop_map(Op::SetMany),
        6 => key().prop_map(Op::Get),
        2 => prop::collection::vec(key(), 0..8).prop_map(Op::GetMany),
        2 => (key(), any::<u64>()).prop_map(|(key, delta)| Op::Incr(key, delta)),
        2 => (key(), any::<u64>()).prop_map(|(key, delta)| Op::Decr(key, delta)),
        1 => key().prop_map(Op::Touch),
        1 => key().prop_map(Op::Delete),
        1 => key().prop_map(Op::DeleteVersion),
        2 => (key(), prop::option::of(value()))
            .prop_map(|(key, value)| Op::CompareAndDelete(key, value)),
    ]
}

/// Runs the same operations on a store that compresses and on a plain one: they have to agree in
/// everything but the bytes held.
fn run(ops: Vec<Op>, compression: &str) {
    let (compressed, _) = pair(compression);
    let plain = Registry::new().open("memory:policy=lru,size=1MiB").unwrap();
    let stores: [&dyn Store; 2] = [&*compressed, &*plain];
    let mut versions = HashMap::new();
    for op in ops {
        let [ours, theirs] = stores.map(|store| apply(store, &op, &mut versions));
        assert_eq!(ours, theirs, "{op:?}");
    }
    let [ours, theirs] = stores.map(|store| store.stats().unwrap());
    // A wrapped value is five bytes longer, and entries are charged in steps of 16.
    assert!(ours.bytes <= theirs.bytes + 16 * ours.entries);
    assert_eq!(ours, haypile_stats_with_bytes(theirs, ours.bytes));
}

fn haypile_stats_with_bytes(mut stats: haypile::Stats, bytes: u64) -> haypile::Stats {
    stats.bytes = bytes;
    stats
}

type Versions = HashMap<(usize, u8), haypile::Version>;

fn apply(store: &dyn Store, op: &Op, versions: &mut Versions) -> String {
    let id = std::ptr::from_ref(store).addr();
    match op {
        Op::Write { key, value, mode, reserve } => {
            let mut options = SetOptions::set();
            options.mode = match mode {
                Mode::Set => WriteMode::Set,
                Mode::Add => WriteMode::Add,
                Mode::Replace => WriteMode::Replace,
                Mode::Cas => {
                    versions.get(&(id, *key)).map_or(WriteMode::Set, |v| WriteMode::Cas(*v))
                }
            };
            if *reserve {
                let mut reservation = store.reserve(&[*key], value.len(), &options).unwrap();
                reservation.buffer().copy_from_slice(value);
                format!("{:?}", reservation.commit())
            } else {
                format!("{:?}", store.set(&[*key], value, &options))
            }
        }
        Op::SetMany(entries) => {
            let keys: Vec<[u8; 1]> = entries.iter().map(|(key, _)| [*key]).collect();
            let entries = keys
                .iter()
                .zip(entries)
                .map(|(key, (_, value))| (&key[..], value.as_slice(), SetOptions::set()));
            format!("{:?}", store.set_many(&entries.collect::<Vec<_>>()))
        }
        Op::Get(key) => {
            let mut value = b"left from before".to_vec();
            let hit = store.get_into(&[*key], &mut value).unwrap();
            if let Some(hit) = hit {
                versions.insert((id, *key), hit.version.unwrap());
            }
            let pinned = store.get_pinned(&[*key]).unwrap();
            assert_eq!(pinned.as_deref(), hit.map(|_| value.as_slice()));
            format!("{:?}", (hit.is_some(), value))
        }
        Op::GetMany(keys) => {
            let keys: Vec<[u8; 1]> = keys.iter().map(|key| [*key]).collect();
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            let found = store.get_many(&keys).unwrap();
            format!("{:?}", found.into_iter().map(|found| found.map(|f| f.0)).collect::<Vec<_>>())
        }
        Op::Incr(key, delta) => format!("{:?}", store.incr(&[*key], *delta).map_err(drop)),
        Op::Decr(key, delta) => format!("{:?}", store.decr(&[*key], *delta).map_err(drop)),
        Op::Touch(key) => format!("{:?}", store.touch(&[*key], Ttl::Never)),
        Op::Delete(key) => format!("{:?}", store.delete(&[*key])),
        Op::DeleteVersion(key) => {
            let version = versions.get(&(id, *key));
            format!("{:?}", version.map(|version| store.delete_version(&[*key], *version).unwrap()))
        }
        Op::CompareAndDelete(key, expected) => {
            let expected = expected.clone().or_else(|| store.get(&[*key]).unwrap());
            let deleted = store.compare_and_delete(&[*key], &expected.unwrap_or_default());
            format!("{:?}", deleted.unwrap())
        }
    }
}

proptest! {
    #[test]
    fn lz4_is_not_noticed(ops in prop::collection::vec(op(), 0..60)) {
        run(ops, "lz4");
    }

    #[test]
    fn zstd_is_not_noticed(ops in prop::collection::vec(op(), 0..60)) {
        run(ops, "zstd:1");
    }
}

#[test]
fn a_url_asks_for_it() {
    let cache = Cache::open("memory:size=1MiB,policy=lru,compress=zstd").unwrap();
    let url = "memory://?size=1MiB&policy=lru&compress=zstd:3&compress_min=256";
    assert_eq!(cache.store().describe(), url);
    assert_eq!(Registry::new().open(url).unwrap().describe(), url);
    let page = b"<li>a line that comes again</li>".repeat(1_000);
    cache.set("page", &page).unwrap();
    assert_eq!(cache.get("page").unwrap().unwrap(), page);
    assert!(cache.store().bytes().unwrap() < 1_000);
    cache.set("short", [b'a'; 255]).unwrap();
    assert!(cache.store().bytes().unwrap() > 255 + OVERHEAD_BYTES);
    assert!(cache.prometheus().unwrap().contains("compress=zstd:3"));
}

#[test]
fn whatever_was_written_before_can_be_read() {
    let (lz4, inner) = pair("lz4");
    let zstd = CompressedStore::new(inner.clone(), "zstd".parse().unwrap(), 64);
    let value = [b'a'; 1_000];
    set(&*inner, b"plain", &value);
    set(&*lz4, b"lz4", &value);
    set(&zstd, b"zstd", &value);
    for key in [&b"plain"[..], b"lz4", b"zstd"] {
        assert_eq!(zstd.get(key).unwrap().unwrap(), value);
        assert_eq!(lz4.get(key).unwrap().unwrap(), value);
    }
    assert!(inner.get(b"lz4").unwrap().unwrap().starts_with(&MARKER));
}

#[test]
fn equal_values_are_deleted_whatever_their_stored_form() {
    let (lz4, inner) = pair("lz4");
    let zstd = CompressedStore::new(inner.clone(), "zstd:19".parse().unwrap(), 64);
    let (value, other) = ([b'a'; 1_000], [b'b'; 1_000]);
    let writers: [&dyn Store; 3] = [&*inner, &*lz4, &zstd];
    for writer in writers {
        for deleter in [&*lz4 as &dyn Store, &zstd] {
            set(writer, b"key", &value);
            assert!(!deleter.compare_and_delete(b"key", &other).unwrap());
            assert!(deleter.compare_and_delete(b"key", &value).unwrap());
            assert!(!deleter.compare_and_delete(b"key", &value).unwrap());
        }
    }
    // One whose stored form is the expected value itself is not that value.
    set(&*lz4, b"key", &value);
    let form = inner.get(b"key").unwrap().unwrap();
    assert!(!lz4.compare_and_delete(b"key", &form).unwrap());
    assert!(lz4.contains(b"key").unwrap());
}

#[test]
fn a_value_that_is_written_during_the_comparison_is_compared_again() {
    let (store, hooked, memory) = hooked();
    let writer = CompressedStore::new(memory.clone(), "lz4".parse().unwrap(), 64);
    set(&store, b"key", &[b'a'; 1_000]);
    // The same value in another form.
    hooked.once(When::After("get"), move || set(&writer, b"key", &[b'a'; 1_000]));
    assert!(store.compare_and_delete(b"key", &[b'a'; 1_000]).unwrap());
    set(&store, b"key", &[b'a'; 1_000]);
    let writer = Arc::clone(&memory);
    hooked.once(When::After("get"), move || set(&*writer, b"key", &[b'b'; 1_000]));
    assert!(!store.compare_and_delete(b"key", &[b'a'; 1_000]).unwrap());
    assert_eq!(store.get(b"key").unwrap().unwrap(), [b'b'; 1_000]);
    let stats = store.stats().unwrap();
    assert_eq!((stats.hits, stats.deletes, stats.delete_misses), (1, 1, 1));
}

#[test]
fn a_damaged_value_is_a_miss_and_counted() {
    let (store, inner) = pair("zstd");
    let read: [&dyn Fn() -> bool; 3] = [
        &|| store.get(b"key").unwrap().is_some(),
        &|| store.get_pinned(b"key").unwrap().is_some(),
        &|| store.get_many(&[b"key"]).unwrap()[0].is_some(),
    ];
    for (times, is_hit) in (1..).zip(read) {
        set(&*store, b"key", &[b'a'; 1_000]);
        let mut form = inner.get(b"key").unwrap().unwrap();
        *form.last_mut().unwrap() ^= 1;
        set(&*inner, b"key", &form);
        assert!(!is_hit());
        assert!(!store.contains(b"key").unwrap());
        let stats = store.stats().unwrap();
        // The hits are this test's own reads of the inner store.
        assert_eq!((stats.corrupt, stats.misses, stats.hits), (times, times, times));
        assert_eq!((stats.deletes, stats.delete_misses), (0, 0));
        assert_eq!(store.stats_by_level().unwrap()[0].stats, stats);
    }
    let cache = Cache::new(store);
    set(&*inner, b"key", &[&MARKER[..], b"\x09 written by somebody else"].concat());
    assert_eq!(cache.get_or_compute("key", None, || b"new".to_vec()).unwrap(), b"new");
    assert_eq!(cache.get("key").unwrap().unwrap(), b"new");
}

/// Writes a value under `key` that cannot be decompressed, through a store that compresses into
/// `inner`.
fn put_damaged(store: &dyn Store, inner: &dyn Store, key: &[u8]) {
    set(store, key, &[b'a'; 1_000]);
    let mut form = inner.get(key).unwrap().unwrap();
    *form.last_mut().unwrap() ^= 1;
    set(inner, key, &form);
}

/// A store that compresses, its inner store, and the memory store under that.
fn hooked() -> (CompressedStore, Arc<Hooked>, Arc<dyn Store>) {
    let (_, memory) = pair("zstd");
    let hooked = Hooked::new(&memory);
    let inner = Arc::clone(&hooked) as Arc<dyn Store>;
    (CompressedStore::new(inner, "zstd".parse().unwrap(), 64), hooked, memory)
}

#[test]
fn a_value_that_is_set_after_a_damaged_one_was_read_stays() {
    let reads: [fn(&dyn Store) -> bool; 4] = [
        |store| store.get(b"key").unwrap().is_some(),
        |store| store.get_versioned_into(b"key", &mut Vec::new()).unwrap().is_some(),
        |store| store.get_pinned(b"key").unwrap().is_some(),
        |store| store.get_many(&[b"key"]).unwrap()[0].is_some(),
    ];
    for is_hit in reads {
        let (store, hooked, memory) = hooked();
        put_damaged(&store, &*memory, b"key");
        let writer = Arc::clone(&memory);
        hooked.once(When::After("get"), move || set(&*writer, b"key", b"new"));
        assert!(!is_hit(&store));
        assert_eq!(store.get(b"key").unwrap().unwrap(), b"new");
        let stats = store.stats().unwrap();
        assert_eq!((stats.corrupt, stats.deletes, stats.delete_misses), (1, 0, 0));
    }
}

#[test]
fn a_damaged_value_stays_where_versions_cannot_be_compared() {
    let (store, hooked, memory) = hooked();
    put_damaged(&store, &*memory, b"key");
    hooked.hook(|when| match when {
        When::Before(operation @ "delete_version") => {
            Err(Error::Unsupported { operation, store: "remote://".to_owned() })
        }
        _ => Ok(()),
    });
    // A deletion by another client is counted, and a failed one is not.
    assert!(!memory.delete(b"no such key").unwrap());
    for times in 1..3 {
        assert_eq!(store.get(b"key").unwrap(), None);
        assert!(memory.contains(b"key").unwrap());
        let stats = store.stats().unwrap();
        assert_eq!((stats.corrupt, stats.deletes, stats.delete_misses), (times, 0, 1));
    }
}

#[test]
fn a_damaged_value_without_a_version_is_deleted_by_its_key() {
    let levels = Registry::new().open("memory:size=1MiB,stale=1h+memory:size=1MiB").unwrap();
    let store = CompressedStore::new(Arc::clone(&levels), "zstd".parse().unwrap(), 64);
    put_damaged(&store, &*levels, b"key");
    // A copy that a write has put into the upper level has none.
    assert_eq!(levels.get_into(b"key", &mut Vec::new()).unwrap().unwrap().version, None);
    assert_eq!(store.get(b"key").unwrap(), None);
    assert!(!levels.contains(b"key").unwrap());
}

#[test]
fn limits_do_not_depend_on_what_is_in_a_value() {
    let inner = Registry::new().open(&format!("memory:size={MIN_SIZE_BYTES}")).unwrap();
    let store = CompressedStore::new(inner.clone(), Compression::Lz4, 64);
    let limit = usize::try_from(store.limits().max_value_bytes).unwrap();
    assert_eq!(limit as u64, inner.limits().max_value_bytes - 5);
    let rest: Vec<u8> = (0..251).cycle().step_by(7).take(limit - 4).collect();
    let marked = [&MARKER[..], &rest];
    for value in [vec![0; limit], marked.concat()] {
        set(&store, b"", &value);
        assert_eq!(store.get(b"").unwrap(), Some(value));
    }
    let options = SetOptions::set();
    for error in [
        store.set(b"", &vec![0; limit + 1], &options).unwrap_err(),
        store.reserve(b"", limit + 1, &options).map(drop).unwrap_err(),
        store.set_many(&[(b"", &vec![0; limit + 1], options)]).remove(0).unwrap_err(),
    ] {
        let Error::ValueTooLarge { value_bytes, limit_bytes, store } = error else {
            panic!("{error}");
        };
        assert_eq!((value_bytes, limit_bytes), (limit as u64 + 1, limit as u64));
        assert!(store.contains("compress=lz4"));
    }
}

#[test]
fn one_of_many_that_is_refused_leaves_the_others() {
    let inner = Registry::new().open(&format!("memory:size={MIN_SIZE_BYTES},policy=lru")).unwrap();
    let store = CompressedStore::new(inner, Compression::Lz4, 64);
    let options = SetOptions::set();
    let written = store.set_many(&[
        (b"a", &[b'a'; 500], options),
        (b"b", &[0; 2_000], options),
        (b"c", b"", options.with_ttl(Duration::ZERO)),
        (b"d", b"short", options),
    ]);
    assert!(matches!(
        written[..],
        [
            Ok(Written::Stored),
            Err(Error::ValueTooLarge { .. }),
            Err(Error::ZeroTtl),
            Ok(Written::Stored)
        ]
    ));
    assert_eq!(store.get(b"a").unwrap().unwrap(), [b'a'; 500]);
    assert_eq!(store.get(b"d").unwrap().unwrap(), b"short");
}

#[test]
fn a_reservation_is_refused_as_early_as_without() {
    let (store, _) = pair("lz4");
    for bytes in [0, 1_000] {
        let zero = SetOptions::set().with_ttl(Duration::ZERO);
        assert!(matches!(store.reserve(b"key", bytes, &zero).map(drop), Err(Error::ZeroTtl)));
        let long = vec![0; 65_536];
        let error = store.reserve(&long, bytes, &SetOptions::set()).map(drop).unwrap_err();
        assert!(matches!(error, Error::KeyTooLong { .. }));
    }
    drop(store.reserve(b"key", 1_000, &SetOptions::set()).unwrap());
    assert!(store.is_empty().unwrap());
    store.close().unwrap();
    let error = store.reserve(b"key", 1_000, &SetOptions::set()).map(drop).unwrap_err();
    assert!(matches!(error, Error::Closed { .. }));
}

#[test]
fn a_store_that_takes_anything_can_be_compressed_for() {
    let none: Arc<dyn Store> = Arc::new(NoneStore::new());
    let store = CompressedStore::new(none, Compression::Lz4, 0);
    set(&store, b"key", &[0; 10_000]);
    assert_eq!(store.get(b"key").unwrap(), None);
    assert_eq!(store.describe(), "none://?compress=lz4&compress_min=64");
}
