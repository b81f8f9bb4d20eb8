//! The locks that order changes of a key; the protocol is in the [module](super).

use xxhash_rust::xxh3::xxh3_64;

use crate::mutant;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// Locks over which keys are spread. Two writers rarely share one, and all of them take 16 KiB.
#[cfg(not(shuttle))]
const STRIPES: usize = 256;
/// Few, because the model checker explores each lock.
#[cfg(shuttle)]
const STRIPES: usize = 2;

#[derive(Debug)]
pub(super) struct Stripes(Box<[Stripe]>);

/// On a cache line of its own, because every change of a key writes the number.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Stripe {
    /// The number of changes: odd while a key is changed, and another number after it. A read that
    /// returns a value without putting a copy into the upper level adds two.
    changes: AtomicU64,
    /// The lock that a change holds, even while it waits for the lower level.
    lock: Mutex<()>,
    /// The lock that is held while a copy is put into the upper level, or removed by a read; never while anything waits
    /// for the lower level.
    copies: Mutex<()>,
}

/// The state of a key's stripe (its count of changes) that a reader records before it reads the key
/// from the lower level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    stripe: usize,
    changes: u64,
}

/// The exclusive right to change the keys of one stripe (a part of all keys) in a store of two
/// levels, until it is dropped.
pub(super) struct HeldStripe<'a> {
    stripe: &'a Stripe,
    /// The number of changes that the stripe must still have when a copy of this change is put.
    changes: u64,
    _lock: MutexGuard<'a, ()>,
}

/// The right to put or remove copies in the upper level for the keys of one stripe (a part of all
/// keys).
pub(super) struct HeldCopies<'a>(#[expect(dead_code, reason = "it is dropped")] MutexGuard<'a, ()>);

impl Stripes {
    pub(super) fn new() -> Self {
        Self((0..STRIPES).map(|_| Stripe::default()).collect())
    }

    fn of(key: &[u8]) -> usize {
        usize::try_from(xxh3_64(key) % STRIPES as u64).expect("less than STRIPES")
    }

    /// Returns the state of a key's stripe (its count of changes), to be compared after the key is
    /// read from the lower level.
    pub(super) fn note(&self, key: &[u8]) -> Note {
        let stripe = Self::of(key);
        // The read below comes after this load: if it overlaps a change whose end this load does
        // not see, the number will differ.
        Note { stripe, changes: self.0[stripe].changes.load(Ordering::Acquire) }
    }

    /// Waits for the exclusive right to change a key, which is the lock of the key's stripe (a part
    /// of all keys), and returns a guard of the right.
    pub(super) fn hold(&self, key: &[u8]) -> HeldStripe<'_> {
        self.hold_stripe(Self::of(key))
    }

    /// Waits for the exclusive right to change all of these keys, by locking their stripes (parts
    /// of all keys) in order, which prevents deadlocks; returns the locks.
    pub(super) fn hold_many<'a>(
        &self,
        keys: impl Iterator<Item = &'a [u8]>,
    ) -> Vec<HeldStripe<'_>> {
        let mut stripes: Vec<usize> = keys.map(Self::of).collect();
        stripes.sort_unstable();
        stripes.dedup();
        stripes.into_iter().map(|stripe| self.hold_stripe(stripe)).collect()
    }

    /// Returns, of the locked stripes (parts of all keys), the stripe that a key belongs to.
    pub(super) fn among<'a, 'b>(
        &self,
        held: &'b [HeldStripe<'a>],
        key: &[u8],
    ) -> &'b HeldStripe<'a> {
        let stripe = &self.0[Self::of(key)];
        let is_own = |held: &&HeldStripe<'_>| std::ptr::eq(held.stripe, stripe);
        held.iter().find(is_own).expect("the stripe of each key is held")
    }

    /// Waits for the exclusive right to change every key, by locking all stripes (parts of the
    /// keys), and returns the locks.
    pub(super) fn hold_all(&self) -> Vec<HeldStripe<'_>> {
        (0..STRIPES).map(|stripe| self.hold_stripe(stripe)).collect()
    }

    /// Takes the exclusive right to change the keys of a stripe without waiting; returns `None` if
    /// the right is taken, or one of the keys has changed since `note` was recorded.
    /// [`hold_copies`](HeldStripe::hold_copies) returns whether the keys are still unchanged.
    pub(super) fn hold_unchanged(&self, note: Note) -> Option<HeldStripe<'_>> {
        let stripe = &self.0[note.stripe];
        let is_odd = note.changes % 2 == 1 && !mutant::is_on("read-during-a-change-is-promoted");
        // Saves time where it is known already.
        if is_odd || stripe.changes.load(Ordering::Relaxed) != note.changes {
            return None;
        }
        let mut held = HeldStripe::begin(stripe, stripe.lock.try_lock()?);
        if !mutant::is_on("promotion-overwrites-a-newer-value") {
            held.changes = note.changes + 1;
        }
        Some(held)
    }

    /// Records that a read returns a value that it could not copy to the upper level, and lets the
    /// caller remove a copy. From now on, no thread puts a copy of a value that it has read from
    /// the lower level before. Waits while a copy is put.
    pub(super) fn pass(&self, note: Note) -> HeldCopies<'_> {
        let stripe = &self.0[note.stripe];
        let held = stripe.hold_copies();
        if !mutant::is_on("read-that-is-not-promoted-leaves-no-trace") {
            stripe.changes.fetch_add(2, Ordering::AcqRel);
        }
        held
    }

    fn hold_stripe(&self, stripe: usize) -> HeldStripe<'_> {
        let stripe = &self.0[stripe];
        HeldStripe::begin(stripe, stripe.lock.lock())
    }
}

