//! The pool: the bytes of a store that no shard has claimed.

use crate::sync::atomic::{AtomicI64, Ordering};
use haypile_policy::rules::memory as rules;

/// The pool of free bytes of a memory store: those of its size that none of its shards has taken. A
/// shard takes bytes before it uses them and returns those that it does not need, so that the
/// shards' bytes and this pool always add up to the size.
///
/// The pool only counts. The lock of the shard that claimed bytes orders their use, so operations
/// here are relaxed.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Pool {
    /// The number of unclaimed bytes; negative while more bytes are owed than there are.
    free_bytes: AtomicI64,
}

impl Pool {
    pub(super) fn new(free_bytes: u64) -> Self {
        Self { free_bytes: AtomicI64::new(signed(free_bytes)) }
    }

    /// Takes `wanted_bytes` from the store's pool of free bytes, or all that it has if that is at
    /// least `needed_bytes`; otherwise nothing. Returns the number of bytes taken.
    pub(super) fn claim(&self, needed_bytes: u64, wanted_bytes: u64) -> Option<u64> {
        let mut claimed = 0;
        let claim = |free: i64| {
            claimed = rules::claimed(free, needed_bytes, wanted_bytes)?;
            Some(free - signed(claimed))
        };
        self.free_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claim).ok()?;
        Some(claimed)
    }

    pub(super) fn give(&self, bytes: u64) {
        self.free_bytes.fetch_add(signed(bytes), Ordering::Relaxed);
    }

    /// Subtracts bytes from the store's pool of free bytes before they are free: readers that still
    /// hold removed values return them later.
    pub(super) fn owe(&self, bytes: u64) {
        self.free_bytes.fetch_sub(signed(bytes), Ordering::Relaxed);
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).expect("sizes are below 2^63")
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_what_is_wanted_as_far_as_it_is_there_and_never_less_than_needed() {
        let pool = Pool::new(100);
        assert_eq!(pool.claim(101, 200), None);
        assert_eq!(pool.claim(10, 30), Some(30));
        assert_eq!(pool.claim(30, 10), Some(30));
        assert_eq!(pool.claim(10, 200), Some(40));
        assert_eq!(pool.claim(0, 5), None);
        pool.give(7);
        assert_eq!(pool.claim(0, 5), Some(5));
    }

    #[test]
    fn what_is_owed_is_paid_before_anything_can_be_claimed() {
        let pool = Pool::new(10);
        pool.owe(30);
        pool.give(25);
        assert_eq!(pool.claim(1, 100), Some(5));
    }
}
