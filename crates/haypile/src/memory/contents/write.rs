//! Insertion of records: new entries, new values, new TTLs; and deletion.

use std::time::Duration;

use haypile_policy::table::spread;
use haypile_policy::{Newcomer, Policy, Slot};

use super::super::expiry::Expiries;
use super::super::pool::Pool;
use super::super::record::{Draft, Record};
use super::super::shortage::has_memory;
use super::{Contents, HashedKey, charge_of, key_of};
use crate::clock::Clock;
use crate::lease::Lease;
use crate::mutant;
use crate::stats::Event;
use crate::ttl::expiry_ns;
use crate::write::{WriteMode, Written};

/// The least that the metadata of a shard grow by.
const LEAST_GROWTH_BYTES: usize = 4 << 10;

/// A value to be written to a shard of the memory store, with its key, TTL and condition.
pub(in crate::memory) struct Write {
    pub(in crate::memory) draft: Draft,
    pub(in crate::memory) mode: WriteMode,
    pub(in crate::memory) ttl: Option<Duration>,
    /// The room that other shards of the memory store have made for the value, if any.
    pub(in crate::memory) room: Option<Room>,
}

/// The room that other shards of the memory store have made for one entry, which gets no more than
/// that.
#[derive(Clone, Copy, Debug)]
pub(in crate::memory) struct Room {
    /// The number of bytes that have to be evicted from the entry's own shard, as computed when the
    /// policy compared the entry with its victims.
    pub(super) judged: u64,
}

/// The number of bytes that other shards of the memory store should free for an entry, and the room
/// that the entry then has.
#[derive(Clone, Copy, Debug)]
pub(super) struct WantedRoom {
    pub(super) bytes: u64,
    pub(super) room: Room,
}

/// A new entry that the eviction policy declines, because it values the entries to be evicted for
/// it more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declined {
    newcomer: Newcomer,
    missing: u64,
}

/// A record to be inserted into a slot of the memory store, with its expiry, its time of writing
/// and its past uses.
pub(super) struct SlotPlace {
    pub(super) draft: Draft,
    pub(super) expires_ns: u64,
    pub(super) written_s: u32,
    /// The number of hits that restore the rank of an entry from a snapshot in the eviction policy;
    /// `None` for any other entry.
    pub(super) uses: Option<u8>,
}

/// The outcome of a write to a shard of the memory store: that of its condition, a need for room in
/// other shards, or no memory.
pub(in crate::memory) enum Outcome {
    Written(Written),
    /// Nothing has been written so far: the shard should first claim this number of bytes from
    /// other shards. The write then says that there is room.
    NeedsRoom(Write, u64),
    /// Nothing was written: there is no memory for this number of bytes of metadata.
    OutOfMemory(usize),
}

