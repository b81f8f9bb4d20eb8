//! The memory store and a tiered store, under many interleavings of their threads, by the Shuttle
//! model checker: `RUSTFLAGS="--cfg shuttle" cargo test -p haypile --test interleavings`, or `make
//! test-full`.
//!
//! The bound holds at every step, no value is torn or freed under its reader, nobody waits forever, no
//! part of the size is lost, and no computation brings back what was removed after it began.

#![cfg(shuttle)]
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "support/without_leases.rs"]
mod without_leases;

use std::sync::{Arc, atomic};
use std::time::Duration;

use haypile::memory::MemoryBuilder;
use haypile::tier::{TierOptions, TieredStore};
use haypile::{Cache, Cursor, Durability, ManualClock, SetOptions, Store};
use haypile_policy::rules::memory::charge;
use shuttle::sync::atomic::{AtomicU8, Ordering};
use shuttle::thread;
use without_leases::WithoutLeases;

const ITERATIONS: usize = 2_000;

/// A store of two shards. The lowest bit of a key's last byte selects its shard.
fn store(size_bytes: u64, policy: &str) -> Arc<dyn Store> {
    let builder = MemoryBuilder::new(size_bytes).shards(2).policy(policy.parse().unwrap());
    let builder = builder.clock(Arc::new(ManualClock::new()));
    builder.fingerprint(|key| key.last().map_or(0, |byte| u64::from(*byte) << 40)).store().unwrap()
}

fn set(store: &dyn Store, key: &[u8], byte: u8, bytes: usize) {
    let _ = store.set(key, &vec![byte; bytes], &SetOptions::set()).unwrap();
}

fn whole(value: &[u8]) -> bool {
    value.windows(2).all(|pair| pair[0] == pair[1])
}

/// Checks that an entry that fits an empty store fits this one: no byte of its size was lost.
fn nothing_is_lost(store: &dyn Store) {
    store.clear().unwrap();
    let longest = usize::try_from(store.limits().max_value_bytes - 1).unwrap();
    set(store, b"l", 1, longest);
    assert!(store.contains(b"l").unwrap());
}

fn check(test: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(test, ITERATIONS);
    shuttle::check_pct(test, ITERATIONS, 3);
}

#[test]
fn writers_in_one_shard_and_a_reader() {
    for policy in ["s3fifo", "lru"] {
        let policy: &'static str = policy;
        check_with(policy, |policy| {
            let size_bytes = 4 * charge(1, 600);
            let store = store(size_bytes, policy);
            let writers: Vec<_> = (1..3_u8)
                .map(|byte| {
                    let store = Arc::clone(&store);
                    thread::spawn(move || {
                        for key in [b"a", b"c", b"e"] {
                            set(&*store, key, byte, 590 + usize::from(byte));
                            assert!(store.bytes().unwrap() <= size_bytes);
                        }
                    })
                })
                .collect();
            for key in [b"a", b"c"] {
                if let Some(value) = store.get(key).unwrap() {
                    assert!(whole(&value) && value.len() == 590 + usize::from(value[0]));
                }
            }
            for writer in writers {
                writer.join().unwrap();
            }
            nothing_is_lost(&*store);
        });
    }
}

fn check_with(policy: &'static str, test: fn(&'static str)) {
    shuttle::check_random(move || test(policy), ITERATIONS);
    shuttle::check_pct(move || test(policy), ITERATIONS, 3);
}

#[test]
fn two_entries_that_each_need_the_other_shard() {
    check(|| {
        // Without the other shard's bytes there is too little room for either.
        let size_bytes = charge(1, 3_000) + charge(1, 300);
        let store = store(size_bytes, "s3fifo");
        set(&*store, b"a", 1, 600);
        set(&*store, b"b", 1, 600);
        for (shard, key) in [(0, b"b"), (1, b"a")] {
            assert_eq!(store.keys(Cursor::new(shard, 0), 9).unwrap().keys, [key]);
        }
        let other = Arc::clone(&store);
        let thread = thread::spawn(move || set(&*other, b"b", 2, 3_000));
        set(&*store, b"a", 3, 3_000);
        assert!(store.bytes().unwrap() <= size_bytes);
        thread.join().unwrap();
        assert!(store.bytes().unwrap() <= size_bytes);
        for key in [b"a", b"b"] {
            assert!(store.get(key).unwrap().is_none_or(|value| whole(&value)));
        }
        nothing_is_lost(&*store);
    });
}

