//! What a shard holds, and the policy that decides over it: all that its lock protects.

use std::collections::HashSet;
use std::mem;
use std::time::Duration;

use hashbrown::HashTable;

use super::charge;
use super::counters::Counters;
use super::expiry::Expiries;
use super::pool::Pool;
use super::record::{Draft, Pin, Record};
use super::slab::Slab;
use crate::clock::Clock;
use crate::policy::{Newcomer, Policy, Slot, Victim};
use crate::stats::Stats;
use crate::store::{Cursor, Hit, Page};
use crate::ttl::expiry_ns;
use crate::write::{Version, WriteMode, Written};

/// How many expired entries a write removes besides those that it meets.
const SWEEP: usize = 8;

/// At how many entries a search for one that has expired looks at most.
const LOOKS: usize = 64;

/// How many slots are dropped for each entry that has left, where too many are free.
const DROPS: usize = 2;

const NS_PER_S: u64 = 1_000_000_000;

/// A key and its fingerprint.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) fingerprint: u64,
}

/// A value to be written, with its key and what the caller wants of it.
pub(super) struct Write {
    pub(super) draft: Draft,
    pub(super) mode: WriteMode,
    pub(super) ttl: Option<Duration>,
    /// Whether bytes were taken from other shards for it already, so that there are no more.
    pub(super) has_room: bool,
}

/// An entry of a snapshot, to be placed where there is none.
pub(super) struct Load {
    pub(super) draft: Draft,
    pub(super) expires_ns: u64,
    pub(super) written_s: u32,
    /// How many hits bring the entry back to its place.
    pub(super) uses: u8,
    pub(super) now_ns: u64,
    /// As in [`Write`].
    pub(super) has_room: bool,
}

/// An entry as it was when entries were ranked.
pub(super) struct Kept {
    fingerprint: u64,
    version: u64,
    /// As in [`Load`].
    pub(super) uses: u8,
}

/// A record to be placed, and what becomes of it.
struct Place {
    draft: Draft,
    expires_ns: u64,
    written_s: u32,
    /// For an entry that comes back, how many hits brought it to its place.
    uses: Option<u8>,
}

/// What came of a write.
pub(super) enum Outcome {
    Written(Written),
    /// Nothing has happened yet: the shard should claim so many bytes of other shards first.
    NeedsRoom(Write, u64),
}

/// Why a counter stays as it is.
pub(super) enum Uncounted {
    /// The value is no counter.
    NotACounter,
    /// With one digit more, of this many bytes, the entry would outweigh the cache.
    TooLarge(u64),
    /// There is no memory for so many bytes.
    OutOfMemory(usize),
    /// Nothing has happened yet: the shard should claim so many bytes of other shards first.
    NeedsRoom(u64),
}

/// What a look found that takes no exclusive lock.
pub(super) enum Look {
    Hit(Slot, Hit),
    Miss,
    /// An entry that has to leave, which takes an exclusive lock.
    Expired,
}

/// What the shards of a store have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    /// Whether there is one shard only.
    pub(super) is_alone: bool,
    /// When the clock was at zero, in seconds of the Unix epoch, if it is to be noted when an entry
    /// was written.
    pub(super) notes_time_from_s: Option<u64>,
    /// Where versions begin.
    pub(super) version: u64,
}

#[derive(Debug)]
pub(super) struct Contents<P> {
    policy: P,
    slab: Slab,
    /// Slots by fingerprint.
    index: HashTable<Slot>,
    expiries: Expiries,
    counters: Counters,
    /// What the entries are charged.
    bytes: u64,
    /// What was claimed of the pool; `bytes` never exceeds it.
    budget: u64,
    /// This shard's part of the size.
    fair_share: u64,
    /// What the policy was told that the capacity is.
    policy_capacity: u64,
    /// The version of the last write.
    version: u64,
    /// How many slots the policy is prepared for.
    policy_slots: usize,
    /// How many entries have left since slots were dropped last.
    left: usize,
    is_alone: bool,
    /// As in [`Options`].
    notes_time_from_s: Option<u64>,
    /// While a snapshot is loaded, the fingerprints of what was written or deleted since: a later
    /// value is not replaced by an earlier one, and what was deleted does not come back.
    changed: Option<HashSet<u64>>,
    is_closed: bool,
}

