//! Counts of a simulation.

use std::ops::Sub;

use haypile_number::ratio;

/// Exact counts of hits, misses and other events of a simulation, or of its part after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Number of reads that found their key in the cache.
    pub hits: u64,
    /// Number of reads that did not find their key in the cache.
    pub misses: u64,
    /// Number of misses that a cache of any size would have had, because the key was never stored before, was deleted
    /// since, or may not be stored at all.
    pub cold_misses: u64,
    /// Sum of the sizes of the values that reads found in the cache, in bytes.
    pub hit_bytes: u64,
    /// Sum of the sizes of the values that reads did not find in the cache, in bytes.
    pub miss_bytes: u64,
    /// Sum of the costs that the trace states for the reads that found their key, in nanoseconds; 0 if it states none. JSON has
    /// the cost by [`MissCost`](super::MissCost) instead.
    #[serde(skip)]
    pub hit_cost_ns: u64,
    /// Sum of the costs that the trace states for the reads that did not find their key, in nanoseconds.
    #[serde(skip)]
    pub miss_cost_ns: u64,
    /// Number of requests that write a value.
    pub writes: u64,
    /// Number of requests to delete a key, whether or not it was in the cache.
    pub deletes: u64,
    /// Number of entries that the cache evicted.
    pub evictions: u64,
    /// Number of values that were not stored: too large for the cache, or declined by the policy.
    pub refused: u64,
}

impl Counts {
    /// Returns the number of counted reads: hits and misses together.
    pub fn reads(&self) -> u64 {
        self.hits + self.misses
    }

    /// Returns the hit ratio: the share of reads that found their key; 0 without reads.
    pub fn hit_ratio(&self) -> f64 {
        ratio(self.hits, self.reads())
    }

    /// Returns the byte hit ratio: the share of the bytes read that came from the cache; 0 without
    /// bytes.
    pub fn byte_hit_ratio(&self) -> f64 {
        ratio(self.hit_bytes, self.hit_bytes + self.miss_bytes)
    }

    /// Adds the cost that the trace states for the last read, which missed if there are now more than `misses_before`
    /// misses.
    pub(super) fn add_cost(&mut self, misses_before: u64, cost_ns: u64) {
        let sum = if self.misses > misses_before {
            &mut self.miss_cost_ns
        } else {
            &mut self.hit_cost_ns
        };
        *sum = sum.saturating_add(cost_ns);
    }

    /// Returns the number of misses that a sufficiently large cache would not have had.
    pub fn capacity_misses(&self) -> u64 {
        self.misses - self.cold_misses
    }
}

impl Sub for Counts {
    type Output = Self;

    /// The counts since `earlier`.
    fn sub(self, earlier: Self) -> Self {
        Self {
            hits: self.hits - earlier.hits,
            misses: self.misses - earlier.misses,
            cold_misses: self.cold_misses - earlier.cold_misses,
            hit_bytes: self.hit_bytes - earlier.hit_bytes,
            miss_bytes: self.miss_bytes - earlier.miss_bytes,
            hit_cost_ns: self.hit_cost_ns - earlier.hit_cost_ns,
            miss_cost_ns: self.miss_cost_ns - earlier.miss_cost_ns,
            writes: self.writes - earlier.writes,
            deletes: self.deletes - earlier.deletes,
            evictions: self.evictions - earlier.evictions,
            refused: self.refused - earlier.refused,
        }
    }
}