impl<P: Policy> Contents<P> {
    /// Writes a record (key and value), which is not larger than the whole memory store, to its
    /// shard, and returns the outcome.
    pub(in crate::memory) fn write(
        &mut self,
        write: Write,
        clock: &dyn Clock,
        pool: &Pool,
    ) -> Outcome {
        let now_ns = if write.ttl.is_some() { clock.now_ns() } else { self.now_ns(clock) };
        // Before an entry that has expired is removed: it may be what the lease knows.
        if let WriteMode::Leased(lease) = write.mode
            && !self.is_kept_for(lease, write.draft.record())
            && !mutant::is_on("memory-takes-any-lease")
        {
            self.counters.add_exclusive(Event::Revoked);
            return Outcome::Written(Written::Revoked);
        }
        self.sweep(now_ns, pool);
        let needs_victim = self.prefetch(&write.draft);
        let found = self.live(key_of(write.draft.record()), now_ns, pool);
        if needs_victim {
            self.prefetch_victim();
        }
        let unmet = match (write.mode, found) {
            (WriteMode::Add, Some(_)) => Some(Written::Exists),
            (WriteMode::Replace | WriteMode::Cas(_), None) => Some(Written::Absent),
            (WriteMode::Cas(version), Some(slot)) => {
                (self.slab.get(slot).version() != version.raw()).then_some(Written::Changed)
            }
            (WriteMode::Set | WriteMode::Leased(_), _)
            | (WriteMode::Add, None)
            | (WriteMode::Replace, Some(_)) => None,
        };
        if let Some(unmet) = unmet {
            self.counters.add_exclusive(Event::Unmet);
            return Outcome::Written(unmet);
        }
        let weight = charge_of(write.draft.record());
        let more = weight.saturating_sub(found.map_or(0, |slot| self.freed_by_update(slot)));
        let budget_before = self.budget;
        if self.shard_bytes().missing(more) > 0 {
            let is_new = found.is_none();
            match self.find_room(write.draft.record(), more, is_new, write.room, now_ns, pool) {
                Ok(None) => {}
                Ok(Some(wanted)) => {
                    let again = Write { room: Some(wanted.room), ..self.known_again(write) };
                    return Outcome::NeedsRoom(again, wanted.bytes);
                }
                Err(declined) => {
                    self.note_write(&write);
                    self.decline(declined, budget_before, pool);
                    return Outcome::Written(Written::Stored);
                }
            }
        }
        let needs_slot = found.is_none() && self.bytes + weight <= self.budget;
        let slot = found.map_or_else(|| self.slab.slots(), |slot| slot as usize);
        if let Some(bytes) = self.lacks_memory(needs_slot, write.ttl.map(|_| slot)) {
            self.unclaim(budget_before, pool);
            return Outcome::OutOfMemory(bytes);
        }
        self.note_write(&write);
        if self.budget != budget_before {
            self.tell_capacity(pool);
        }
        // A policy that was given another capacity may have evicted the entry.
        let found = if P::HAS_OVERFLOW {
            found.and_then(|_| self.find(key_of(write.draft.record())))
        } else {
            found
        };
        let expires_ns = expiry_ns(now_ns, write.ttl);
        let written_s = self.written_s(now_ns);
        let place = SlotPlace { draft: write.draft, expires_ns, written_s, uses: None };
        match found {
            Some(slot) => self.update(slot, place, write.room.is_some(), now_ns, pool),
            None => self.insert(place, now_ns, pool),
        }
        self.settle(pool);
        Outcome::Written(Written::Stored)
    }

    /// Returns whether a record may be written under a lease: whether neither its key nor one of its groups has changed since the lease
    /// was granted.
    fn is_kept_for(&self, lease: Lease, record: &Record) -> bool {
        !self.is_invalid(record) && self.is_kept(lease, key_of(record), None)
    }

    /// Returns a write that is tried again: a lease that was good knows that an entry which had expired was removed.
    fn known_again(&self, write: Write) -> Write {
        if !matches!(write.mode, WriteMode::Leased(_)) {
            return write;
        }
        let lease = self.lease_again(key_of(write.draft.record()));
        Write { mode: WriteMode::Leased(lease), ..write }
    }

    fn note_write(&mut self, write: &Write) {
        self.counters.add_exclusive(Event::Set);
        if !mutant::is_on("older-value-comes-back-by-loading") {
            self.note_change(write.draft.record().fingerprint());
        }
    }

    /// Takes `more` bytes for an entry, as far as they are free, and lets the eviction policy
    /// compare a new entry with its victims before anything is evicted. Returns the bytes that
    /// other shards should free, unless they already have (`room`).
    pub(super) fn find_room(
        &mut self,
        record: &Record,
        more: u64,
        is_new: bool,
        room: Option<Room>,
        now_ns: u64,
        pool: &Pool,
    ) -> Result<Option<WantedRoom>, Declined> {
        let weight = charge_of(record);
        let wanted = self.claim(more, weight, now_ns, pool).filter(|_| room.is_none());
        // A new value is not judged, not even if the old one leaves while others make room.
        let judged = if is_new { self.judge(record, wanted, room)? } else { u64::MAX };
        Ok(wanted.map(|bytes| WantedRoom { bytes, room: Room { judged } }))
    }