impl<P: Policy> Contents<P> {
    /// Nothing, under a policy made for `fair_share` bytes.
    pub(super) fn new(policy: P, fair_share: u64, options: Options) -> Self {
        let Options { is_alone, notes_time_from_s, version } = options;
        Self {
            policy,
            slab: Slab::default(),
            index: HashTable::new(),
            expiries: Expiries::default(),
            counters: Counters::default(),
            bytes: 0,
            budget: 0,
            fair_share,
            policy_capacity: fair_share,
            version,
            policy_slots: 0,
            left: 0,
            is_alone,
            notes_time_from_s,
            changed: None,
            is_closed: false,
        }
    }

    pub(super) fn add_to(&self, stats: &mut Stats) {
        self.counters.add_to(stats);
        stats.entries += self.len();
        stats.bytes += self.bytes;
    }

    pub(super) fn len(&self) -> u64 {
        self.slab.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Refuses all from here on. What is there stays, to be saved.
    /// Says whether the shard was open.
    pub(super) fn close(&mut self) -> bool {
        !std::mem::replace(&mut self.is_closed, true)
    }

    /// The time, if it matters to anything here; else any.
    fn now_ns(&self, clock: &dyn Clock) -> u64 {
        if self.expiries.is_idle() && self.notes_time_from_s.is_none() { 0 } else { clock.now_ns() }
    }

    /// Finds an entry for a read through a shared lock.
    #[inline]
    pub(super) fn look(&self, key: Key<'_>, clock: &dyn Clock) -> Look {
        let Some(slot) = self.find(key) else { return Look::Miss };
        let record = self.slab.get(slot);
        let expires_ns = record.expires_ns();
        let mut hit = Hit::new(Some(Version::from_raw(record.version())), None);
        if expires_ns != u64::MAX {
            // Read under the lock: an entry must not expire while the caller waits for it.
            let now_ns = clock.now_ns();
            if expires_ns <= now_ns {
                return Look::Expired;
            }
            hit.expires_in = Some(Duration::from_nanos(expires_ns - now_ns));
        }
        Look::Hit(slot, hit)
    }

    #[inline]
    pub(super) fn record(&self, slot: Slot) -> &Record {
        self.slab.get(slot)
    }

    /// Counts a miss.
    pub(super) fn missed(&self) {
        self.counters.misses.raise();
    }

    /// Counts a hit and tells a policy that needs no exclusive lock for it.
    #[inline]
    pub(super) fn hit_shared(&self, slot: Slot) {
        self.counters.hits.raise();
        self.policy.on_hit_shared(slot);
    }

    /// Finds an entry, counts the hit or miss, and tells the policy. What `read` makes of the
    /// record is made before the policy can give the entry up.
    pub(super) fn read<T>(
        &mut self,
        key: Key<'_>,
        clock: &dyn Clock,
        pool: &Pool,
        read: impl FnOnce(&Record, Hit) -> T,
    ) -> Option<T> {
        let Look::Hit(slot, hit) = self.look_and_expire(key, clock, pool) else {
            self.missed();
            return None;
        };
        let value = read(self.slab.get(slot), hit);
        self.counters.hits.raise();
        self.policy.on_hit(slot);
        self.give_up_surplus(pool);
        Some(value)
    }

    pub(super) fn contains(&mut self, key: Key<'_>, clock: &dyn Clock, pool: &Pool) -> bool {
        matches!(self.look_and_expire(key, clock, pool), Look::Hit(..))
    }

    fn look_and_expire(&mut self, key: Key<'_>, clock: &dyn Clock, pool: &Pool) -> Look {
        let look = self.look(key, clock);
        if matches!(look, Look::Expired) {
            let slot = self.find(key).expect("it was found");
            self.expire(slot, pool);
            self.settle(pool);
        }
        look
    }

    /// Writes a record that is not larger than the store.
    pub(super) fn write(&mut self, write: Write, clock: &dyn Clock, pool: &Pool) -> Outcome {
        let now_ns = if write.ttl.is_some() { clock.now_ns() } else { self.now_ns(clock) };
        self.sweep(now_ns, pool);
        let found = self.live(key_of(write.draft.record()), now_ns, pool);
        let unmet = match (write.mode, found) {
            (WriteMode::Add, Some(_)) => Some(Written::Exists),
            (WriteMode::Replace | WriteMode::Cas(_), None) => Some(Written::Absent),
            (WriteMode::Cas(version), Some(slot)) => {
                (self.slab.get(slot).version() != version.raw()).then_some(Written::Changed)
            }
            _ => None,
        };
        if let Some(unmet) = unmet {
            self.counters.unmet.raise();
            return Outcome::Written(unmet);
        }
        let weight = charge_of(write.draft.record());
        let before = found.map_or(0, |slot| charge_of(self.slab.get(slot)));
        if let Some(bytes) = self.claim(weight.saturating_sub(before), weight, pool)
            && !write.has_room
        {
            return Outcome::NeedsRoom(write, bytes);
        }
        // A policy that was told another capacity may have given the entry up.
        let found = if P::HAS_SURPLUS {
            found.and_then(|_| self.find(key_of(write.draft.record())))
        } else {
            found
        };
        self.counters.sets.raise();
        self.note_change(write.draft.record().fingerprint());
        let expires_ns = expiry_ns(now_ns, write.ttl);
        let written_s = self.written_s(now_ns);
        let place = Place { draft: write.draft, expires_ns, written_s, uses: None };
        match found {
            Some(slot) => self.update(slot, place, now_ns, pool),
            None => self.insert(place, now_ns, pool),
        }
        self.settle(pool);
        Outcome::Written(Written::Stored)
    }

    /// Claims what is missing for `more` bytes, as far as the pool has it. If it has not enough,
    /// gives how much the shard should take of the others: as much as an entry of `weight` needs
    /// that is larger than all that this shard has; or its part of the size, where it has clearly
    /// less.
    fn claim(&mut self, more: u64, weight: u64, pool: &Pool) -> Option<u64> {
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
    pub(super) fn grow(&mut self, bytes: u64, pool: &Pool) {
        self.budget += bytes;
        self.tell_capacity(pool);
    }

    /// Gives up so many bytes, or all, by evicting; says how many. They are the caller's then.
    pub(super) fn shrink(&mut self, bytes: u64, pool: &Pool) -> u64 {
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
    fn victim(&mut self, grown: Option<Slot>) -> Slot {
        if let Victim::Slot(slot) = self.policy.evict(None) {
            return slot;
        }
        let slot = grown.or_else(|| self.slab.first()).expect("called while there is an entry");
        self.policy.on_remove(slot);
        slot
    }

    /// Makes another part of the size this shard's.
    pub(super) fn set_fair_share(&mut self, bytes: u64, pool: &Pool) {
        self.fair_share = bytes;
        self.tell_capacity(pool);
    }

    /// What the shard has more than its part of the size.
    pub(super) fn excess(&self) -> u64 {
        self.budget.saturating_sub(self.fair_share)
    }

    pub(super) fn budget(&self) -> u64 {
        self.budget
    }

    /// A policy divides its capacity among its queues. It is told the fair share, unless the shard
    /// has clearly more: then an entry is in it that needs that.
    fn tell_capacity(&mut self, pool: &Pool) {
        let is_rich = self.budget > self.fair_share + self.fair_share / 8;
        let capacity = if is_rich { self.budget } else { self.fair_share };
        if capacity != self.policy_capacity {
            self.policy_capacity = capacity;
            self.policy.set_capacity(capacity);
            self.give_up_surplus(pool);
        }
    }

    pub(super) fn delete(&mut self, key: Key<'_>, clock: &dyn Clock, pool: &Pool) -> bool {
        self.note_change(key.fingerprint);
        let now_ns = self.now_ns(clock);
        let Some(slot) = self.live(key, now_ns, pool) else {
            self.counters.delete_misses.raise();
            return false;
        };
        self.policy.on_remove(slot);
        self.forget(slot, pool);
        self.settle(pool);
        self.counters.deletes.raise();
        true
    }

    pub(super) fn touch(
        &mut self,
        key: Key<'_>,
        ttl: Option<Duration>,
        clock: &dyn Clock,
        pool: &Pool,
    ) -> bool {
        let now_ns = if ttl.is_some() { clock.now_ns() } else { self.now_ns(clock) };
        let Some(slot) = self.live(key, now_ns, pool) else {
            self.counters.touch_misses.raise();
            return false;
        };
        self.counters.touches.raise();
        let expires_ns = expiry_ns(now_ns, ttl);
        self.slab.get(slot).set_expires_ns(expires_ns);
        self.expiries.schedule(slot, expires_ns);
        self.policy.on_hit(slot);
        self.give_up_surplus(pool);
        self.settle(pool);
        true
    }

    /// Replaces the counter under `key` by what `count` makes of it, if an entry may be charged
    /// `limit_bytes`. `has_room` as in [`Write`].
    pub(super) fn count(
        &mut self,
        key: Key<'_>,
        count: impl FnOnce(u64) -> u64,
        limit_bytes: u64,
        has_room: bool,
        clock: &dyn Clock,
        pool: &Pool,
    ) -> Result<Option<u64>, Uncounted> {
        let now_ns = self.now_ns(clock);
        self.sweep(now_ns, pool);
        let Some(slot) = self.live(key, now_ns, pool) else {
            self.counters.count_misses.raise();
            return Ok(None);
        };
        let record = self.slab.get(slot);
        let number = count(counter(record.value()).ok_or(Uncounted::NotACounter)?);
        let digits = number.to_string();
        let (before, weight) = (charge_of(record), charge_of_lengths(key.bytes, digits.as_bytes()));
        if weight > limit_bytes {
            return Err(Uncounted::TooLarge(digits.len() as u64));
        }
        let expires_ns = record.expires_ns();
        let draft = Draft::copied(key.fingerprint, key.bytes, digits.as_bytes())
            .ok_or(Uncounted::OutOfMemory(digits.len()))?;
        if let Some(bytes) = self.claim(weight.saturating_sub(before), weight, pool)
            && !has_room
        {
            return Err(Uncounted::NeedsRoom(bytes));
        }
        if P::HAS_SURPLUS && self.find(key) != Some(slot) {
            return Ok(None);
        }
        self.counters.sets.raise();
        self.counters.counts.raise();
        self.note_change(key.fingerprint);
        let written_s = self.written_s(now_ns);
        self.update(slot, Place { draft, expires_ns, written_s, uses: None }, now_ns, pool);
        self.settle(pool);
        Ok(Some(number))
    }

    /// Deletes everything, and what is still to be loaded.
    pub(super) fn clear(&mut self, pool: &Pool) {
        self.changed = None;
        for slot in self.slab.taken() {
            self.policy.on_remove(slot);
            self.forget(slot, pool);
        }
        self.expiries.clear();
        // Nothing to keep, and so no ghosts either.
        self.policy.set_capacity(0);
        self.policy.set_capacity(self.policy_capacity);
        self.drop_slots();
        self.settle(pool);
    }

    /// The keys in `limit` slots before `end`, or before the last. Entries only ever move to lower
    /// slots, so that going down none is missed.
    pub(super) fn keys(&self, end: Option<u64>, limit: usize, clock: &dyn Clock) -> Page {
        let end = end.map_or(usize::MAX, |end| usize::try_from(end).unwrap_or(usize::MAX));
        let end = end.min(self.slab.slots());
        let start = end.saturating_sub(limit.max(1));
        let now_ns = self.now_ns(clock);
        let records = self.slab.range(start..end).filter(|record| record.expires_ns() > now_ns);
        let keys = records.map(|record| record.key().to_vec()).collect();
        Page { keys, next: (start > 0).then(|| Cursor::new(0, start as u64)) }
    }

    /// Every entry that lives, from the one to keep longest to the next to leave.
    pub(super) fn ranked(&self, now_ns: u64) -> Vec<Kept> {
        let kept = |slot: Slot, uses: u8| {
            let record = self.slab.get(slot);
            let (fingerprint, version) = (record.fingerprint(), record.version());
            (record.expires_ns() > now_ns).then_some(Kept { fingerprint, version, uses })
        };
        let ranking = self.policy.ranking();
        if ranking.is_empty() {
            return self.slab.taken().into_iter().filter_map(|slot| kept(slot, 0)).collect();
        }
        ranking.into_iter().filter_map(|ranked| kept(ranked.slot, ranked.uses)).collect()
    }

    /// Pins an entry that was [ranked](Self::ranked), with the value that it has now; `None` if it
    /// has left since.
    pub(super) fn pin_kept(&self, kept: &Kept) -> Option<Pin> {
        // One that was overwritten has a later version. Where keys share a fingerprint that can be
        // another entry, which then comes twice.
        let find = |is_it: fn(u64, u64) -> bool| {
            self.index.find(spread(kept.fingerprint), |slot| {
                let record = self.slab.get(*slot);
                record.fingerprint() == kept.fingerprint && is_it(record.version(), kept.version)
            })
        };
        let slot = find(|now, then| now == then).or_else(|| find(|now, then| now > then))?;
        Some(self.slab.get(*slot).pin())
    }

    /// From here on entries of a snapshot can be loaded.
    pub(super) fn begin_loading(&mut self) {
        self.changed = Some(HashSet::new());
    }

    pub(super) fn end_loading(&mut self) {
        self.changed = None;
    }

    /// Places an entry of a snapshot, unless its key has changed since, and tells the policy of its
    /// uses. If the shard should claim bytes of other shards first, gives the entry back with how
    /// many.
    pub(super) fn load(&mut self, load: Load, pool: &Pool) -> Option<(Load, u64)> {
        let key = key_of(load.draft.record());
        let fingerprint = key.fingerprint;
        let is_unchanged = self.changed.as_ref().is_some_and(|set| !set.contains(&fingerprint));
        if !is_unchanged || self.find(key).is_some() {
            return None;
        }
        let weight = charge_of(load.draft.record());
        if let Some(bytes) = self.claim(weight, weight, pool)
            && !load.has_room
        {
            return Some((load, bytes));
        }
        let Load { draft, expires_ns, written_s, uses, now_ns, .. } = load;
        self.insert(Place { draft, expires_ns, written_s, uses: Some(uses) }, now_ns, pool);
        self.settle(pool);
        None
    }

    fn note_change(&mut self, fingerprint: u64) {
        if let Some(changed) = &mut self.changed {
            changed.insert(fingerprint);
        }
    }

    /// When an entry is written, in seconds of the Unix epoch, if that is noted; else 0.
    fn written_s(&self, now_ns: u64) -> u32 {
        let from_s = self.notes_time_from_s;
        from_s.map_or(0, |from_s| u32::try_from(from_s + now_ns / NS_PER_S).unwrap_or(u32::MAX))
    }

    #[inline]
    fn find(&self, key: Key<'_>) -> Option<Slot> {
        let same = |slot: &Slot| {
            let record = self.slab.get(*slot);
            record.fingerprint() == key.fingerprint && record.key() == key.bytes
        };
        self.index.find(spread(key.fingerprint), same).copied()
    }

    /// The slot of an entry that has not expired. One that has leaves.
    fn live(&mut self, key: Key<'_>, now_ns: u64, pool: &Pool) -> Option<Slot> {
        let slot = self.find(key)?;
        if self.slab.get(slot).expires_ns() > now_ns {
            return Some(slot);
        }
        self.expire(slot, pool);
        None
    }

    /// Places a newcomer, unless the policy declines it.
    fn insert(&mut self, place: Place, now_ns: u64, pool: &Pool) {
        let Place { draft, expires_ns, written_s, uses } = place;
        let fingerprint = draft.record().fingerprint();
        let weight = charge_of(draft.record());
        let newcomer = Newcomer { fingerprint, weight };
        let admitted = self.policy.admit(newcomer);
        self.give_up_surplus(pool);
        if !admitted {
            self.counters.declined.raise();
            return;
        }
        while self.bytes + weight > self.budget {
            if self.expire_one(now_ns, pool) {
                continue;
            }
            // Values that left and that readers still hold can keep everything occupied.
            let is_empty = self.slab.len() == 0;
            let victim =
                if is_empty { Victim::Newcomer } else { self.policy.evict(Some(newcomer)) };
            match victim {
                Victim::Slot(slot) => self.evicted(slot, pool),
                Victim::Newcomer => {
                    self.counters.declined.raise();
                    return;
                }
            }
        }
        self.version += 1;
        let slot = self.slab.insert(draft.place(self.version, expires_ns, written_s));
        self.reserve_slots();
        self.bytes += weight;
        let hash = |slot: &Slot| spread(self.slab.get(*slot).fingerprint());
        self.index.insert_unique(spread(fingerprint), slot, hash);
        self.expiries.schedule(slot, expires_ns);
        match uses {
            None => self.policy.on_insert(slot, newcomer),
            Some(uses) => self.policy.on_restore(slot, newcomer, uses),
        }
        self.give_up_surplus(pool);
    }

    fn reserve_slots(&mut self) {
        if self.slab.slots() > self.policy_slots {
            self.policy_slots = self.slab.slots() + self.slab.slots() / 8 + 16;
            self.policy.reserve_slots(self.policy_slots);
        }
    }

    /// Gives the entry in `slot` a new value, unless making room for it takes the entry itself.
    fn update(&mut self, slot: Slot, place: Place, now_ns: u64, pool: &Pool) {
        let Place { draft, expires_ns, written_s, .. } = place;
        let old = charge_of(self.slab.get(slot));
        let new = charge_of(draft.record());
        self.policy.on_update(slot, new);
        // Before room is made: of what the policy has given up, `evict` knows nothing any more.
        if self.give_up_surplus(pool).contains(&slot) {
            return;
        }
        // A value that a reader holds stays where it is, and the new one comes beside it.
        let mut leaves = if self.slab.get(slot).is_pinned() { 0 } else { old };
        while self.bytes - leaves + new > self.budget {
            if self.expire_one(now_ns, pool) {
                continue;
            }
            let victim = self.victim(Some(slot));
            self.evicted(victim, pool);
            if victim == slot {
                return;
            }
            if leaves == 0 && !self.slab.get(slot).is_pinned() {
                leaves = old;
            }
        }
        self.version += 1;
        let record = draft.place(self.version, expires_ns, written_s);
        let before = self.slab.replace(slot, record);
        self.release(before, pool);
        self.bytes += new;
        self.expiries.schedule(slot, expires_ns);
    }

    /// Removes what the policy gives up although the bound does not ask for it.
    fn give_up_surplus(&mut self, pool: &Pool) -> Vec<Slot> {
        let mut given_up = Vec::new();
        if P::HAS_SURPLUS {
            while let Some(slot) = self.policy.surplus() {
                self.evicted(slot, pool);
                given_up.push(slot);
            }
        }
        given_up
    }

    /// Removes a few entries that have expired.
    fn sweep(&mut self, now_ns: u64, pool: &Pool) {
        for _ in 0..SWEEP {
            if !self.expire_one(now_ns, pool) {
                break;
            }
        }
    }

    /// Removes an entry that has expired; says whether one was found.
    fn expire_one(&mut self, now_ns: u64, pool: &Pool) -> bool {
        let Some(slot) = self.expiries.pop_expired_within(now_ns, &mut { LOOKS }) else {
            return false;
        };
        self.expire(slot, pool);
        true
    }

    fn expire(&mut self, slot: Slot, pool: &Pool) {
        self.policy.on_remove(slot);
        self.forget(slot, pool);
        self.counters.expired.raise();
    }

    /// Removes an entry that the policy has given up.
    fn evicted(&mut self, slot: Slot, pool: &Pool) {
        self.forget(slot, pool);
        self.counters.evictions.raise();
    }

    /// Removes an entry of which the policy knows nothing any more.
    fn forget(&mut self, slot: Slot, pool: &Pool) {
        self.left += 1;
        let record = self.slab.remove(slot);
        let found = self.index.find_entry(spread(record.fingerprint()), |other| *other == slot);
        found.expect("an entry is in the index").remove();
        self.expiries.cancel(slot);
        self.release(record, pool);
    }

    /// Frees a record that has left. If a reader holds it, its bytes leave the budget: whoever
    /// gives it up last gives them to the pool.
    fn release(&mut self, record: Record, pool: &Pool) {
        let charge = charge_of(&record);
        self.bytes -= charge;
        if record.is_pinned() {
            self.budget -= charge;
            if record.release() {
                pool.give(charge);
            }
        }
    }

    /// After entries have left: fewer slots where many are free, and bytes for the others.
    fn settle(&mut self, pool: &Pool) {
        for _ in 0..DROPS * mem::take(&mut self.left) {
            if !P::RELOCATES || !self.slab.is_sparse() {
                break;
            }
            self.drop_last();
        }
        let idle = self.budget - self.bytes;
        if !self.is_alone && idle > self.fair_share / 16 {
            let given = idle - self.fair_share / 32;
            self.budget -= given;
            pool.give(given);
            self.tell_capacity(pool);
        }
    }

    /// Drops as many slots as are worth it, after many entries have left.
    fn drop_slots(&mut self) {
        while P::RELOCATES && self.slab.is_sparse() {
            self.drop_last();
        }
    }

    fn drop_last(&mut self) {
        if let Some((from, to)) = self.slab.drop_last() {
            let fingerprint = self.slab.get(to).fingerprint();
            let found = self.index.find_mut(spread(fingerprint), |slot| *slot == from);
            *found.expect("an entry is in the index") = to;
            self.policy.relocate(from, to);
            self.expiries.relocate(from, to);
        }
        let slots = self.slab.slots();
        if self.policy_slots > slots + slots / 4 + 64 {
            self.policy_slots = slots + slots / 8;
            self.policy.drop_slots(self.policy_slots);
            self.expiries.drop_slots(self.policy_slots);
        }
        if self.index.capacity() > 4 * self.slab.len() + 64 {
            let slab = &self.slab;
            self.index.shrink_to(slab.len(), |slot| spread(slab.get(*slot).fingerprint()));
        }
    }

    /// What is allocated beside the records, in bytes.
    #[cfg(test)]
    pub(super) fn metadata_bytes(&self) -> usize {
        self.policy.metadata_bytes() + self.slab.metadata_bytes() + self.index.allocation_size()
    }
}

fn key_of(record: &Record) -> Key<'_> {
    Key { bytes: record.key(), fingerprint: record.fingerprint() }
}

fn charge_of(record: &Record) -> u64 {
    charge_of_lengths(record.key(), record.value())
}

pub(super) fn charge_of_lengths(key: &[u8], value: &[u8]) -> u64 {
    charge(key.len() as u64, value.len() as u64)
}

/// Fingerprints may be small numbers; the index looks at the high bits as well.
#[inline]
pub(super) fn spread(fingerprint: u64) -> u64 {
    fingerprint.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Reads a counter as memcached does: up to 20 decimal digits that fit into 64 bits.
fn counter(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 20 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn counters_are_decimal_digits() {
        assert_eq!(counter(b"0"), Some(0));
        assert_eq!(counter(b"0042"), Some(42));
        assert_eq!(counter(b"18446744073709551615"), Some(u64::MAX));
        for text in ["", "+1", "-1", " 1", "1 ", "1.0", "x", "18446744073709551616"] {
            assert_eq!(counter(text.as_bytes()), None, "{text}");
        }
        assert_eq!(counter(&[b'0'; 21]), None);
        assert_eq!(counter(&[0xff]), None);
    }
}