#[test]
fn a_value_is_read_in_place_while_it_leaves() {
    check(|| {
        let store = store(4 * charge(1, 600), "sieve");
        set(&*store, b"a", 1, 600);
        let reader = Arc::clone(&store);
        let reader = thread::spawn(move || {
            if let Some(pin) = reader.get_pinned(b"a").unwrap() {
                let byte = pin[0];
                thread::yield_now();
                assert!(pin.len() == 600 && pin.iter().all(|other| *other == byte));
            }
        });
        let deleter = Arc::clone(&store);
        let deleter = thread::spawn(move || deleter.delete(b"a").unwrap());
        set(&*store, b"a", 2, 600);
        reader.join().unwrap();
        deleter.join().unwrap();
        nothing_is_lost(&*store);
    });
}

#[test]
fn readers_that_mark_lines_and_a_writer() {
    check(|| {
        let store = store(4 * charge(1, 600), "sieve");
        set(&*store, b"a", 1, 600);
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let store = Arc::clone(&store);
                thread::spawn(move || {
                    let mut buffer = Vec::new();
                    for _ in 0..4 {
                        if store.get_into(b"a", &mut buffer).unwrap().is_some() {
                            assert!(whole(&buffer) && buffer.len() == 600);
                        }
                    }
                })
            })
            .collect();
        set(&*store, b"a", 2, 600);
        assert!(store.get(b"a").unwrap().is_none_or(|value| value == [2; 600]));
        store.delete(b"a").unwrap();
        assert!(store.get(b"a").unwrap().is_none());
        set(&*store, b"a", 3, 600);
        for reader in readers {
            reader.join().unwrap();
        }
        let stats = store.stats().unwrap();
        assert_eq!(stats.hits + stats.misses, 10);
        nothing_is_lost(&*store);
    });
}

#[test]
fn a_value_that_is_set_is_not_deleted_by_the_version_before_it() {
    check(|| {
        let store = store(8 * charge(1, 600), "s3fifo");
        set(&*store, b"a", 1, 600);
        let old = store.get_into(b"a", &mut Vec::new()).unwrap().unwrap().version.unwrap();
        let deleter = Arc::clone(&store);
        let deleter = thread::spawn(move || deleter.delete_version(b"a", old).unwrap());
        set(&*store, b"a", 2, 600);
        deleter.join().unwrap();
        assert_eq!(store.get(b"a").unwrap().unwrap(), [2; 600]);
        nothing_is_lost(&*store);
    });
}

#[test]
fn another_size_while_others_write() {
    // `bytes` reads one shard after the other: the sum is exact only when nobody writes.
    for (keys, is_in_one_shard) in [([b"a", b"c"], true), ([b"a", b"b"], false)] {
        check(move || {
            let (large, small) = (8 * charge(1, 600), 4 * charge(1, 600));
            let store = store(large, "s3fifo");
            let writers: Vec<_> = keys
                .into_iter()
                .map(|key| {
                    let store = Arc::clone(&store);
                    thread::spawn(move || {
                        for prefix in 0..3_u8 {
                            set(&*store, &[prefix, key[0]], prefix, 600);
                        }
                    })
                })
                .collect();
            store.resize(small).unwrap();
            assert!(!is_in_one_shard || store.bytes().unwrap() <= small);
            for writer in writers {
                writer.join().unwrap();
            }
            assert!(store.bytes().unwrap() <= small);
            store.resize(large).unwrap();
            nothing_is_lost(&*store);
        });
    }
}

#[test]
fn closing_while_others_work() {
    check(|| {
        let store = store(4 * charge(1, 600), "s3fifo");
        let other = Arc::clone(&store);
        let worker = thread::spawn(move || {
            let _ = other.set(b"a", &[1; 600], &SetOptions::set());
            drop(other.get(b"a"));
        });
        store.close().unwrap();
        worker.join().unwrap();
        assert_eq!(store.stats().unwrap().entries, 0);
    });
}