    /// Judges a new entry. `wanted` are the bytes that other shards would give, `room` is what they have given.
    /// Returns the bytes that have to leave this shard for it.
    fn judge(
        &self,
        record: &Record,
        wanted: Option<u64>,
        room: Option<Room>,
    ) -> Result<u64, Declined> {
        let newcomer = Newcomer { fingerprint: record.fingerprint(), weight: charge_of(record) };
        let shard = self.shard_bytes();
        let given = wanted.unwrap_or(0);
        let leaving = shard.leaving(newcomer.weight, given);
        let missing = leaving.saturating_sub(room.map_or(0, |room| room.judged));
        // Removed values that readers still hold can occupy so much that nothing would make it fit.
        let can_fit = newcomer.weight <= shard.budget + given;
        let is_worth = missing == 0
            || self.policy.judge(newcomer, missing)
            || mutant::is_on("newcomer-is-not-judged");
        if can_fit && is_worth {
            return Ok(leaving);
        }
        Err(Declined { newcomer, missing })
    }

    /// Declines a new entry that the eviction policy values less than its victims. The policy
    /// learns of the attempt, nothing is evicted, and the shard's budget is restored.
    pub(super) fn decline(&mut self, declined: Declined, budget_before: u64, pool: &Pool) {
        let Declined { newcomer, missing } = declined;
        // Its value was accepted: an older one must not come after it.
        self.removals.note(newcomer.fingerprint);
        self.policy.admit(newcomer, missing);
        self.give_up_overflow(pool);
        self.counters.add_exclusive(Event::Declined);
        self.unclaim(budget_before, pool);
    }

    /// Returns the number of bytes that a new entry's metadata needs but that cannot be allocated;
    /// `None` if it has memory; see [`lacks_memory`](Self::lacks_memory).
    pub(in crate::memory) fn lacks_memory_for_new(&self, expires: bool) -> Option<usize> {
        self.lacks_memory(true, expires.then(|| self.slab.slots()))
    }

    /// Returns the bytes that the metadata would take if a write makes them grow and there is no memory for
    /// that: a write whose entry takes one more slot, or one that expires in this slot.
    #[inline]
    fn lacks_memory(&self, needs_slot: bool, expiring: Option<usize>) -> Option<usize> {
        let slots = self.slab.slots();
        let more_slots = needs_slot
            && (self.slab.is_full()
                || slots >= self.policy_slots
                || self.index.len() == self.index.capacity());
        let more_expiries = expiring.is_some_and(|slot| slot >= self.expiries.slots());
        if more_slots || more_expiries { self.lacks_memory_to_grow(more_expiries) } else { None }
    }

    #[cold]
    fn lacks_memory_to_grow(&self, with_expiries: bool) -> Option<usize> {
        if mutant::is_on("shard-grows-without-memory") {
            return None;
        }
        let expiries_bytes = if with_expiries { Expiries::bytes(self.slab.slots()) } else { 0 };
        // Each part grows by an eighth, or the index by three, and is copied to do so.
        let bytes = (self.metadata_bytes() + expiries_bytes) / 4 * 5 + LEAST_GROWTH_BYTES;
        (!has_memory(bytes)).then_some(bytes)
    }

    /// Prefetches the memory that is read to insert a new entry, and the slot of the entry that leaves for
    /// it, so that the cache misses overlap. Returns whether one has to leave.
    fn prefetch(&self, draft: &Draft) -> bool {
        let fingerprint = draft.record().fingerprint();
        if self.bytes + charge_of(draft.record()) <= self.budget {
            self.index.prefetch(spread(fingerprint));
            return false;
        }
        // The line is taken from other processors at once, and not once more when the entry is inserted.
        self.index.prefetch_to_write(spread(fingerprint));
        self.policy.prefetch(fingerprint);
        if let Some(victim) = self.policy.next_victim() {
            self.slab.prefetch_slot_to_write(victim);
            self.policy.prefetch_victim(victim);
        }
        true
    }

    /// Prefetches the memory that is read to evict the next entry, after [`prefetch`](Self::prefetch).
    fn prefetch_victim(&self) {
        let Some(victim) = self.policy.next_victim() else { return };
        self.prefetch_to_free(victim);
        // Where the policy has the fingerprint as well, it is there earlier than the record.
        let fingerprint = self.policy.fingerprint(victim);
        let fingerprint = fingerprint.unwrap_or_else(|| self.slab.get(victim).fingerprint());
        self.index.prefetch_to_write(spread(fingerprint));
        self.policy.prefetch(fingerprint);
    }

