//! Sharding affects nothing but speed: whatever fits the store is stored, the bound holds for every
//! writer, and the size can change in the meantime.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use haypile::memory::MemoryBuilder;
use haypile::{Cache, Error, SetOptions, Store};
use haypile_policy::rules::memory::charge;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const MIB: u64 = 1 << 20;

fn store(size_bytes: u64, shards: usize, policy: &str) -> Arc<dyn Store> {
    let builder = MemoryBuilder::new(size_bytes).shards(shards);
    builder.policy(policy.parse().unwrap()).store().unwrap()
}

/// Returns a value that repeats its key and its version in every byte after the first eight.
fn value(key: u64, version: u8, bytes: usize) -> Vec<u8> {
    let mut value = key.to_le_bytes().to_vec();
    value.resize(bytes.max(8), version);
    value
}

fn check(key: u64, value: &[u8]) {
    assert_eq!(value[..8], key.to_le_bytes(), "the value of another key");
    assert!(value[8..].windows(2).all(|pair| pair[0] == pair[1]), "a value of two writes");
}

/// Policies that accept an entry of any size. The others refuse one that outweighs one of their
/// queues, or that is not requested often enough, even with one shard.
const TAKE_ALL: [&str; 6] = ["fifo", "lru", "clock", "sieve", "s3fifo", "slru"];

#[test]
fn an_entry_that_fits_the_store_fits_whatever_shard_it_is_in() {
    for policy in TAKE_ALL {
        let cache = Cache::new(store(4 * MIB, 16, policy));
        fill(&cache, 20_000, 4 * MIB);
        let longest = usize::try_from(cache.store().limits().max_value_bytes - 3).unwrap();
        // The first needs all of the store, the others four times the shard's share.
        for (large, bytes) in [("one", longest), ("two", 1 << 20), ("six", 1 << 20)] {
            let value = vec![7; bytes];
            cache.set(large, &value).unwrap();
            assert!(cache.get(large).unwrap() == Some(value), "{policy} has not kept {large}");
            assert!(cache.store().bytes().unwrap() <= 4 * MIB);
        }
        assert!(cache.delete("six").unwrap());
        fill(&cache, 40_000, 4 * MIB);
    }
}

/// A thread counts most reads on a cache line of its own, and some of them next to its shard.
#[test]
fn reads_are_counted_whatever_number_of_threads_read() {
    let store = store(4 * MIB, 2, "s3fifo");
    let cache = Cache::new(Arc::clone(&store));
    for key in 0..100_u64 {
        cache.set(key.to_le_bytes(), value(key, 1, 50)).unwrap();
    }
    let (threads, reads) = (19, 3_000);
    thread::scope(|scope| {
        for thread in 0..threads {
            let store = &store;
            scope.spawn(move || {
                let mut buffer = Vec::new();
                for read in 0..reads {
                    let key: u64 = read % 150;
                    let found = store.get_into(&key.to_le_bytes(), &mut buffer).unwrap();
                    assert_eq!(found.is_some(), key < 100);
                    if found.is_some() {
                        check(key, &buffer);
                    }
                    if thread == 0 && read % 500 == 0 {
                        let _ = store.set(b"other", b"value", &SetOptions::set()).unwrap();
                    }
                }
            });
        }
    });
    let stats = store.stats().unwrap();
    assert_eq!((stats.hits, stats.misses), (2_000 * threads, 1_000 * threads));
}

/// Sets `entries` entries, more than fit, and checks that little of the size is unused.
fn fill(cache: &Cache, entries: u64, size_bytes: u64) {
    for key in 0..entries {
        cache.set(key.to_le_bytes(), value(key, 2, 300)).unwrap();
    }
    let bytes = cache.store().bytes().unwrap();
    let used = size_bytes * 9 / 10..=size_bytes;
    assert!(used.contains(&bytes), "{bytes} bytes in {}", cache.store().describe());
}

#[test]
fn shards_are_a_power_of_two_within_limits() {
    for shards in [0, 3, 2_048] {
        let error = MemoryBuilder::new(64 * MIB).shards(shards).store().unwrap_err();
        assert!(error.to_string().contains("power of two up to 1024"), "{error}");
    }
    assert!(MemoryBuilder::new(1_024).shards(2).store().is_err());
    assert_eq!(
        MemoryBuilder::new(MIB).shards(8).store().unwrap().describe(),
        "memory://?size=1MiB&policy=s3fifo&shards=8"
    );
    let error = Cache::open("memory:shards=5000").unwrap_err().to_string();
    assert!(error.contains("'5000' is not a whole number from 1 to 1024"), "{error}");
}

#[test]
fn a_store_grows_and_shrinks_while_it_is_used() {
    let cache = Cache::new(store(MIB, 4, "s3fifo"));
    fill(&cache, 20_000, MIB);
    cache.resize(4 * MIB).unwrap();
    assert_eq!(cache.store().describe(), "memory://?size=4MiB&policy=s3fifo&shards=4");
    fill(&cache, 20_000, 4 * MIB);
    cache.resize(MIB / 2).unwrap();
    assert!(cache.store().bytes().unwrap() <= MIB / 2);
    assert_eq!(cache.store().limits().capacity_bytes, Some(MIB / 2));
    fill(&cache, 20_000, MIB / 2);
    let error = cache.resize(1).unwrap_err();
    assert!(matches!(error, Error::SizeOutOfRange { min_bytes: 1_024, .. }), "{error}");
    assert!(cache.set("key", vec![0; 600_000]).is_err());
    cache.close().unwrap();
    assert!(matches!(cache.resize(MIB), Err(Error::Closed { .. })));
}

