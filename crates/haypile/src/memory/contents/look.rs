//! Lookups, and the effects of a read.

use std::time::Duration;

use haypile_policy::table::spread;
use haypile_policy::{Policy, Slot};

use super::super::pool::Pool;
use super::super::record::{NEVER_IN_GROUPS, Record};
use super::{Contents, HashedKey};
use crate::clock::Clock;
use crate::mutant;
use crate::stats::Event;
use crate::store::Hit;
use crate::write::Version;

/// The result of a lookup under a shared lock: a hit, a miss, or the need for an exclusive lock.
pub(in crate::memory) enum Look {
    Hit(Slot, Hit),
    Miss,
    /// An entry that must be removed, which takes an exclusive lock.
    Expired,
}

impl<P: Policy> Contents<P> {
    /// Finds the entry of a key for a read under a shared lock, and returns its slot, a miss, or
    /// that it has expired.
    #[inline]
    pub(in crate::memory) fn look(&self, key: HashedKey<'_>, clock: &dyn Clock) -> Look {
        let Some(slot) = self.find(key) else { return Look::Miss };
        let record = self.slab.get(slot);
        let expires_ns = record.expires_ns();
        let mut hit = Hit::new(Some(Version::from_raw(record.version())), None);
        if expires_ns != u64::MAX {
            let left_ns = self.left_ns(record, clock);
            if left_ns == 0 {
                return Look::Expired;
            }
            hit.has_groups = record.has_groups();
            hit.expires_in = (left_ns != u64::MAX).then(|| Duration::from_nanos(left_ns));
        }
        Look::Hit(slot, hit)
    }

    /// Returns the remaining life of an entry that can become invalid, `u64::MAX` without an end, or zero if it has. Not in line:
    /// other entries should not pay for what it needs.
    #[inline(never)]
    fn left_ns(&self, record: &Record, clock: &dyn Clock) -> u64 {
        if self.is_invalid(record) {
            return 0;
        }
        match record.expires_ns() {
            NEVER_IN_GROUPS.. => u64::MAX,
            // The clock is read under the lock: an entry must not expire while the caller waits for the lock.
            expires_ns => {
                let left_ns = expires_ns.saturating_sub(clock.now_ns());
                left_ns.max(mutant::is_on("entry-served-at-its-expiry").into())
            }
        }
    }

    #[inline]
    pub(in crate::memory) fn record(&self, slot: Slot) -> &Record {
        self.slab.get(slot)
    }

    /// Counts a miss in the statistics of this shard of the memory store.
    pub(in crate::memory) fn count_miss(&self) {
        self.counters.add(Event::Miss);
    }

    /// Counts a hit in the statistics of this shard of the memory store.
    #[inline]
    pub(in crate::memory) fn count_hit(&self) {
        self.counters.add(Event::Hit);
    }

    /// Reports a hit of the entry in `slot` to the eviction policy under a shared lock, for
    /// policies that allow it.
    #[inline]
    pub(in crate::memory) fn hit_shared(&self, slot: Slot) {
        if !mutant::is_on("policy-misses-hits-under-the-shared-lock") {
            self.policy.on_hit_shared(slot);
        }
    }

    /// Finds the entry of a key, counts the hit or miss, reports a hit to the eviction policy, and
    /// returns the result of `read`; `None` for a miss. `read` is called with the record before the
    /// policy can evict the entry.
    pub(in crate::memory) fn read<T>(
        &mut self,
        key: HashedKey<'_>,
        clock: &dyn Clock,
        pool: &Pool,
        read: impl FnOnce(&Record, Hit) -> T,
    ) -> Option<T> {
        let Look::Hit(slot, hit) = self.look_and_expire(key, clock, pool) else {
            self.counters.add_exclusive(Event::Miss);
            return None;
        };
        let value = read(self.slab.get(slot), hit);
        self.counters.add_exclusive(Event::Hit);
        self.policy.on_hit(slot);
        self.give_up_overflow(pool);
        Some(value)
    }

    pub(in crate::memory) fn contains(
        &mut self,
        key: HashedKey<'_>,
        clock: &dyn Clock,
        pool: &Pool,
    ) -> bool {
        matches!(self.look_and_expire(key, clock, pool), Look::Hit(..))
    }

    pub(super) fn look_and_expire(
        &mut self,
        key: HashedKey<'_>,
        clock: &dyn Clock,
        pool: &Pool,
    ) -> Look {
        let look = self.look(key, clock);
        if matches!(look, Look::Expired) {
            let slot = self.find(key).expect("found above");
            self.expire(slot, pool);
            self.settle(pool);
        }
        look
    }

    #[inline]
    pub(super) fn find(&self, key: HashedKey<'_>) -> Option<Slot> {
        let same = |slot: Slot| {
            let record = self.slab.get(slot);
            record.fingerprint() == key.fingerprint && record.key() == key.bytes
        };
        self.index.find(spread(key.fingerprint), same)
    }

    /// Prefetches the part of the hash table that a search for this key reads first.
    #[inline]
    pub(in crate::memory) fn prefetch_index(&self, key: HashedKey<'_>) {
        self.index.prefetch(spread(key.fingerprint));
    }

    /// Prefetches the probable record of this key, and returns the record's slot, if there is one.
    #[inline]
    pub(in crate::memory) fn prefetch_slot(&self, key: HashedKey<'_>) -> Option<Slot> {
        let slot = self.index.likely(spread(key.fingerprint))?;
        self.slab.prefetch_slot(slot);
        self.policy.prefetch_slot(slot);
        Some(slot)
    }

    /// Prefetches the record (key and value) in this slot of a shard, if there is one.
    #[inline]
    pub(in crate::memory) fn prefetch_record(&self, slot: Slot) {
        if let Some(record) = self.slab.peek(slot) {
            record.prefetch();
        }
    }

    /// Returns the slot of the live entry of a key; removes the entry if it has expired.
    pub(super) fn live(&mut self, key: HashedKey<'_>, now_ns: u64, pool: &Pool) -> Option<Slot> {
        let slot = self.find(key)?;
        if self.is_valid(self.slab.get(slot), now_ns)
            || mutant::is_on("write-finds-expired-entries")
        {
            return Some(slot);
        }
        self.expire(slot, pool);
        None
    }
}
