//! The lock of a shard, whose readers write no memory that other threads write.
//!
//! A reader of an ordinary lock for readers and writers writes the lock's cache line twice, and all
//! readers write the same one. A lock of this kind can be biased towards readers: a reader then only
//! marks a line of its thread as inside, and a writer that finds the lock biased revokes the bias and
//! waits until no line is marked with its shard. D. Dice and A. Kogan, "BRAVO: Biased Locking for
//! Reader-Writer Locks", ATC 2019. Here the bias returns after a number of reads without a write in
//! between, and not after a time, so that no reader has to read a clock.
//!
//! This is the only `unsafe` of this module: a reader with a mark sees the value without the lock.
//!
//! A forked child has the marks of its parent's other threads, as it has the locks that they held. It
//! must not use the store that it inherited.

#![expect(unsafe_code, reason = "a value that readers reach without taking its lock")]

use std::cell::UnsafeCell;
use std::fmt;
use std::hint;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};
use std::thread;

use crate::mutant;
use crate::stats::{Event, Stats};
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, thread_number};

/// Reads without a write in between that bias a lock, for each line that a later writer has to read.
const READS_PER_LINE: usize = if cfg!(shuttle) { 0 } else { 16 };

/// Polls of a lock before the thread waits in the kernel: a microsecond to five, depending on the processor. A
/// write holds it for a fraction of one.
const POLLS: u32 = if cfg!(shuttle) { 0 } else { 100 };

/// Lines of a store at most: a writer reads all of them when it revokes a bias.
const MAX_LINES: usize = 128;