    /// Inserts a new entry that the eviction policy values more than its victims. It is still
    /// declined if readers hold the evicted entries, whose memory then stays in use.
    pub(super) fn insert(&mut self, place: SlotPlace, now_ns: u64, pool: &Pool) {
        let SlotPlace { draft, expires_ns, written_s, uses } = place;
        let fingerprint = draft.record().fingerprint();
        let weight = charge_of(draft.record());
        let newcomer = Newcomer { fingerprint, weight };
        self.policy.admit(newcomer, 0);
        self.give_up_overflow(pool);
        while self.bytes + weight > self.budget {
            if self.expire_one(now_ns, pool) {
                continue;
            }
            if self.slab.is_empty() {
                self.removals.note(fingerprint);
                self.counters.add_exclusive(Event::Declined);
                return;
            }
            let victim = self.policy.evict(Some(newcomer));
            self.evicted(victim, pool);
        }
        self.version += 1;
        let slot = self.slab.insert(draft.place(self.version, expires_ns, written_s));
        self.reserve_slots();
        self.bytes += weight;
        let hash = |slot| spread(self.slab.get(slot).fingerprint());
        self.index.insert(spread(fingerprint), slot, hash);
        self.expiries.schedule(slot, expires_ns);
        match uses {
            None => self.policy.on_insert(slot, newcomer),
            Some(uses) => self.policy.on_restore(slot, newcomer, uses),
        }
        self.give_up_overflow(pool);
    }

    pub(super) fn reserve_slots(&mut self) {
        if self.slab.slots() > self.policy_slots {
            self.policy_slots = self.slab.slots() + self.slab.slots() / 8 + 16;
            self.policy.reserve_slots(self.policy_slots);
        }
    }

    /// Replaces the value of the entry in `slot` of a shard. The entry is removed instead if the
    /// policy evicts it in its turn, unless other shards have evicted entries for it; or if no
    /// eviction could make the value fit.
    pub(super) fn update(
        &mut self,
        slot: Slot,
        place: SlotPlace,
        have_others_left: bool,
        now_ns: u64,
        pool: &Pool,
    ) {
        let SlotPlace { draft, expires_ns, written_s, .. } = place;
        let new = charge_of(draft.record());
        let leaves = self.freed_by_update(slot);
        if self.bytes - leaves + new > self.budget
            && self.cannot_fit(slot, new)
            && !mutant::is_on("others-leave-for-an-update-that-cannot-fit")
        {
            self.policy.on_remove(slot);
            self.evicted(slot, pool);
            return;
        }
        self.policy.on_update(slot, new);
        // Before room is made: `evict` does not know entries that the policy has given up.
        if self.give_up_overflow(pool).contains(&slot) {
            return;
        }
        let newcomer = Newcomer { fingerprint: draft.record().fingerprint(), weight: new };
        if self.bytes - leaves + new > self.budget
            && !self.make_way(slot, newcomer, have_others_left, now_ns, pool)
        {
            return;
        }
        if !mutant::is_on("update-keeps-the-version") {
            self.version += 1;
        }
        let record = draft.place(self.version, expires_ns, written_s);
        let before = self.slab.replace(slot, record);
        self.release(before, pool);
        self.bytes += new;
        if !mutant::is_on("overwritten-entry-leaves-at-its-old-expiry") {
            self.expiries.schedule(slot, expires_ns);
        }
    }