/// An upper level over a lower one, which nobody else writes.
fn levels() -> (Arc<dyn Store>, Arc<dyn Store>, Arc<TieredStore>) {
    let size_bytes = 8 * charge(1, 600);
    let (upper, lower) = (store(size_bytes, "s3fifo"), store(size_bytes, "s3fifo"));
    let options = TierOptions::new().stale(Duration::from_secs(1)).lower_ttl(None);
    let clock = Arc::new(ManualClock::new());
    let tiered = TieredStore::new(Arc::clone(&upper), Arc::clone(&lower), options, clock);
    (upper, lower, Arc::new(tiered))
}

#[test]
fn a_reader_of_levels_never_goes_back_and_they_end_alike() {
    check(|| {
        let (upper, lower, tiered) = levels();
        set(&*lower, b"a", 1, 1);
        let writers: Vec<_> = [[2, 3], [4, 5]]
            .into_iter()
            .map(|values| {
                let tiered = Arc::clone(&tiered);
                thread::spawn(move || {
                    for value in values {
                        set(&*tiered, b"a", value, 1);
                    }
                })
            })
            .collect();
        let read = || tiered.get(b"a").unwrap().unwrap()[0];
        let (first, second, third) = (read(), read(), read());
        // Each writer counts up; overwritten values must not come back.
        for values in [[1, 2, 3], [1, 4, 5]] {
            let seen: Vec<u8> =
                [first, second, third].into_iter().filter(|value| values.contains(value)).collect();
            assert!(seen.is_sorted(), "{first} {second} {third}");
        }
        for writer in writers {
            writer.join().unwrap();
        }
        let below = lower.get(b"a").unwrap().unwrap();
        assert_eq!(tiered.get(b"a").unwrap().unwrap(), below);
        assert!(upper.get(b"a").unwrap().is_none_or(|copy| copy[0] == below[0]));
    });
}

/// A test of few steps, so that the model checker runs the writer between any two steps of the
/// reader.
#[test]
fn a_read_that_is_overtaken_by_a_write_is_not_promoted() {
    check(|| {
        let (_, lower, tiered) = levels();
        set(&*lower, b"a", 1, 1);
        let writer = Arc::clone(&tiered);
        let writer = thread::spawn(move || set(&*writer, b"a", 2, 1));
        tiered.get(b"a").unwrap();
        writer.join().unwrap();
        assert_eq!(tiered.get(b"a").unwrap().unwrap(), [2]);
    });
}

/// Another process counts up below: nobody reads a number that is lower than one that was read before.
#[test]
fn readers_of_levels_do_not_go_back_while_another_process_writes() {
    check(|| {
        let (_, lower, tiered) = levels();
        set(&*lower, b"a", 1, 1);
        let seen = Arc::new(atomic::AtomicU8::new(1));
        let read = |tiered: &TieredStore, seen: &atomic::AtomicU8| {
            let before = seen.load(Ordering::Relaxed);
            let value = tiered.get(b"a").unwrap().unwrap()[0];
            assert!(value >= before, "{value} after {before}");
            seen.fetch_max(value, Ordering::Relaxed);
        };
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (tiered, seen) = (Arc::clone(&tiered), Arc::clone(&seen));
                thread::spawn(move || {
                    for _ in 0..2 {
                        read(&tiered, &seen);
                    }
                })
            })
            .collect();
        set(&*lower, b"a", 2, 1);
        read(&tiered, &seen);
        set(&*lower, b"a", 3, 1);
        for reader in readers {
            reader.join().unwrap();
        }
        read(&tiered, &seen);
    });
}

/// Another process overwrites a value of this one as soon as it is below.
#[test]
fn readers_of_levels_do_not_go_back_to_a_write_that_was_overwritten() {
    check(|| {
        let (_, lower, tiered) = levels();
        set(&*lower, b"a", 1, 1);
        let writer = Arc::clone(&tiered);
        let writer = thread::spawn(move || set(&*writer, b"a", 2, 1));
        let other = Arc::clone(&lower);
        let other = thread::spawn(move || {
            if other.get(b"a").unwrap().unwrap() == [2] {
                set(&*other, b"a", 3, 1);
            }
        });
        let mut before = 1;
        for _ in 0..3 {
            let value = tiered.get(b"a").unwrap().unwrap()[0];
            assert!(value >= before, "{value} after {before}");
            before = value;
        }
        writer.join().unwrap();
        other.join().unwrap();
    });
}