impl Stripe {
    fn hold_copies(&self) -> HeldCopies<'_> {
        HeldCopies(self.copies.lock())
    }
}

impl<'a> HeldStripe<'a> {
    fn begin(stripe: &'a Stripe, lock: MutexGuard<'a, ()>) -> Self {
        // Acquire as well, so that nothing of the change moves before it.
        let changes = stripe.changes.fetch_add(1, Ordering::AcqRel) + 1;
        Self { stripe, changes, _lock: lock }
    }

    /// Waits for the right to put a copy of an entry into the upper level; also returns whether
    /// that copy is up to date. It is if no thread has changed the key, or
    /// [returned](Stripes::pass) a possibly newer value of it, since the change or the read began.
    pub(super) fn hold_copies(&self) -> (HeldCopies<'a>, bool) {
        let held = self.stripe.hold_copies();
        let is_current = self.stripe.changes.load(Ordering::Acquire) == self.changes
            || mutant::is_on("copy-is-put-although-a-newer-value-was-read");
        (held, is_current)
    }
}

impl Drop for HeldStripe<'_> {
    fn drop(&mut self) {
        // Before the lock is released, because fields are dropped after this.
        self.stripe.changes.fetch_add(1, Ordering::Release);
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn only_who_noted_after_the_last_change_may_promote() {
        let stripes = Stripes::new();
        let before = stripes.note(b"key");
        let held = stripes.hold(b"key");
        let during = stripes.note(b"key");
        assert!(stripes.hold_unchanged(before).is_none());
        drop(held);
        assert!(stripes.hold_unchanged(before).is_none());
        assert!(stripes.hold_unchanged(during).is_none());
        let (one, other) = (stripes.note(b"key"), stripes.note(b"key"));
        drop(stripes.hold_unchanged(one).unwrap());
        assert!(stripes.hold_unchanged(other).is_none());
    }

    #[test]
    fn a_read_that_is_not_promoted_refuses_the_copies_of_reads_before_it() {
        let stripes = Stripes::new();
        let (noted_before, note) = (stripes.note(b"key"), stripes.note(b"key"));
        let held = stripes.hold(b"key");
        assert!(stripes.hold_unchanged(note).is_none());
        drop(stripes.pass(note));
        let (copies, is_current) = held.hold_copies();
        assert!(!is_current, "the write is as old as the value that was read, or older");
        drop((copies, held));
        assert!(stripes.hold_unchanged(noted_before).is_none());
        let held = stripes.hold_unchanged(stripes.note(b"key")).unwrap();
        assert!(held.hold_copies().1);
    }

    #[test]
    fn many_keys_may_share_stripes() {
        let stripes = Stripes::new();
        let keys: Vec<Vec<u8>> = (0..1_000_u32).map(|key| key.to_le_bytes().to_vec()).collect();
        let held = stripes.hold_many(keys.iter().map(Vec::as_slice));
        assert!(held.len() <= STRIPES && held.len() > STRIPES / 2);
        for key in &keys {
            assert!(std::ptr::eq(
                stripes.among(&held, key).stripe,
                &raw const stripes.0[Stripes::of(key)]
            ));
        }
        drop(held);
        assert_eq!(stripes.hold_all().len(), STRIPES);
    }
}