    /// Lets entries leave until the new value of the entry in `slot` fits; returns whether this one stays.
    fn make_way(
        &mut self,
        slot: Slot,
        newcomer: Newcomer,
        have_others_left: bool,
        now_ns: u64,
        pool: &Pool,
    ) -> bool {
        let mut leaves = self.freed_by_update(slot);
        // Whether the policy has named this entry as a victim, and it stays all the same.
        let mut is_to_return = false;
        while self.bytes - leaves + newcomer.weight > self.budget {
            if self.expire_one(now_ns, pool) {
                continue;
            }
            let is_last = self.slab.len() == 1;
            let victim = if is_to_return && is_last { slot } else { self.policy.evict(None) };
            let stays = have_others_left && !mutant::is_on("updated-entry-leaves-after-others");
            if victim == slot && stays && !is_last {
                is_to_return = true;
                continue;
            }
            self.evicted(victim, pool);
            if victim == slot {
                return false;
            }
            if leaves == 0 {
                leaves = self.freed_by_update(slot);
            }
        }
        if is_to_return {
            self.policy.admit(newcomer, 0);
            self.give_up_overflow(pool);
            self.policy.on_insert(slot, newcomer);
            self.give_up_overflow(pool);
        }
        true
    }

    /// Whether the new value of an entry would not fit even if all others left, because readers hold removed
    /// values, or the old one.
    fn cannot_fit(&self, slot: Slot, new: u64) -> bool {
        let record = self.slab.get(slot);
        let held = charge_of(record) - self.freed_by_update(slot);
        new + held > self.budget
    }

    /// Returns the number of bytes that become free when an entry is overwritten: none if a reader
    /// holds its value, which stays allocated then.
    pub(super) fn freed_by_update(&self, slot: Slot) -> u64 {
        let record = self.slab.get(slot);
        let stays =
            record.is_pinned() && !mutant::is_on("room-for-the-overwritten-value-is-used-twice");
        if stays { 0 } else { charge_of(record) }
    }

    pub(in crate::memory) fn delete(
        &mut self,
        key: HashedKey<'_>,
        clock: &dyn Clock,
        pool: &Pool,
    ) -> bool {
        if !mutant::is_on("deleted-entry-comes-back-by-loading") {
            self.note_change(key.fingerprint);
        }
        let now_ns = self.now_ns(clock);
        let found = self.live(key, now_ns, pool);
        if found.is_none() && !mutant::is_on("memory-absent-keys-are-not-removed") {
            // Somebody may be computing it.
            self.removals.note(key.fingerprint);
        }
        self.delete_found(found, pool)
    }

    /// Deletes the entry of a key if its record meets a condition; returns whether it was deleted.
    pub(in crate::memory) fn delete_if(
        &mut self,
        key: HashedKey<'_>,
        is_met: impl FnOnce(&Record) -> bool,
        clock: &dyn Clock,
        pool: &Pool,
    ) -> bool {
        let now_ns = self.now_ns(clock);
        let found = self.live(key, now_ns, pool);
        let found = found.filter(|slot| is_met(self.slab.get(*slot)));
        if found.is_some() {
            self.note_change(key.fingerprint);
        }
        self.delete_found(found, pool)
    }

    /// Deletes the entry in a slot that was found for deletion, and counts the deletion.
    fn delete_found(&mut self, found: Option<Slot>, pool: &Pool) -> bool {
        let Some(slot) = found else {
            self.counters.add_exclusive(Event::DeleteMiss);
            return false;
        };
        self.policy.on_remove(slot);
        self.forget(slot, pool);
        self.settle(pool);
        self.counters.add_exclusive(Event::Delete);
        true
    }

    pub(in crate::memory) fn touch(
        &mut self,
        key: HashedKey<'_>,
        ttl: Option<Duration>,
        clock: &dyn Clock,
        pool: &Pool,
    ) -> bool {
        let now_ns = if ttl.is_some() { clock.now_ns() } else { self.now_ns(clock) };
        let Some(slot) = self.live(key, now_ns, pool) else {
            self.counters.add_exclusive(Event::TouchMiss);
            return false;
        };
        self.counters.add_exclusive(Event::Touch);
        let expires_ns = expiry_ns(now_ns, ttl);
        self.slab.get(slot).set_expires_ns(expires_ns);
        if !mutant::is_on("touched-entry-leaves-at-its-old-expiry") {
            self.expiries.schedule(slot, expires_ns);
        }
        self.policy.on_hit(slot);
        self.give_up_overflow(pool);
        self.settle(pool);
        true
    }
}