#[test]
fn what_is_deleted_or_cleared_in_levels_is_not_promoted() {
    check(|| {
        let (_, lower, tiered) = levels();
        set(&*lower, b"a", 1, 1);
        set(&*lower, b"b", 1, 1);
        let (deleter, clearer) = (Arc::clone(&tiered), Arc::clone(&tiered));
        let deleter = thread::spawn(move || {
            deleter.delete(b"a").unwrap();
            assert!(deleter.get(b"a").unwrap().is_none());
        });
        let clearer = thread::spawn(move || {
            clearer.clear().unwrap();
            assert!(clearer.get(b"b").unwrap().is_none());
        });
        for key in [b"a", b"b"] {
            tiered.get(key).unwrap();
        }
        deleter.join().unwrap();
        clearer.join().unwrap();
        assert!(tiered.get(b"a").unwrap().is_none() && tiered.get(b"b").unwrap().is_none());
    });
}

#[test]
fn what_waits_to_be_written_is_never_missed_and_never_comes_back() {
    check(|| {
        let size_bytes = 8 * charge(1, 600);
        let (upper, lower) = (store(size_bytes, "s3fifo"), store(size_bytes, "s3fifo"));
        set(&*lower, b"a", 1, 1);
        let options = TierOptions::new().stale(Duration::ZERO).lower_ttl(None);
        let options = options.write_back(Some(1 << 20));
        let clock = Arc::new(ManualClock::new());
        let tiered = Arc::new(TieredStore::new(upper, Arc::clone(&lower), options, clock));
        set(&*tiered, b"a", 2, 1);
        let flusher = Arc::clone(&tiered);
        let flusher = thread::spawn(move || flusher.flush(Durability::Visible).unwrap());
        let writer = Arc::clone(&tiered);
        let writer = thread::spawn(move || {
            assert!(writer.delete(b"a").unwrap());
            assert!(writer.get(b"a").unwrap().is_none());
            set(&*writer, b"a", 3, 1);
        });
        let seen = tiered.get(b"a").unwrap().map(|value| value[0]);
        assert!(matches!(seen, None | Some(2 | 3)), "{seen:?}");
        writer.join().unwrap();
        assert_eq!(tiered.get(b"a").unwrap().unwrap(), [3]);
        flusher.join().unwrap();
        tiered.flush(Durability::Visible).unwrap();
        assert_eq!(lower.get(b"a").unwrap().unwrap(), [3]);
    });
}

/// A computation that began before a removal leaves nothing behind it, even if it was overtaken. With no time
/// to wait, every caller that finds a computation overtakes it.
#[test]
fn what_was_removed_does_not_come_back_by_computations_that_were_overtaken() {
    let removals: [fn(&Cache); 2] =
        [|cache| assert!(cache.delete("a").is_ok()), |cache| cache.clear().unwrap()];
    for remove in removals {
        check(move || {
            let builder = MemoryBuilder::new(4 * charge(1, 600)).compute_wait(Duration::ZERO);
            let clock = Arc::new(ManualClock::new());
            let store = builder.clock(clock).store().unwrap();
            let cache = Cache::new(Arc::new(WithoutLeases(store)));
            // Of what values are computed.
            let source = Arc::new(AtomicU8::new(1));
            let computing: Vec<_> = (0..2)
                .map(|_| {
                    let (cache, source) = (cache.clone(), Arc::clone(&source));
                    thread::spawn(move || {
                        let compute = || vec![source.load(Ordering::SeqCst)];
                        cache.get_or_compute("a", None, compute).unwrap();
                    })
                })
                .collect();
            source.store(2, Ordering::SeqCst);
            remove(&cache);
            let is_new = || cache.get("a").unwrap().is_none_or(|value| value == [2]);
            assert!(is_new());
            for computing in computing {
                computing.join().unwrap();
            }
            assert!(is_new());
        });
    }
}
