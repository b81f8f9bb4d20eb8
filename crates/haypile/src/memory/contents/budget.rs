//! The bytes that a shard has claimed from the pool.

use super::super::pool::Pool;
use super::super::rules::ShardBytes;
use super::Contents;
use crate::policy::{Policy, Slot, Victim};

impl<P: Policy> Contents<P> {
    /// Claims the missing part of `more` bytes, as far as the pool has it. If the pool has too
    /// little, returns the number of bytes that the shard should take from the others: the need of
    /// an entry of `weight` that is larger than all that this shard has; or its fair share, if it
    /// has clearly less.
    pub(super) fn claim(&mut self, more: u64, weight: u64, pool: &Pool) -> Option<u64> {
        let missing = self.shard_bytes().missing(more);
        if missing == 0 {
            return None;
        }
        let batch = self.shard_bytes().batch();
        let claimed = pool.claim(missing, batch).or_else(|| pool.claim(0, missing)).unwrap_or(0);
        if claimed > 0 {
            self.grow(claimed, pool);
        }
        if claimed >= missing {
            return None;
        }
        self.shard_bytes().wanted(weight)
    }

    pub(super) fn shard_bytes(&self) -> ShardBytes {
        let Self { bytes: used, budget, fair_share, is_alone, .. } = *self;
        ShardBytes { used, budget, fair_share, is_alone }
    }

    /// Accounts for bytes that were claimed for this shard.
    pub(in crate::memory) fn grow(&mut self, bytes: u64, pool: &Pool) {
        self.budget += bytes;
        self.tell_capacity(pool);
    }

    /// Gives up this number of bytes, or all, by evicting; returns how many. They belong to the
    /// caller then.
    pub(in crate::memory) fn shrink(&mut self, bytes: u64, pool: &Pool) -> u64 {
        while self.budget - self.bytes < bytes && !self.slab.is_empty() {
            let victim = self.victim(None);
            self.evicted(victim, pool);
        }
        let given = bytes.min(self.budget - self.bytes);
        self.budget -= given;
        self.tell_capacity(pool);
        self.drop_slots();
        given
    }

    /// Returns the entry that the policy evicts if there is no newcomer. If the policy names the
    /// newcomer all the same, it means the entry that has `grown`, or any.
    pub(super) fn victim(&mut self, grown: Option<Slot>) -> Slot {
        if let Victim::Slot(slot) = self.policy.evict(None) {
            return slot;
        }
        let slot =
            grown.or_else(|| self.slab.first()).expect("callers check that there is an entry");
        self.policy.on_remove(slot);
        slot
    }

    /// Sets the fair share of this shard.
    pub(in crate::memory) fn set_fair_share(&mut self, bytes: u64, pool: &Pool) {
        self.fair_share = bytes;
        self.tell_capacity(pool);
    }

    /// Returns the bytes that the shard has above its fair share.
    pub(in crate::memory) fn excess(&self) -> u64 {
        self.shard_bytes().excess()
    }

    pub(in crate::memory) fn budget(&self) -> u64 {
        self.budget
    }

    /// Reports the capacity to the policy, which divides it among its queues.
    pub(super) fn tell_capacity(&mut self, pool: &Pool) {
        let capacity = self.shard_bytes().policy_capacity();
        if capacity != self.policy_capacity {
            self.policy_capacity = capacity;
            self.policy.set_capacity(capacity);
            self.give_up_overflow(pool);
        }
    }
}
