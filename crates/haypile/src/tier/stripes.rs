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
    /// Odd while a key is changed, and another number after it.
    changes: AtomicU64,
    lock: Mutex<()>,
}

/// The state that a reader notes before it reads below.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note {
    stripe: usize,
    changes: u64,
}

/// The right to change keys of a stripe; the change ends when it is dropped.
pub(super) struct HeldStripes<'a> {
    changes: &'a AtomicU64,
    _lock: MutexGuard<'a, ()>,
}

impl Stripes {
    pub(super) fn new() -> Self {
        Self((0..STRIPES).map(|_| Stripe::default()).collect())
    }

    fn of(key: &[u8]) -> usize {
        usize::try_from(xxh3_64(key) % STRIPES as u64).expect("less than STRIPES")
    }

    /// Notes the state of a key's stripe, before the key is read below.
    pub(super) fn note(&self, key: &[u8]) -> Note {
        let stripe = Self::of(key);
        // The read below comes after this load: if it overlaps a change whose end this load does
        // not see, the number will differ.
        Note { stripe, changes: self.0[stripe].changes.load(Ordering::Acquire) }
    }

    /// Waits for the right to change a key.
    pub(super) fn hold(&self, key: &[u8]) -> HeldStripes<'_> {
        self.hold_stripe(Self::of(key))
    }

    /// Waits for the right to change any of these keys, in the order of stripes, which prevents
    /// deadlocks.
    pub(super) fn hold_many<'a>(
        &self,
        keys: impl Iterator<Item = &'a [u8]>,
    ) -> Vec<HeldStripes<'_>> {
        let mut stripes: Vec<usize> = keys.map(Self::of).collect();
        stripes.sort_unstable();
        stripes.dedup();
        stripes.into_iter().map(|stripe| self.hold_stripe(stripe)).collect()
    }

    /// Waits for the right to change every key.
    pub(super) fn hold_all(&self) -> Vec<HeldStripes<'_>> {
        (0..STRIPES).map(|stripe| self.hold_stripe(stripe)).collect()
    }

    /// Takes the right to change a key without waiting, if neither the key nor another one of its
    /// stripe has changed since the note.
    pub(super) fn hold_unchanged(&self, note: Note) -> Option<HeldStripes<'_>> {
        let stripe = &self.0[note.stripe];
        let is_odd = note.changes % 2 == 1 && !mutant::is_on("read-during-a-change-is-promoted");
        let is_unchanged = || {
            stripe.changes.load(Ordering::Relaxed) == note.changes
                || mutant::is_on("promotion-overwrites-a-newer-value")
        };
        if is_odd || !is_unchanged() {
            return None;
        }
        let lock = stripe.lock.try_lock()?;
        // Checked under the lock, where no other thread can change it.
        (is_unchanged() || mutant::is_on("promotion-is-not-checked-under-the-lock"))
            .then(|| HeldStripes::begin(&stripe.changes, lock))
    }

    fn hold_stripe(&self, stripe: usize) -> HeldStripes<'_> {
        let stripe = &self.0[stripe];
        HeldStripes::begin(&stripe.changes, stripe.lock.lock())
    }
}

impl<'a> HeldStripes<'a> {
    fn begin(changes: &'a AtomicU64, lock: MutexGuard<'a, ()>) -> Self {
        // Acquire as well, so that nothing of the change moves before it.
        changes.fetch_add(1, Ordering::AcqRel);
        Self { changes, _lock: lock }
    }
}

impl Drop for HeldStripes<'_> {
    fn drop(&mut self) {
        // Before the lock is released, because fields are dropped after this.
        self.changes.fetch_add(1, Ordering::Release);
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
    fn many_keys_may_share_stripes() {
        let stripes = Stripes::new();
        let keys: Vec<Vec<u8>> = (0..1_000_u32).map(|key| key.to_le_bytes().to_vec()).collect();
        let held = stripes.hold_many(keys.iter().map(Vec::as_slice));
        assert!(held.len() <= STRIPES && held.len() > STRIPES / 2);
        drop(held);
        assert_eq!(stripes.hold_all().len(), STRIPES);
    }
}

#[cfg(all(test, shuttle))]
mod model {
    use std::sync::Arc;
    use std::sync::atomic;

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
            if let Some(_held) = stripes.hold_unchanged(note) {
                let is_written = written.load(atomic::Ordering::Relaxed);
                assert!(!is_written, "the value is older than what was written");
            }
            writer.join().expect("no panic");
        };
        shuttle::check_dfs(test, None);
    }
}