#[test]
fn a_pinned_value_stays_and_counts_until_it_is_let_go() {
    let cache = Cache::new(store(MIB, 1, "lru"));
    let large = vec![1; 900_000];
    cache.set("large", &large).unwrap();
    let pin = cache.get_pinned("large").unwrap().unwrap();
    let again = cache.get_pinned("large").unwrap().unwrap();
    cache.delete("large").unwrap();
    // It still occupies its room: nothing as large fits next to it.
    cache.set("next", vec![2; 900_000]).unwrap();
    assert_eq!(cache.get("next").unwrap(), None);
    assert_eq!(cache.stats().unwrap().declined, 1);
    cache.set("small", "value").unwrap();
    assert_eq!((&*pin, &*again), (&large[..], &large[..]));
    drop(pin);
    cache.set("next", vec![2; 900_000]).unwrap();
    assert_eq!(cache.get("next").unwrap(), None);
    drop(again);
    cache.set("next", vec![2; 900_000]).unwrap();
    assert!(cache.get("next").unwrap().is_some());
    // An overwritten value also stays with its reader.
    let pin = cache.get_pinned("next").unwrap().unwrap();
    cache.set("next", "new").unwrap();
    assert_eq!(pin[0], 2);
    cache.resize(MIB / 2).unwrap();
    assert_eq!(cache.get("small").unwrap(), None, "what is held takes more than there is");
    drop(pin);
    cache.set("small", "value").unwrap();
    assert_eq!(cache.get("small").unwrap().unwrap(), b"value");
}

#[test]
fn a_pinned_value_counts_in_addition_to_the_one_that_overwrites_it() {
    let cache = Cache::new(store(MIB, 1, "lru"));
    cache.set("large", vec![1; 600_000]).unwrap();
    let pin = cache.get_pinned("large").unwrap().unwrap();
    cache.set("large", vec![2; 600_000]).unwrap();
    assert_eq!((cache.get("large").unwrap(), pin[0]), (None, 1));
    drop(pin);
    cache.set("large", vec![3; 600_000]).unwrap();
    assert_eq!(cache.get("large").unwrap().unwrap()[0], 3);
}

/// The room for it comes from the free part of the store, and not from other entries of its shard.
#[test]
fn a_value_that_overwrites_a_pinned_one_evicts_nothing_while_there_is_room() {
    for policy in ["lru", "s3fifo", "wtinylfu"] {
        let cache = Cache::new(store(16 * MIB, 8, policy));
        let keys: Vec<String> = (0..40).map(|number| number.to_string()).collect();
        for key in &keys {
            cache.set(key, vec![1; 20_000]).unwrap();
        }
        for key in &keys {
            let pin = cache.get_pinned(key).unwrap().unwrap();
            cache.set(key, vec![2; 20_000]).unwrap();
            assert_eq!(pin[0], 1);
        }
        let stats = cache.stats().unwrap();
        assert_eq!((stats.evictions, stats.declined, stats.entries), (0, 0, 40), "{policy}");
        assert!(keys.iter().all(|key| cache.get(key).unwrap().is_some()), "{policy}");
    }
}

#[test]
fn a_store_that_was_made_smaller_keeps_the_bound_when_a_reader_lets_go() {
    let cache = Cache::new(store(MIB, 1, "lru"));
    cache.set("large", vec![1; 900_000]).unwrap();
    let pin = cache.get_pinned("large").unwrap().unwrap();
    cache.delete("large").unwrap();
    cache.resize(MIB / 2).unwrap();
    drop(pin);
    fill(&cache, 20_000, MIB / 2);
}

#[derive(Clone, Debug)]
enum Op {
    Set { key: u8, bytes: usize },
    Delete(u8),
    Pin(u8),
    Unpin,
    Resize(u64),
    Clear,
}

fn op() -> impl Strategy<Value = Op> {
    let bytes = prop_oneof![4 => 0..300_usize, 2 => 0..4_000_usize, 1 => 4_000..20_000_usize];
    prop_oneof![
        12 => (any::<u8>(), bytes).prop_map(|(key, bytes)| Op::Set { key, bytes }),
        2 => any::<u8>().prop_map(Op::Delete),
        3 => any::<u8>().prop_map(Op::Pin),
        2 => Just(Op::Unpin),
        1 => (4_000..40_000_u64).prop_map(Op::Resize),
        1 => Just(Op::Clear),
    ]
}