/// A thread's cache line in a store: whether the thread is reading a shard, and the counts of its
/// hits and misses.
///
/// Threads can share a line. Only the thread that has marked the line writes its counts.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct ReaderLine {
    /// The [number](BiasedLock::number) of the lock whose reader this is, or 0.
    inside: AtomicU32,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl ReaderLine {
    /// Returns the cache lines in which the threads that read a memory store mark and count their
    /// reads.
    pub(super) fn for_store() -> Arc<[Self]> {
        static LINES: OnceLock<usize> = OnceLock::new();
        let lines = *LINES.get_or_init(|| {
            let cpus = thread::available_parallelism().map_or(1, usize::from);
            // Twice as many as processors, so that few threads share one.
            (2 * cpus).next_power_of_two().min(MAX_LINES)
        });
        let lines = if cfg!(shuttle) { 2 } else { lines };
        (0..lines).map(|_| Self::default()).collect()
    }

    /// Adds the hits and misses that threads have counted in their lines to the store's statistics.
    pub(super) fn add_to(lines: &[Self], stats: &mut Stats) {
        for line in lines.iter().filter(|_| !mutant::is_on("marked-readers-are-not-counted")) {
            stats[Event::Hit] += line.hits.load(Ordering::Relaxed);
            stats[Event::Miss] += line.misses.load(Ordering::Relaxed);
        }
    }

    /// Counts a hit of the reader that has marked this line.
    #[inline]
    fn hit(&self) {
        self.hits.store(self.hits.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Counts a miss of the reader that has marked this line.
    #[inline]
    fn missed(&self) {
        self.misses.store(self.misses.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// A readers-writer lock that can be biased towards readers: they then mark their own cache line
/// instead of changing the lock.
pub(super) struct BiasedLock<T> {
    /// The lock that writers hold, and readers that have not marked a line.
    lock: RwLock<()>,
    /// Whether readers may mark a line in the place of taking the lock. Becomes true under the shared lock
    /// and false under the exclusive one.
    is_biased: AtomicBool,
    /// The approximate number of reads under the shared lock since the last write: readers that
    /// race count as one. Not zero while the lock is biased.
    reads: AtomicU32,
    /// The number that stands for this lock in a line; not zero.
    number: u32,
    lines: Arc<[ReaderLine]>,
    value: UnsafeCell<T>,
}

// SAFETY: `WriteGuard` gives exclusive access to the value, to one thread at a time, while no reader
// has access: see `write`. `ReadGuard` gives shared access, to several threads.
unsafe impl<T: Send + Sync> Sync for BiasedLock<T> {}

impl<T> BiasedLock<T> {
    /// Returns a readers-writer lock around `value`, in which readers use `lines`. `number` is
    /// below `u32::MAX`, and the locks with the same lines have different numbers.
    pub(super) fn new(value: T, number: u32, lines: Arc<[ReaderLine]>) -> Self {
        Self {
            lock: RwLock::new(()),
            is_biased: AtomicBool::new(false),
            reads: AtomicU32::new(0),
            number: number + 1,
            lines,
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for shared access to the value of this lock, for a short and frequent read, and
    /// returns a guard; such reads bias the lock towards readers.
    #[inline]
    pub(super) fn read_often(&self) -> ReadGuard<'_, T> {
        if self.is_biased.load(Ordering::Relaxed)
            && let Some(line) = self.enter()
        {
            return self.shared(ReadHold::Line(line));
        }
        let attempt = || if self.lock.is_locked_exclusive() { None } else { self.lock.try_read() };
        let held = self.lock.try_read().unwrap_or_else(|| poll(attempt, || self.lock.read()));
        let reads = self.reads.load(Ordering::Relaxed);
        if reads as usize <= READS_PER_LINE * self.lines.len() {
            self.reads.store(reads + 1, Ordering::Relaxed);
        } else if !self.is_biased.load(Ordering::Relaxed) {
            // The shared lock orders this after the last write, and a reader that sees it after this.
            self.is_biased.store(true, Ordering::SeqCst);
        }
        self.shared(ReadHold::Lock { _held: held })
    }

    /// Waits for shared access to the value of this readers-writer lock, and returns a guard of the
    /// access.
    pub(super) fn read(&self) -> ReadGuard<'_, T> {
        self.shared(ReadHold::Lock { _held: self.lock.read() })
    }

    /// Waits for exclusive access to the value of this readers-writer lock, and returns a guard of
    /// the access.
    #[inline]
    pub(super) fn write(&self) -> WriteGuard<'_, T> {
        let attempt = || if self.lock.is_locked() { None } else { self.lock.try_write() };
        let held = self.lock.try_write().unwrap_or_else(|| poll(attempt, || self.lock.write()));
        if self.reads.load(Ordering::Relaxed) > 0 {
            self.reads.store(0, Ordering::Relaxed);
            if self.is_biased.load(Ordering::Relaxed) {
                self.revoke();
            }
        }
        // SAFETY: nobody else holds the lock, and `revoke` has waited for each reader without it.
        WriteGuard { value: unsafe { &mut *self.value.get() }, _held: held }
    }

    /// Marks a line of this thread as inside; `None` if the line is taken, or the bias has been revoked.
    #[inline]
    fn enter(&self) -> Option<&ReaderLine> {
        let line = &self.lines[thread_number::get() & (self.lines.len() - 1)];
        let marked =
            line.inside.compare_exchange(0, self.number, Ordering::SeqCst, Ordering::Relaxed);
        if marked.is_err() {
            // Another thread reads on this line, or this thread reads within a read.
            thread_number::change();
            return None;
        }
        // Either this sees that the bias is revoked, or the writer sees the mark: the four accesses have
        // one order that all threads agree on.
        if self.is_biased.load(Ordering::SeqCst) || mutant::is_on("reader-enters-without-bias") {
            return Some(line);
        }
        line.inside.store(0, Ordering::Release);
        None
    }

    /// Waits for the readers that marked a line, and lets no other one do so. The caller holds the lock.
    #[cold]
    fn revoke(&self) {
        self.is_biased.store(false, Ordering::SeqCst);
        for line in &*self.lines {
            let mut polls = 0;
            // Acquires what a reader did before it removed its mark.
            while line.inside.load(Ordering::SeqCst) == self.number
                && !mutant::is_on("writer-does-not-wait-for-marked-readers")
            {
                crate::sync::wait(polls);
                polls += 1;
            }
        }
    }

    fn shared<'a>(&'a self, hold: ReadHold<'a>) -> ReadGuard<'a, T> {
        // SAFETY: a writer waits for the lock or the mark in `hold`, which the guard keeps as long as
        // this reference.
        ReadGuard { value: unsafe { &*self.value.get() }, hold }
    }
}

/// Takes a lock that another thread holds. Polls for less time than it takes to tell the kernel that this thread
/// waits, which `wait` does after a few polls of its own. `attempt` only looks while the lock is held, because more
/// would take the line from the thread that holds it.
#[cold]
fn poll<Held>(attempt: impl Fn() -> Option<Held>, wait: impl FnOnce() -> Held) -> Held {
    for _ in 0..POLLS {
        hint::spin_loop();
        if let Some(held) = attempt() {
            return held;
        }
    }
    wait()
}

impl<T> fmt::Debug for BiasedLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BiasedLock").field("number", &self.number).finish_non_exhaustive()
    }
}

/// The reason why no writer has access.
enum ReadHold<'a> {
    Line(&'a ReaderLine),
    Lock { _held: RwLockReadGuard<'a, ()> },
}

/// A guard of shared access to the value of a [`BiasedLock`], which ends when the guard is dropped.
pub(super) struct ReadGuard<'a, T> {
    value: &'a T,
    hold: ReadHold<'a>,
}

impl<T> ReadGuard<'_, T> {
    /// Counts a hit of the cache in this reader's own cache line; returns `false`, uncounted, if
    /// the reader has none.
    #[inline]
    pub(super) fn hit(&self) -> bool {
        let ReadHold::Line(line) = self.hold else { return false };
        line.hit();
        true
    }

    /// Counts a miss of the cache in this reader's own cache line; returns `false`, uncounted, if
    /// the reader has none.
    #[inline]
    pub(super) fn missed(&self) -> bool {
        let ReadHold::Line(line) = self.hold else { return false };
        line.missed();
        true
    }
}

impl<T> Deref for ReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> Drop for ReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if let ReadHold::Line(line) = self.hold {
            line.inside.store(0, Ordering::Release);
        }
    }
}

