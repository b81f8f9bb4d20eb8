//! The bytes that a shard has claimed.

use super::super::pool::Pool;
use super::Contents;
use crate::policy::{Policy, Slot, Victim};

impl<P: Policy> Contents<P> {
    /// Claims what is missing for `more` bytes, as far as the pool has it. If it has not enough,
    /// gives how much the shard should take of the others: as much as an entry of `weight` needs
    /// that is larger than all that this shard has; or its part of the size, where it has clearly
    /// less.
    pub(super) fn claim(&mut self, more: u64, weight: u64, pool: &Pool) -> Option<u64> {
        let missing = (self.bytes + more).saturating_sub(self.budget);
        if missing == 0 {
            return None;
        }
        let batch = if self.is_alone { u64::MAX } else { self.fair_share / 64 };
        let claimed = pool.claim(missing, batch).or_else(|| pool.claim(0, missing)).unwrap_or(0);
        if claimed > 0 {
            self.grow(claimed, pool);
        }
        if claimed >= missing {
            return None;
        }
        let is_poor = !self.is_alone && self.budget < self.fair_share - self.fair_share / 8;
        let wanted = if is_poor { weight.max(self.fair_share) } else { weight };
        (wanted > self.budget).then(|| wanted - self.budget)
    }

    /// Takes bytes that were claimed for it.
    pub(in crate::memory) fn grow(&mut self, bytes: u64, pool: &Pool) {
        self.budget += bytes;
        self.tell_capacity(pool);
    }

    /// Gives up so many bytes, or all, by evicting; says how many. They are the caller's then.
    pub(in crate::memory) fn shrink(&mut self, bytes: u64, pool: &Pool) -> u64 {
        while self.budget - self.bytes < bytes && self.slab.len() > 0 {
            let victim = self.victim(None);
            self.evicted(victim, pool);
        }
        let given = bytes.min(self.budget - self.bytes);
        self.budget -= given;
        self.tell_capacity(pool);
        self.drop_slots();
        given
    }

    /// Whom the policy gives up where there is no newcomer. One that names the newcomer all the
    /// same means the entry that has `grown`, or any.
    pub(super) fn victim(&mut self, grown: Option<Slot>) -> Slot {
        if let Victim::Slot(slot) = self.policy.evict(None) {
            return slot;
        }
        let slot = grown.or_else(|| self.slab.first()).expect("called while there is an entry");
        self.policy.on_remove(slot);
        slot
    }

    /// Makes another part of the size this shard's.
    pub(in crate::memory) fn set_fair_share(&mut self, bytes: u64, pool: &Pool) {
        self.fair_share = bytes;
        self.tell_capacity(pool);
    }

    /// What the shard has more than its part of the size.
    pub(in crate::memory) fn excess(&self) -> u64 {
        self.budget.saturating_sub(self.fair_share)
    }

    pub(in crate::memory) fn budget(&self) -> u64 {
        self.budget
    }

    /// A policy divides its capacity among its queues. It is told the fair share, unless the shard
    /// has clearly more: then an entry is in it that needs that.
    pub(super) fn tell_capacity(&mut self, pool: &Pool) {
        let is_rich = self.budget > self.fair_share + self.fair_share / 8;
        let capacity = if is_rich { self.budget } else { self.fair_share };
        if capacity != self.policy_capacity {
            self.policy_capacity = capacity;
            self.policy.set_capacity(capacity);
            self.give_up_surplus(pool);
        }
    }
}
