//! The bytes that a shard has claimed from the pool.

use haypile_policy::Policy;
use haypile_policy::rules::memory::ShardBytes;

use super::super::pool::Pool;
use super::Contents;
use crate::mutant;

impl<P: Policy> Contents<P> {
    /// Takes `more` bytes for an entry from the memory store's pool of free bytes, as far as it has
    /// them, and removes expired entries for the rest. If that is too little, returns the number of
    /// bytes that the shard should take from other shards.
    ///
    /// The policy does not know of the new budget until [`tell_capacity`](Self::tell_capacity): it could give
    /// entries up because of it, and the write can still be declined.
    pub(super) fn claim(
        &mut self,
        more: u64,
        weight: u64,
        now_ns: u64,
        pool: &Pool,
    ) -> Option<u64> {
        let missing = self.shard_bytes().missing(more);
        if missing == 0 {
            return None;
        }
        let batch = self.shard_bytes().batch();
        let claimed = pool.claim(missing, batch).or_else(|| pool.claim(0, missing)).unwrap_or(0);
        self.budget += claimed;
        if claimed >= missing {
            return None;
        }
        while self.expire_one(now_ns, pool) {
            if self.shard_bytes().missing(more) == 0 {
                return None;
            }
        }
        self.shard_bytes().wanted(weight)
    }

    #[inline]
    pub(super) fn shard_bytes(&self) -> ShardBytes {
        let Self { bytes: used, budget, fair_share, is_alone, .. } = *self;
        ShardBytes { used, budget, fair_share, is_alone }
    }

    /// Adds bytes that were taken from other shards of the memory store to this shard's budget.
    pub(in crate::memory) fn grow(&mut self, bytes: u64, pool: &Pool) {
        self.budget += bytes;
        self.tell_capacity(pool);
    }

    /// Reduces the budget of a shard of the memory store by this number of bytes, or to zero, by
    /// evicting entries. Returns the number of bytes that became free, which belong to the caller.
    pub(in crate::memory) fn shrink(&mut self, bytes: u64, pool: &Pool) -> u64 {
        while self.budget - self.bytes < bytes && !self.slab.is_empty() {
            let victim = self.policy.evict(None);
            self.evicted(victim, pool);
        }
        let given = bytes.min(self.budget - self.bytes);
        self.budget -= given;
        // The victims can have made much more room than that.
        self.return_idle(pool);
        self.tell_capacity(pool);
        self.drop_slots();
        given
    }

    /// Gives bytes that this shard of a memory store does not need back to the store's pool;
    /// returns whether there were any.
    pub(super) fn return_idle(&mut self, pool: &Pool) -> bool {
        let Some(idle) = self.shard_bytes().idle() else { return false };
        if !mutant::is_on("shard-goes-on-using-returned-bytes") {
            self.budget -= idle;
        }
        if !mutant::is_on("returned-bytes-are-lost") {
            pool.give(idle);
        }
        true
    }

    /// Gives back to the store's pool the bytes that a shard has taken since it had the budget
    /// `budget_before`, because a write was declined.
    pub(super) fn unclaim(&mut self, budget_before: u64, pool: &Pool) {
        let claimed = self.budget.saturating_sub(budget_before);
        self.budget -= claimed;
        pool.give(claimed);
    }

    /// Sets the number of bytes that this shard should have when its memory store is full.
    pub(in crate::memory) fn set_fair_share(&mut self, bytes: u64, pool: &Pool) {
        self.fair_share = bytes;
        self.tell_capacity(pool);
    }

    /// Returns the number of bytes by which a shard's budget exceeds its fair share of the memory
    /// store's size.
    pub(in crate::memory) fn excess(&self) -> u64 {
        self.shard_bytes().excess()
    }

    pub(in crate::memory) fn budget(&self) -> u64 {
        self.budget
    }

    /// Reports the number of bytes that a shard of the memory store can have to its eviction
    /// policy, which divides them among its queues.
    pub(super) fn tell_capacity(&mut self, pool: &Pool) {
        let capacity = self.shard_bytes().policy_capacity();
        if capacity != self.policy_capacity {
            self.policy_capacity = capacity;
            self.policy.set_capacity(capacity);
            self.give_up_overflow(pool);
        }
    }
}