/// A guard of exclusive access to the value of a [`BiasedLock`], which ends when the guard is
/// dropped.
pub(super) struct WriteGuard<'a, T> {
    value: &'a mut T,
    _held: RwLockWriteGuard<'a, ()>,
}

impl<T> Deref for WriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> DerefMut for WriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn lock() -> BiasedLock<u32> {
        BiasedLock::new(7, 3, ReaderLine::for_store())
    }

    fn bias<T>(lock: &BiasedLock<T>) {
        for _ in 0..=READS_PER_LINE * lock.lines.len() + 1 {
            drop(lock.read_often());
        }
        assert!(lock.is_biased.load(Ordering::Relaxed));
    }

    #[test]
    fn reads_bias_a_lock_and_a_write_ends_that() {
        let lock = lock();
        assert!(!lock.read_often().hit());
        bias(&lock);
        assert!(lock.read_often().hit() && lock.read_often().missed());
        // A rare read takes the lock, and leaves the bias.
        assert!(!lock.read().hit());
        assert!(lock.read_often().hit());
        *lock.write() += 1;
        assert!(!lock.read_often().missed());
        bias(&lock);
        assert_eq!(*lock.read_often(), 8);
        let mut stats = Stats::default();
        ReaderLine::add_to(&lock.lines, &mut stats);
        assert_eq!((stats.hits, stats.misses), (2, 1));
    }

    #[test]
    fn a_read_within_a_read_takes_the_lock_where_its_line_is_taken() {
        let lines: Arc<[ReaderLine]> = [ReaderLine::default()].into();
        let [first, second] = [0, 1].map(|number| BiasedLock::new(7, number, Arc::clone(&lines)));
        bias(&first);
        bias(&second);
        let outer = first.read_often();
        assert!(outer.hit());
        let inner = second.read_often();
        assert!(!inner.hit());
        // The mark is that of another lock.
        drop(inner);
        *second.write() = 8;
        assert_eq!((*outer, *second.read_often()), (7, 8));
    }

    #[test]
    fn a_reader_that_panics_leaves() {
        let lock = lock();
        bias(&lock);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _inside = lock.read_often();
            panic!("as a clock may");
        }));
        assert!(panicked.is_err());
        *lock.write() = 8;
    }

    #[test]
    fn threads_that_write_exclude_all_others() {
        // More threads than lines, so that some share one.
        let lock = BiasedLock::new([0_u64; 8], 0, ReaderLine::for_store());
        let threads = 2 * lock.lines.len() + 2;
        let rounds = if cfg!(miri) { 20 } else { 20_000 };
        thread::scope(|scope| {
            for number in 0..threads {
                let lock = &lock;
                scope.spawn(move || {
                    for round in 0..rounds {
                        if number == 0 && round % 97 == 0 {
                            for word in lock.write().iter_mut() {
                                *word += 1;
                            }
                        }
                        let value = lock.read_often();
                        assert!(value.iter().all(|word| *word == value[0]), "{:?}", *value);
                    }
                });
            }
        });
        assert_eq!(lock.read()[0], u64::try_from(rounds).unwrap().div_ceil(97));
    }
}

