//! Operations during saving or loading never cost an entry.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use haypile::memory::{MemoryBuilder, PersistOptions};
use haypile::{Cache, Clock, Durability};
use tempfile::TempDir;

/// A clock whose time of day takes a while to read when told so: a save reads it first.
#[derive(Debug, Default)]
struct HeldClock {
    is_held: AtomicBool,
    waiting: AtomicUsize,
}

impl HeldClock {
    fn hold(&self) {
        self.is_held.store(true, Ordering::SeqCst);
    }

    fn let_go(&self) {
        self.is_held.store(false, Ordering::SeqCst);
    }

    fn await_a_save(&self) {
        while self.waiting.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
    }
}

impl Clock for HeldClock {
    fn now_ns(&self) -> u64 {
        0
    }

    fn wall(&self) -> SystemTime {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        while self.is_held.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        SystemTime::UNIX_EPOCH
    }
}

struct Place {
    folder: TempDir,
    clock: Arc<HeldClock>,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), clock: Arc::default() }
    }

    fn options(&self) -> PersistOptions {
        let path: PathBuf = self.folder.path().join("cache.snapshot");
        PersistOptions::new(path)
    }

    fn open(&self, options: PersistOptions) -> Cache {
        let builder = MemoryBuilder::new(8 << 20).shards(4).clock(self.clock.clone());
        Cache::new(builder.persist(options).store().unwrap())
    }

    /// Returns a store that has 5,000 entries.
    fn filled(&self) -> Cache {
        let cache = self.open(self.options());
        for number in 0..5_000 {
            cache.set(format!("{number}"), "value").unwrap();
        }
        cache
    }
}

/// Gives other threads time to do the wrong thing. A correct operation does not end before
/// `is_done`; only a wrong one returns at once.
fn wait_in_vain(is_done: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_millis(50);
    while !is_done() && Instant::now() < end {
        thread::yield_now();
    }
}

#[test]
fn a_store_that_is_closed_while_it_loads_saves_all() {
    let place = Place::new();
    place.filled().close().unwrap();
    for _ in 0..5 {
        let cache = place.open(place.options().in_background(true));
        cache.close().unwrap();
    }
    assert_eq!(place.open(place.options()).len().unwrap(), 5_000);
}

#[test]
fn a_store_that_is_closed_by_two_is_saved_whole() {
    let place = Place::new();
    let cache = place.filled();
    place.clock.hold();
    thread::scope(|scope| {
        let first = scope.spawn(|| cache.close());
        place.clock.await_a_save();
        let second = scope.spawn(|| cache.close());
        wait_in_vain(|| second.is_finished());
        place.clock.let_go();
        first.join().unwrap().unwrap();
        second.join().unwrap().unwrap();
    });
    assert_eq!(place.open(place.options()).len().unwrap(), 5_000);
}

#[test]
fn a_flush_that_waits_while_the_store_is_closed_does_not_save_what_is_left() {
    let place = Place::new();
    let cache = place.filled();
    place.clock.hold();
    thread::scope(|scope| {
        let first = scope.spawn(|| cache.flush(Durability::Disk));
        place.clock.await_a_save();
        // This thread found the store open, and waits for the first one.
        let second = scope.spawn(|| cache.flush(Durability::Disk));
        wait_in_vain(|| second.is_finished());
        let closing = scope.spawn(|| cache.close());
        wait_in_vain(|| closing.is_finished());
        place.clock.let_go();
        first.join().unwrap().unwrap();
        let _ = second.join().unwrap();
        closing.join().unwrap().unwrap();
    });
    assert_eq!(place.open(place.options()).len().unwrap(), 5_000);
}

/// A pinned value cannot make room: if a save pinned all of them, each write would evict everything
/// and still find no room.
#[test]
fn a_full_store_that_is_saved_takes_writes_and_stays_full() {
    for shards in [1, 4] {
        let place = Place::new();
        let builder = MemoryBuilder::new(4 << 20).shards(shards).persist(place.options());
        let cache = Cache::new(builder.store().unwrap());
        let mut number = 0;
        let mut write = || {
            number += 1;
            cache.set(format!("{number}"), [0; 100]).unwrap();
        };
        for _ in 0..40_000 {
            write();
        }
        let full = cache.len().unwrap();
        thread::scope(|scope| {
            let saves = scope.spawn(|| {
                for _ in 0..4 {
                    cache.flush(Durability::Disk).unwrap();
                }
            });
            while !saves.is_finished() {
                write();
                let left = cache.len().unwrap();
                assert!(left > full / 10 * 9, "{left} of {full} entries are left");
            }
        });
    }
}
