//! Removal of entries, and the memory that it frees.

use std::mem;

use haypile_policy::table::spread;
use haypile_policy::{Policy, Slot};

use super::super::pool::Pool;
use super::super::record::Record;
use super::{Contents, charge_of};
use crate::mutant;
use crate::stats::Event;

/// Expired entries that a write removes in addition to those that it meets.
const SWEEP: usize = 8;

/// Entries that a search for an expired one inspects at most.
const LOOKS: usize = 64;

/// Slots that are dropped for each removed entry while too many are free.
const DROPS: usize = 2;

impl<P: Policy> Contents<P> {
    /// Deletes all entries of this shard of the memory store, including those of a snapshot that
    /// are still to be loaded.
    pub(in crate::memory) fn clear(&mut self, pool: &Pool) {
        if !mutant::is_on("cleared-entries-come-back-by-loading") {
            self.changed = None;
        }
        self.removals.note_clearing();
        let mut from = 0;
        while let Some(slot) = self.slab.next_taken(from) {
            self.policy.on_remove(slot);
            self.forget(slot, pool);
            from = slot + 1;
        }
        self.expiries.clear();
        // Drops the ghosts too, because the policy has nothing to keep.
        self.policy.set_capacity(0);
        self.policy.set_capacity(self.policy_capacity);
        self.drop_slots();
        self.settle(pool);
    }

    /// Removes entries that the eviction policy drops although this shard of the memory store is
    /// within its bound; returns their slots.
    pub(super) fn give_up_overflow(&mut self, pool: &Pool) -> Vec<Slot> {
        let mut given_up = Vec::new();
        if P::HAS_OVERFLOW && !mutant::is_on("overflow-stays") {
            while let Some(slot) = self.policy.overflow() {
                self.evicted(slot, pool);
                given_up.push(slot);
            }
        }
        given_up
    }

    /// Removes a few expired entries from this shard of the memory store.
    #[inline]
    pub(super) fn sweep(&mut self, now_ns: u64, pool: &Pool) {
        for _ in 0..SWEEP {
            if !self.expire_one(now_ns, pool) {
                break;
            }
        }
    }

    /// Removes one expired entry from this shard of the memory store, and returns whether there was
    /// one.
    #[inline]
    pub(super) fn expire_one(&mut self, now_ns: u64, pool: &Pool) -> bool {
        !self.expiries.is_idle() && self.expire_next(now_ns, pool)
    }

    fn expire_next(&mut self, now_ns: u64, pool: &Pool) -> bool {
        let Some(slot) = self.expiries.pop_expired_within(now_ns, &mut { LOOKS }) else {
            return false;
        };
        self.expire(slot, pool);
        true
    }

    pub(super) fn expire(&mut self, slot: Slot, pool: &Pool) {
        self.policy.on_remove(slot);
        self.forget(slot, pool);
        self.counters.add_exclusive(Event::Expired);
    }

    /// Removes an entry that the eviction policy has chosen, and counts the eviction.
    pub(super) fn evicted(&mut self, slot: Slot, pool: &Pool) {
        self.forget(slot, pool);
        self.counters.add_exclusive(Event::Eviction);
        if let Some(next) = self.policy.next_victim() {
            self.prefetch_to_free(next);
        }
    }

    /// Prefetches the memory of the record in a slot that is about to be freed, because the next
    /// record is written to the same memory.
    #[inline]
    pub(super) fn prefetch_to_free(&self, slot: Slot) {
        if let Some(record) = self.slab.peek(slot) {
            record.prefetch_to_free();
        }
    }

    /// Removes an entry that the eviction policy no longer knows.
    pub(super) fn forget(&mut self, slot: Slot, pool: &Pool) {
        self.left += 1;
        let record = self.slab.remove(slot);
        self.index.remove(spread(record.fingerprint()), slot);
        self.removals.note(record.fingerprint());
        self.expiries.cancel(slot);
        self.release(record, pool);
    }

    /// Frees the record (key and value) of a removed entry. If a reader holds it, its bytes leave
    /// the shard's budget, and the last reader returns them to the pool.
    pub(super) fn release(&mut self, record: Record, pool: &Pool) {
        let charge = charge_of(&record);
        self.bytes -= charge;
        if record.is_pinned() && !mutant::is_on("value-of-a-reader-is-not-counted") {
            self.budget -= charge;
            if record.release() {
                pool.give(charge);
            }
        }
    }

    /// Cleans up a shard after entries were removed: drops unused slots if there are many, and
    /// returns excess bytes to the store's pool.
    pub(super) fn settle(&mut self, pool: &Pool) {
        for _ in 0..DROPS * mem::take(&mut self.left) {
            if !P::RELOCATES || !self.slab.is_sparse() {
                break;
            }
            self.drop_last();
        }
        if self.return_idle(pool) {
            self.tell_capacity(pool);
        }
    }

    /// Frees the memory of unused slots of a shard after many entries were removed, as far as that
    /// is worthwhile.
    pub(super) fn drop_slots(&mut self) {
        while P::RELOCATES && self.slab.is_sparse() {
            self.drop_last();
        }
    }

    pub(super) fn drop_last(&mut self) {
        if let Some((from, to)) = self.slab.drop_last() {
            let fingerprint = self.slab.get(to).fingerprint();
            self.index.replace(spread(fingerprint), from, to);
            if !mutant::is_on("policy-misses-a-move") {
                self.policy.relocate(from, to);
            }
            if !mutant::is_on("moved-entry-loses-its-expiry") {
                self.expiries.relocate(from, to);
            }
        }
        let slots = self.slab.slots();
        if self.policy_slots > slots + slots / 4 + 64 {
            self.policy_slots = slots + slots / 8;
            self.policy.drop_slots(self.policy_slots);
            self.expiries.drop_slots(self.policy_slots);
        }
        if self.index.capacity() > 2 * self.slab.len() + 64 {
            let slab = &self.slab;
            self.index.shrink_to(slab.len() + slab.len() / 8, |slot| {
                spread(slab.get(slot).fingerprint())
            });
        }
    }
}