/// The lock under the model checker Shuttle, whose readers and writers run in many interleavings.
#[cfg(all(test, shuttle))]
mod model {
    use shuttle::thread;

    use super::*;

    /// A value that a writer changes in two steps, with the model checker between them.
    #[derive(Default)]
    struct Pair([AtomicU32; 2]);

    impl Pair {
        fn read(&self) -> [u32; 2] {
            [0, 1].map(|half| self.0[half].load(Ordering::SeqCst))
        }

        fn raise(&mut self) {
            for half in &self.0 {
                half.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    fn check(test: fn()) {
        shuttle::check_random(test, 5_000);
        shuttle::check_pct(test, 5_000, 3);
    }

    fn read(lock: &BiasedLock<Pair>) -> u32 {
        let pair = lock.read_often();
        let [first, second] = pair.read();
        assert_eq!(first, second, "a writer is inside");
        first
    }

    #[test]
    fn no_reader_is_inside_with_a_writer() {
        check(|| {
            let lock = Arc::new(BiasedLock::new(Pair::default(), 0, ReaderLine::for_store()));
            let threads: Vec<_> = (0..3)
                .map(|number| {
                    let lock = Arc::clone(&lock);
                    thread::spawn(move || {
                        let mut last = 0;
                        for _ in 0..3 {
                            if number > 0 {
                                // What was written stays written.
                                last = (last..=4).find(|sum| *sum == read(&lock)).unwrap_or(last);
                            } else {
                                lock.write().raise();
                            }
                        }
                    })
                })
                .collect();
            read(&lock);
            read(&lock);
            lock.write().raise();
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(read(&lock), 4);
        });
    }

    #[test]
    fn a_reader_of_two_locks_does_not_wait_for_their_writers() {
        check(|| {
            let lines = ReaderLine::for_store();
            let locks = [0, 1].map(|number| {
                Arc::new(BiasedLock::new(Pair::default(), number, Arc::clone(&lines)))
            });
            for lock in &locks {
                read(lock);
                read(lock);
            }
            let writers = locks.clone().map(|lock| thread::spawn(move || lock.write().raise()));
            for lock in &locks {
                read(lock);
            }
            for writer in writers {
                writer.join().unwrap();
            }
            assert_eq!(locks.map(|lock| read(&lock)), [1, 1]);
        });
    }
}
