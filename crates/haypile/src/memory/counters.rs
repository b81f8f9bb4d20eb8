//! Counters of a shard.

use crate::stats::Stats;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A count that one who shares the shard can raise, too.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(super) fn raise(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// Raises it for one who has the shard alone: an atomic addition would make all that comes
    /// after it wait for all stores before it.
    #[inline]
    pub(super) fn raise_alone(&mut self) {
        self.0.store(self.0.load(Relaxed) + 1, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The counts of [`Stats`] that are events.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) hits: Counter,
    pub(super) misses: Counter,
    pub(super) sets: Counter,
    pub(super) unmet: Counter,
    pub(super) deletes: Counter,
    pub(super) delete_misses: Counter,
    pub(super) touches: Counter,
    pub(super) touch_misses: Counter,
    pub(super) counts: Counter,
    pub(super) count_misses: Counter,
    pub(super) evictions: Counter,
    pub(super) expired: Counter,
    pub(super) declined: Counter,
}

impl Counters {
    /// Adds these counts to `stats`.
    pub(super) fn add_to(&self, stats: &mut Stats) {
        stats.hits += self.hits.get();
        stats.misses += self.misses.get();
        stats.sets += self.sets.get();
        stats.unmet += self.unmet.get();
        stats.deletes += self.deletes.get();
        stats.delete_misses += self.delete_misses.get();
        stats.touches += self.touches.get();
        stats.touch_misses += self.touch_misses.get();
        stats.counts += self.counts.get();
        stats.count_misses += self.count_misses.get();
        stats.evictions += self.evictions.get();
        stats.expired += self.expired.get();
        stats.declined += self.declined.get();
    }
}
