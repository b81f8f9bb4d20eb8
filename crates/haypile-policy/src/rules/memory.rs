//! Decisions that the memory store and its simulation share: pure functions over plain numbers.
//!
//! Shards claim bytes from a common pool before they use them, and return those that they do not need.

use std::thread;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::table::spread;

/// The smallest size of a `memory` store, in bytes.
pub const MIN_SIZE_BYTES: u64 = 1 << 10;

/// The largest size of a `memory` store, in bytes. Its slots have numbers of 32 bits.
pub const MAX_SIZE_BYTES: u64 = 256 << 30;

/// The largest number of shards of a `memory` store.
pub const MAX_SHARDS: usize = 1 << 10;

/// The number of bytes that a `memory` store charges for an entry in addition to its record: the metadata of the store
/// and of the default policy, as a test measures them.
///
/// That is 64 on average, and up to 80 where tables have just doubled. With the store's own part,
/// `fifo` and `lru` take some 26, `clock` and `sieve` 27, `slru4` 36, `slru` 40, `wtinylfu` 56,
/// `arc` 44 to 68 (the more it reads twice, the more ghosts it has), and `lirs` 110.
pub const OVERHEAD_BYTES: u64 = 72;

/// The length in bytes of the header that precedes key and value in a record of a `memory` store.
pub const HEADER_BYTES: u64 = 40;

/// Returns the number of bytes that a `memory` store charges for an entry: its record (the key, the value and a
/// header), rounded up as common allocators do, and [`OVERHEAD_BYTES`].
///
/// The simulator charges the same when it predicts this store.
#[inline]
pub const fn charge(key_bytes: u64, value_bytes: u64) -> u64 {
    // An allocator puts a word before each allocation, and rounds up to 16 bytes.
    let asked = key_bytes.saturating_add(value_bytes).saturating_add(HEADER_BYTES + 8);
    (asked.saturating_add(15) & !15).saturating_add(OVERHEAD_BYTES)
}

/// Returns the length of the longest value whose entry is charged at most `limit_bytes` ([`charge`]); `None` if not
/// even an empty value fits.
#[inline]
pub const fn longest_value(key_bytes: u64, limit_bytes: u64) -> Option<u64> {
    let Some(record_bytes) = limit_bytes.checked_sub(OVERHEAD_BYTES) else { return None };
    (record_bytes & !15).checked_sub(HEADER_BYTES + 8 + key_bytes)
}

/// The smallest shard that is chosen by default: with few entries in each, evictions would be a matter of
/// chance. `docs/simulator.md` has what shards cost, in hits and in time.
const SHARD_BYTES: u64 = 2 << 20;

/// Shards per processor that are chosen by default, so that threads seldom contend.
const SHARDS_PER_CPU: usize = 8;

/// Returns the number of shards that a `memory` store of size `size_bytes` has by default on this machine.
#[inline]
pub fn default_shards(size_bytes: u64) -> usize {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    shards_for(size_bytes, cpus)
}

/// Returns the number of shards that a store of this size has by default on `cpus` processors.
fn shards_for(size_bytes: u64, cpus: usize) -> usize {
    let large = usize::try_from(size_bytes / SHARD_BYTES).unwrap_or(MAX_SHARDS).max(1);
    let shards = (cpus * SHARDS_PER_CPU).next_power_of_two().min(MAX_SHARDS);
    // The largest power of two that is not above this.
    shards.min(1 << large.ilog2())
}

/// Returns the hash of a key in a `memory` store with this seed.
#[inline]
pub fn fingerprint(key: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(key, seed)
}

/// Returns the number of the shard to which a key belongs, among `shards`, a power of two.
#[inline]
pub fn shard_of(fingerprint: u64, shards: usize) -> usize {
    // The index uses the highest bits and those from 16 to 23.
    let bits = usize::try_from(spread(fingerprint) >> 40 & 0xFFFF).expect("16 bits");
    bits & (shards - 1)
}

/// Returns the number of bytes that a shard takes from the store's pool of unassigned bytes: the larger of
/// `needed_bytes` and `wanted_bytes`, but at most `free_bytes`; `None` if that is 0 or too little.
#[inline]
pub fn claimed(free_bytes: i64, needed_bytes: u64, wanted_bytes: u64) -> Option<u64> {
    let free = u64::try_from(free_bytes).unwrap_or(0);
    let claimed = wanted_bytes.max(needed_bytes).min(free);
    (free >= needed_bytes && claimed > 0).then_some(claimed)
}