proptest! {
    /// Whatever is written, pinned and resized, and however keys spread, entries and pinned values
    /// stay within the size.
    #[test]
    fn the_bound_counts_what_readers_hold(
        shards in 0..4_u32,
        policy in prop::sample::select(vec!["s3fifo", "lru", "slru", "wtinylfu"]),
        ops in prop::collection::vec(op(), 0..200),
    ) {
        let store = store(20_000, 1 << shards, policy);
        let mut size_bytes = 20_000;
        let mut written: HashMap<u8, Vec<u8>> = HashMap::new();
// Pins with the bytes that they hold, once their entries have been removed.
        let mut pins = Vec::new();
        for (turn, op) in ops.iter().enumerate() {
            match *op {
                Op::Set { key, bytes } => {
                    let value = value(key.into(), turn.to_le_bytes()[0], bytes);
                    match store.set(&[key], &value, &haypile::SetOptions::set()) {
                        Ok(_) => drop(written.insert(key, value)),
                        Err(Error::ValueTooLarge { limit_bytes, .. }) => {
                            assert!(value.len() as u64 > limit_bytes);
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
                Op::Delete(key) => drop(store.delete(&[key]).unwrap()),
                Op::Pin(key) => {
                    if let Some(pin) = store.get_pinned(&[key]).unwrap() {
                        assert_eq!(*pin, written[&key]);
                        pins.push((pin, written[&key].clone()));
                    }
                }
                Op::Unpin => drop(pins.pop()),
                Op::Resize(bytes) => {
                    size_bytes = bytes;
                    store.resize(bytes).unwrap();
                }
                Op::Clear => store.clear().unwrap(),
            }
            assert!(pins.iter().all(|(pin, value)| **pin == *value));
// Removed values that are still pinned, each once.
            let mut held = BTreeMap::new();
            for (pin, value) in &pins {
                let name = &value[..1];
                if store.get(name).unwrap().is_none_or(|current| current != *value) {
                    held.insert(pin.as_ptr(), charge(1, value.len() as u64));
                }
            }
            let held: u64 = held.values().sum();
// After a resize, pinned values alone can exceed the size.
            assert!(store.bytes().unwrap() + held <= size_bytes.max(held));
        }
        drop(pins);
        store.clear().unwrap();
        assert_eq!(store.bytes().unwrap(), 0);
// No part of the size was lost: an entry that fits an empty store fits this one.
        let largest = usize::try_from(store.limits().max_value_bytes - 1).unwrap();
        let _ = store.set(b"l", &vec![0; largest], &haypile::SetOptions::set()).unwrap();
        assert!(store.contains(b"l").unwrap() || policy == "wtinylfu");
    }
}

/// Threads write, read, pin, delete, resize and clear; the reported sum never exceeds the largest
/// size of the store, values are intact, and no part of the size is lost.
#[test]
fn threads_that_do_everything_at_once() {
    for policy in ["s3fifo", "sieve", "clock", "lru", "slru", "arc"] {
        let store = store(MIB, 8, policy);
        let is_done = AtomicBool::new(false);
        let writes = AtomicU64::new(0);
        thread::scope(|scope| {
            let workers: Vec<_> = (0..4_u64)
                .map(|seed| {
                    let (store, writes) = (&store, &writes);
                    scope.spawn(move || work(store.as_ref(), seed, writes))
                })
                .collect();
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    // Shards are read one after the other, so that bytes that move between two of
                    // them can be counted twice or not at all; each shard alone is exact.
                    assert!(store.bytes().unwrap() <= 2 * MIB);
                    thread::yield_now();
                }
            });
            for worker in workers {
                worker.join().unwrap();
            }
            is_done.store(true, Ordering::Relaxed);
        });
        assert!(writes.load(Ordering::Relaxed) > 10_000);
        store.resize(MIB).unwrap();
        assert!(store.bytes().unwrap() <= MIB, "{policy}");
        store.clear().unwrap();
        let largest = usize::try_from(store.limits().max_value_bytes - 1).unwrap();
        let _ = store.set(b"l", &vec![0; largest], &haypile::SetOptions::set()).unwrap();
        assert!(store.contains(b"l").unwrap(), "{policy} lost a part of its size");
    }
}

fn work(store: &dyn Store, seed: u64, writes: &AtomicU64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut buffer = Vec::new();
    for turn in 0..6_000_u32 {
        let key = random.random_range(0..4_000_u64);
        let name = key.to_le_bytes();
        match random.random_range(0..100) {
            0..40 => {
                if store.get_into(&name, &mut buffer).unwrap().is_some() {
                    check(key, &buffer);
                }
            }
            40..90 => {
                let bytes = if turn % 500 == 0 { 300_000 } else { random.random_range(0..900) };
                let value = value(key, turn.to_le_bytes()[0], bytes);
                let _ = store.set(&name, &value, &haypile::SetOptions::set()).unwrap();
                writes.fetch_add(1, Ordering::Relaxed);
            }
            90..94 => {
                if let Some(pin) = store.get_pinned(&name).unwrap() {
                    let _ = store.delete(&name).unwrap();
                    check(key, &pin);
                }
            }
            94..98 => drop(store.delete(&name).unwrap()),
            98 => store.resize(random.random_range(600_000..=MIB)).unwrap(),
            _ => drop(store.keys(haypile::Cursor::default(), 100).unwrap()),
        }
    }
}
