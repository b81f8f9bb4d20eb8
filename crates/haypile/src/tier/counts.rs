//! Counters of a tiered store itself.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::stats::{Failures, Stats};

/// The counts that a store of two levels keeps itself, such as deferred writes, in addition to the
/// statistics of its levels.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// The number of hits of the upper level that could not be used, and were looked up below.
    passed: AtomicU64,
    /// The numbers of reads that found a pending write, and of reads that found an expired one.
    pending_hits: AtomicU64,
    pending_misses: AtomicU64,
    /// The numbers of writes that were accepted to be written later, and of those that have been
    /// written.
    deferred: AtomicU64,
    settled: AtomicU64,
    /// The number of reads that failed in the lower level and were misses; `contains` is not among
    /// them.
    unread_misses: AtomicU64,
    unread: Failures,
    lost: Failures,
    upper: Failures,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counts {
    pub(super) fn passed(&self) {
        count(&self.passed);
    }

    pub(super) fn pending_read(&self, is_hit: bool) {
        count(if is_hit { &self.pending_hits } else { &self.pending_misses });
    }

    pub(super) fn deferred(&self) {
        count(&self.deferred);
    }

    pub(super) fn settled(&self) {
        count(&self.settled);
    }

    /// Counts a read of `misses` keys that failed in the lower level of a cache as a miss of each
    /// key.
    pub(super) fn unread(&self, misses: usize, error: &Error) {
        self.unread_misses.fetch_add(misses as u64, Ordering::Relaxed);
        self.unread.count(1, error);
    }

    /// Counts writes that the cache accepted and then could not store in its lower level.
    pub(super) fn lost(&self, writes: usize, error: &Error) {
        if writes > 0 {
            self.lost.count(writes as u64, error);
        }
    }

    /// Counts a failed operation of the upper level of a cache. A value that is too large, and a
    /// closed level, are not failures.
    pub(super) fn upper_failed(&self, error: &Error) {
        if matches!(error, Error::Backend { .. }) {
            self.upper.count(1, error);
        }
    }

    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        [
            self.unread.warning("reads of the lower level failed and found nothing"),
            self.lost.warning("accepted writes could not be stored, and are lost"),
            self.upper.warning("operations on the upper level failed, and were done without it"),
        ]
        .into_iter()
        .flatten()
    }

    /// Returns the statistics of a store of two levels, combined from those of its levels and from
    /// these counts.
    pub(super) fn stats(&self, upper: &Stats, lower: &Stats) -> Stats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let settled = load(&self.settled);
        // They are pending, or were replaced by a later write of the same key.
        let unseen_below = load(&self.deferred).saturating_sub(settled);
        Stats {
            hits: (upper.hits + lower.hits + load(&self.pending_hits))
                .saturating_sub(load(&self.passed)),
            misses: lower.misses + load(&self.pending_misses) + load(&self.unread_misses),
            sets: lower.sets + unseen_below,
            // An upper level that is a server can be unreachable too; nothing is counted twice.
            unreachable: upper.unreachable + lower.unreachable,
            unfenced: upper.unfenced + lower.unfenced,
            loading: upper.loading.or(lower.loading),
            ..lower.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_either_level_did_not_reach_is_counted() {
        let level = |unreachable, unfenced| Stats { unreachable, unfenced, ..Stats::default() };
        let whole = Counts::default().stats(&level(2, 10), &level(3, 20));
        assert_eq!((whole.unreachable, whole.unfenced), (5, 30));
    }
}