#[cfg(all(test, shuttle))]
mod model {
    use std::sync::Arc;
    use std::sync::atomic::{self, AtomicU8};

    use super::*;

    /// Every schedule is run: the writer has to come between two steps of the reader, which chance
    /// misses now and then.
    #[test]
    fn a_promotion_that_is_overtaken_by_a_write_does_not_happen() {
        let test = || {
            let stripes = Arc::new(Stripes::new());
            // Not one of the model checker's atomics, so that there are fewer schedules.
            let written = Arc::new(atomic::AtomicBool::new(false));
            let note = stripes.note(b"key");
            let (writer, writes) = (Arc::clone(&stripes), Arc::clone(&written));
            let writer = shuttle::thread::spawn(move || {
                let _held = writer.hold(b"key");
                writes.store(true, atomic::Ordering::Relaxed);
            });
            if let Some(held) = stripes.hold_unchanged(note)
                && let (_copies, true) = held.hold_copies()
            {
                let is_written = written.load(atomic::Ordering::Relaxed);
                assert!(!is_written, "the value is older than what was written");
            }
            writer.join().expect("no panic");
        };
        shuttle::check_dfs(test, None);
    }

    const ORDER: atomic::Ordering = atomic::Ordering::Relaxed;

    /// Both levels of one key; 0 is none.
    #[derive(Default)]
    struct Model {
        stripes: Stripes,
        upper: AtomicU8,
        lower: AtomicU8,
        /// The newest value that a read has returned.
        returned: AtomicU8,
    }

    impl Default for Stripes {
        fn default() -> Self {
            Self::new()
        }
    }

    impl Model {
        fn put(&self, held: &HeldStripe<'_>, value: u8) {
            let (_copies, is_current) = held.hold_copies();
            self.upper.store(if is_current { value } else { 0 }, ORDER);
        }

        /// Reads below, and promotes what it finds.
        fn read(&self) {
            let note = self.stripes.note(b"key");
            let value = self.lower.load(ORDER);
            shuttle::thread::yield_now();
            match self.stripes.hold_unchanged(note) {
                Some(held) => self.put(&held, value),
                None => {
                    let _copies = self.stripes.pass(note);
                    if self.upper.load(ORDER) != value {
                        self.upper.store(0, ORDER);
                    }
                }
            }
            self.returned.fetch_max(value, ORDER);
            self.check();
        }

        /// Any copy is at least as new as what a read has returned.
        fn check(&self) {
            let (returned, copy) = (self.returned.load(ORDER), self.upper.load(ORDER));
            assert!(copy == 0 || copy >= returned, "{copy} in the upper level after {returned}");
        }
    }

    /// There are too many schedules to run all of them.
    fn check(test: fn()) {
        const ITERATIONS: usize = 10_000;
        shuttle::check_random(test, ITERATIONS);
        shuttle::check_pct(test, ITERATIONS, 3);
    }

    #[test]
    fn a_copy_is_not_older_than_what_another_read_has_returned() {
        let test = || {
            let model = Arc::new(Model::default());
            model.lower.store(1, ORDER);
            let reads = [(); 2].map(|()| {
                let model = Arc::clone(&model);
                shuttle::thread::spawn(move || model.read())
            });
            // Another process.
            model.lower.store(2, ORDER);
            for read in reads {
                read.join().expect("no panic");
            }
            model.check();
        };
        check(test);
    }

    #[test]
    fn the_copy_of_a_write_is_not_older_than_what_a_read_has_returned() {
        let test = || {
            let model = Arc::new(Model::default());
            model.lower.store(1, ORDER);
            let reader = Arc::clone(&model);
            let reader = shuttle::thread::spawn(move || reader.read());
            let held = model.stripes.hold(b"key");
            model.upper.store(0, ORDER);
            model.lower.store(2, ORDER);
            shuttle::thread::yield_now();
            // Another process overwrites it.
            model.lower.store(3, ORDER);
            shuttle::thread::yield_now();
            model.put(&held, 2);
            model.check();
            drop(held);
            reader.join().expect("no panic");
            model.check();
        };
        check(test);
    }
}
