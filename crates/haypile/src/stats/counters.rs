//! Counters that threads share.

use super::{Event, Stats};
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Atomic counters of a store's events, one for each [`Event`].
#[derive(Debug, Default)]
pub struct EventCounters([AtomicU64; Event::ALL.len()]);

impl EventCounters {
    /// Adds one to the counter of a store's event, such as a hit.
    #[inline]
    pub fn add(&self, event: Event) {
        self.0[event as usize].fetch_add(1, Relaxed);
    }

    /// Adds one to the counter of an event, for a caller that shares the counters with no other
    /// thread: an atomic addition would be slower.
    #[inline]
    pub(crate) fn add_exclusive(&mut self, event: Event) {
        let counter = &self.0[event as usize];
        counter.store(counter.load(Relaxed) + 1, Relaxed);
    }

    /// Adds the counts of all events to the statistics `stats`.
    pub fn add_to(&self, stats: &mut Stats) {
        for (event, counter) in Event::ALL.into_iter().zip(&self.0) {
            stats[event] += counter.load(Relaxed);
        }
    }

    /// Returns the counts of all events as statistics; the sizes that a store reports are left at
    /// zero.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.add_to(&mut stats);
        stats
    }
}