/// The size of one shard of a `memory` store: the bytes that its entries use, those that it may use, and its fair share
/// of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardBytes {
    /// The sum of the bytes that are charged for the shard's entries.
    pub used: u64,
    /// The number of bytes that the shard may use: those that it has taken from the store's pool of unassigned bytes.
    pub budget: u64,
    /// The store's size divided by the number of shards, in bytes.
    pub fair_share: u64,
    /// Whether this is the only shard of its store.
    pub is_alone: bool,
}

impl ShardBytes {
    /// Returns the number of bytes that the shard needs beyond its budget to store `more` bytes.
    #[inline]
    pub fn missing(self, more: u64) -> u64 {
        (self.used + more).saturating_sub(self.budget)
    }

    /// Returns the number of bytes that the shard has to evict for an entry of `weight`, after it has got `given` bytes
    /// from other shards. The policy compares the new entry with these victims.
    #[inline]
    pub fn leaving(self, weight: u64, given: u64) -> u64 {
        (self.used + weight).saturating_sub(self.budget + given)
    }

    /// Returns the number of bytes that the shard takes at once from the store's pool of unassigned bytes, to save
    /// further visits.
    #[inline]
    pub fn batch(self) -> u64 {
        if self.is_alone { u64::MAX } else { self.fair_share / 64 }
    }

    /// Returns the number of bytes to take from other shards if the store's pool has too little; `None` for nothing.
    /// They are for an entry of `weight` that is larger than the shard's budget, or bring a budget that is clearly
    /// below the fair share up to it.
    #[inline]
    pub fn wanted(self, weight: u64) -> Option<u64> {
        let is_poor = !self.is_alone && self.budget < self.fair_share - self.fair_share / 8;
        let wanted = if is_poor { weight.max(self.fair_share) } else { weight };
        (wanted > self.budget).then(|| wanted - self.budget)
    }

    /// Returns the capacity of the shard that the eviction policy divides among its queues: the fair share, unless the
    /// shard's budget is clearly larger because an entry needs it.
    #[inline]
    pub fn policy_capacity(self) -> u64 {
        let is_rich = self.budget > self.fair_share + self.fair_share / 8;
        if is_rich { self.budget } else { self.fair_share }
    }

    /// Returns the number of bytes in the shard's budget above its fair share.
    #[inline]
    pub fn excess(self) -> u64 {
        self.budget.saturating_sub(self.fair_share)
    }

    /// Returns the number of unused bytes that the shard returns to the store's pool (for other shards) after entries
    /// were removed; `None` for nothing.
    #[inline]
    pub fn idle(self) -> Option<u64> {
        let idle = self.budget - self.used;
        let is_much = !self.is_alone && idle > self.fair_share / 16;
        is_much.then(|| idle - self.fair_share / 32)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn shards_follow_the_processors_as_far_as_the_size_has_room() {
        assert_eq!(shards_for(64 << 20, 2), 16);
        assert_eq!(shards_for(64 << 20, 16), 32);
        assert_eq!(shards_for(1 << 40, 4096), MAX_SHARDS);
        assert_eq!(shards_for(1 << 10, 16), 1);
    }

    #[test]
    fn an_entry_that_is_larger_than_a_shard_is_worth_all_that_is_there_or_nothing() {
        let shard = ShardBytes { used: 90, budget: 100, fair_share: 100, is_alone: false };
        assert_eq!((shard.leaving(10, 0), shard.leaving(11, 0)), (0, 1));
        let wanted = shard.wanted(1_000).expect("it is too large for the shard");
        assert_eq!((wanted, shard.leaving(1_000, wanted)), (900, 90));
    }

    #[test]
    fn small_stores_have_few_shards() {
        let shards = [1, 3, 4, 6, 8, 15, 16, 64, 256].map(|mib| shards_for(mib << 20, 64));
        assert_eq!(shards, [1, 1, 2, 2, 4, 4, 8, 32, 128]);
        assert_eq!(shards_for(0, 64), 1);
    }
}
