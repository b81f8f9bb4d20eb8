//! The `memory` store as it would be opened: its shards, which share one pool of bytes, its charge of
//! entries and its hash of keys.
//!
//! The steps are those of `haypile::memory`, in its order, and so are the rules and the slots: with the
//! same hash function of keys, store and simulation have the same hits.

use haypile_policy::prefetch::prefetch_to_write;
use haypile_policy::rules::memory::{self as rules, ShardBytes};
use haypile_policy::slab::Slab;
use haypile_policy::{Newcomer, Policy, Slot};

use super::Counts;
use super::run::Cached;
use crate::Trace;
use crate::trace::Key;

/// The seed of the hash function for keys in a simulated `memory` store. A real store draws a random seed unless
/// `MemoryBuilder::hash_seed` sets one.
pub const ENGINE_HASH_SEED: u64 = 0;

/// Slots that are dropped for each removed entry while too many are free.
const DROPS: usize = 2;

/// States of a key that is not in the cache. Above them, a state is the charge of the entry plus 1.
const NEVER_STORED: u64 = 0;
const GONE: u64 = 1;

/// A key of the trace.
#[derive(Clone, Copy, Debug)]
struct SimulatedKey {
    fingerprint: u64,
    state: u64,
    slot: Slot,
}

/// A simulated `memory` store, which divides keys among shards and charges entries as the real one does.
#[derive(Debug)]
pub(super) struct EngineCache<P> {
    shards: Vec<SimulatedShard<P>>,
    keys: Vec<SimulatedKey>,
    free_bytes: i64,
    capacity: u64,
    counts: Counts,
}

#[derive(Debug)]
struct SimulatedShard<P> {
    policy: P,
    /// The key of each of the policy's slots.
    slab: Slab<u32>,
    bytes: ShardBytes,
    policy_capacity: u64,
    policy_slots: usize,
    /// Number of entries removed since slots were last dropped.
    left: usize,
}

impl<P: Policy> EngineCache<P> {
    /// Creates an empty simulated `memory` store of `capacity` bytes, with an eviction policy for each shard.
    pub(super) fn new(
        trace: &Trace,
        capacity: u64,
        shards: usize,
        make: impl Fn(u64) -> P,
    ) -> Self {
        let fair_share = capacity / shards as u64;
        let bytes = ShardBytes { used: 0, budget: 0, fair_share, is_alone: shards == 1 };
        let shard = |_| SimulatedShard {
            policy: make(fair_share),
            slab: Slab::default(),
            bytes,
            policy_capacity: fair_share,
            policy_slots: 0,
            left: 0,
        };
        let key = |id| SimulatedKey { fingerprint: fingerprint(trace, id), state: 0, slot: 0 };
        Self {
            shards: (0..shards).map(shard).collect(),
            keys: (0..trace.keys()).map(key).collect(),
            free_bytes: signed(capacity),
            capacity,
            counts: Counts::default(),
        }
    }

    fn key(&self, id: u32) -> SimulatedKey {
        self.keys[id as usize]
    }

    fn shard_of(&self, id: u32) -> usize {
        rules::shard_of(self.key(id).fingerprint, self.shards.len())
    }

    /// Takes bytes from the pool for a shard; returns how many.
    fn take_free(&mut self, needed: u64, wanted: u64) -> Option<u64> {
        let claimed = rules::claimed(self.free_bytes, needed, wanted)?;
        self.free_bytes -= signed(claimed);
        Some(claimed)
    }

    /// Claims bytes for `more` in a shard; returns those that other shards should give.
    fn claim(&mut self, at: usize, more: u64, weight: u64) -> Option<u64> {
        let bytes = self.shards[at].bytes;
        let missing = bytes.missing(more);
        if missing == 0 {
            return None;
        }
        let claimed = self
            .take_free(missing, bytes.batch())
            .or_else(|| self.take_free(0, missing))
            .unwrap_or(0);
        // The policy learns of it when the write is not declined.
        self.shards[at].bytes.budget += claimed;
        if claimed >= missing { None } else { self.shards[at].bytes.wanted(weight) }
    }

    fn grow(&mut self, at: usize, bytes: u64) {
        self.shards[at].bytes.budget += bytes;
        self.report_capacity(at);
    }

    fn report_capacity(&mut self, at: usize) {
        let shard = &mut self.shards[at];
        let capacity = shard.bytes.policy_capacity();
        if capacity != shard.policy_capacity {
            shard.policy_capacity = capacity;
            shard.policy.set_capacity(capacity);
            self.drain_overflow(at);
        }
    }

    fn drain_overflow(&mut self, at: usize) {
        if P::HAS_OVERFLOW {
            while let Some(slot) = self.shards[at].policy.overflow() {
                self.evicted(at, slot);
            }
        }
    }

    fn evicted(&mut self, at: usize, slot: Slot) {
        self.forget(at, slot);
        self.counts.evictions += 1;
    }

    /// Removes an entry that the policy no longer knows.
    fn forget(&mut self, at: usize, slot: Slot) {
        let shard = &mut self.shards[at];
        shard.left += 1;
        let id = shard.slab.remove(slot);
        let key = &mut self.keys[id as usize];
        shard.bytes.used -= key.state - 1;
        key.state = GONE;
    }

    /// Takes bytes from the pool and from other shards, as the store does.
    fn make_room(&mut self, poor: usize, bytes: u64) {
        let mut missing = bytes;
        let claimed = self.take_free(0, missing).unwrap_or(0);
        self.grow(poor, claimed);
        missing -= claimed;
        let others = self.shards.len() as u64 - 1;
        let evenly = bytes.div_ceil(others.max(1));
        for pass in 0..3 {
            for step in 1..self.shards.len() {
                if missing == 0 {
                    return;
                }
                let rich = (poor + step) & (self.shards.len() - 1);
                let bytes = self.shards[rich].bytes;
                let most = [bytes.excess(), evenly, bytes.budget][pass];
                let taken = self.shrink(rich, most.min(missing));
                self.grow(poor, taken);
                missing -= taken;
            }
        }
    }

    /// Takes bytes from a shard by evicting; returns how many.
    fn shrink(&mut self, at: usize, bytes: u64) -> u64 {
        loop {
            let shard = &self.shards[at];
            if shard.bytes.budget - shard.bytes.used >= bytes || shard.slab.is_empty() {
                break;
            }
            let victim = self.shards[at].policy.evict(None);
            self.evicted(at, victim);
        }
        let shard = &mut self.shards[at];
        let given = bytes.min(shard.bytes.budget - shard.bytes.used);
        shard.bytes.budget -= given;
        self.return_idle(at);
        self.report_capacity(at);
        while self.shards[at].is_sparse() {
            self.drop_last(at);
        }
        given
    }

    /// Drops slots if many are free, and returns bytes to the pool.
    fn settle(&mut self, at: usize) {
        for _ in 0..DROPS * std::mem::take(&mut self.shards[at].left) {
            if !self.shards[at].is_sparse() {
                break;
            }
            self.drop_last(at);
        }
        if self.return_idle(at) {
            self.report_capacity(at);
        }
    }

    /// Returns bytes to the pool that a shard does not need; returns whether there were any.
    fn return_idle(&mut self, at: usize) -> bool {
        let Some(idle) = self.shards[at].bytes.idle() else { return false };
        self.shards[at].bytes.budget -= idle;
        self.free_bytes += signed(idle);
        true
    }

    fn drop_last(&mut self, at: usize) {
        let shard = &mut self.shards[at];
        if let Some((from, to)) = shard.slab.drop_last() {
            self.keys[*shard.slab.get(to) as usize].slot = to;
            shard.policy.relocate(from, to);
        }
        let slots = shard.slab.slots();
        if shard.policy_slots > slots + slots / 4 + 64 {
            shard.policy_slots = slots + slots / 8;
            shard.policy.drop_slots(shard.policy_slots);
        }
    }

    /// Writes a value. One that no store of this size takes is refused.
    fn set(&mut self, id: u32, weight: Option<u64>) {
        let Some(weight) = weight.filter(|weight| *weight <= self.capacity) else {
            self.refuse(id);
            return;
        };
        let at = self.shard_of(id);
        let newcomer = Newcomer { fingerprint: self.key(id).fingerprint, weight };
        let is_new = self.key(id).state <= GONE;
        let before = self.key(id).state.saturating_sub(1);
        let budget_before = self.shards[at].bytes.budget;
        let wanted = self.claim(at, weight.saturating_sub(before), weight);
        // A new entry is judged before anything leaves for it.
        let missing = self.shards[at].bytes.leaving(weight, wanted.unwrap_or(0));
        if is_new && missing > 0 && !self.shards[at].policy.judge(newcomer, missing) {
            self.decline(at, id, newcomer, missing, budget_before);
            return;
        }
        if let Some(bytes) = wanted {
            self.make_room(at, bytes);
            // What other shards gave up may have been this key's, in this one.
            let before = self.key(id).state.saturating_sub(1);
            self.claim(at, weight.saturating_sub(before), weight);
        }
        self.report_capacity(at);
        if self.key(id).state > GONE {
            self.update(at, id, weight, wanted.is_some());
        } else {
            self.insert(at, id, newcomer);
        }
        self.settle(at);
    }

    /// Declines a new entry: the policy learns of it, and nothing leaves.
    fn decline(
        &mut self,
        at: usize,
        id: u32,
        newcomer: Newcomer,
        missing: u64,
        budget_before: u64,
    ) {
        self.keys[id as usize].state = GONE;
        let shard = &mut self.shards[at];
        shard.policy.admit(newcomer, missing);
        let claimed = shard.bytes.budget - budget_before;
        shard.bytes.budget -= claimed;
        self.free_bytes += signed(claimed);
        self.drain_overflow(at);
        self.counts.refused += 1;
    }

    fn insert(&mut self, at: usize, id: u32, newcomer: Newcomer) {
        let weight = newcomer.weight;
        self.keys[id as usize].state = GONE;
        self.shards[at].policy.admit(newcomer, 0);
        self.drain_overflow(at);
        while self.shards[at].bytes.missing(weight) > 0 {
            let victim = self.shards[at].policy.evict(Some(newcomer));
            self.evicted(at, victim);
        }
        let shard = &mut self.shards[at];
        let slot = shard.slab.insert(id);
        shard.reserve_slots();
        shard.bytes.used += weight;
        let key = &mut self.keys[id as usize];
        (key.state, key.slot) = (weight + 1, slot);
        shard.policy.on_insert(slot, newcomer);
        self.drain_overflow(at);
    }

    /// Gives an entry a new weight; it leaves instead if it is a victim, unless entries of other shards have left
    /// for it.
    fn update(&mut self, at: usize, id: u32, weight: u64, have_others_left: bool) {
        let SimulatedKey { slot, fingerprint, .. } = self.key(id);
        self.shards[at].policy.on_update(slot, weight);
        self.drain_overflow(at);
        let before = self.key(id).state - 1;
        if self.key(id).state == GONE {
            return;
        }
        let mut is_to_return = false;
        loop {
            let shard = &mut self.shards[at];
            if shard.bytes.used - before + weight <= shard.bytes.budget {
                break;
            }
            let victim = shard.policy.evict(None);
            if victim == slot && have_others_left && shard.slab.len() > 1 {
                is_to_return = true;
                continue;
            }
            self.evicted(at, victim);
            if victim == slot {
                return;
            }
        }
        if is_to_return {
            let newcomer = Newcomer { fingerprint, weight };
            self.shards[at].policy.admit(newcomer, 0);
            self.drain_overflow(at);
            self.shards[at].policy.on_insert(slot, newcomer);
            self.drain_overflow(at);
        }
        let used = &mut self.shards[at].bytes.used;
        *used = *used - before + weight;
        self.keys[id as usize].state = weight + 1;
    }

    /// Refuses a value that is larger than the store. The store keeps the old value, but a program that
    /// gets the error deletes it, because it is not the key's any more.
    fn refuse(&mut self, id: u32) {
        self.counts.refused += 1;
        self.remove(id);
        self.keys[id as usize].state = GONE;
    }

    fn remove(&mut self, id: u32) {
        let key = self.key(id);
        if key.state > GONE {
            let at = self.shard_of(id);
            self.shards[at].policy.on_remove(key.slot);
            self.forget(at, key.slot);
            self.settle(at);
        }
        self.keys[id as usize].state = NEVER_STORED;
    }
}

impl<P: Policy> SimulatedShard<P> {
    fn is_sparse(&self) -> bool {
        P::RELOCATES && self.slab.is_sparse()
    }

    fn reserve_slots(&mut self) {
        if self.slab.slots() > self.policy_slots {
            self.policy_slots = self.slab.slots() + self.slab.slots() / 8 + 16;
            self.policy.reserve_slots(self.policy_slots);
        }
    }
}

impl<P: Policy> Cached for EngineCache<P> {
    #[inline]
    fn prefetch(&self, id: u32) {
        prefetch_to_write(&raw const self.keys[id as usize]);
    }

    fn read(&mut self, _at: usize, id: u32, size_bytes: u64, weight: impl FnOnce() -> Option<u64>) {
        let key = self.key(id);
        if key.state > GONE {
            self.counts.hits += 1;
            self.counts.hit_bytes += size_bytes;
            let at = self.shard_of(id);
            self.shards[at].policy.on_hit(key.slot);
            self.drain_overflow(at);
            return;
        }
        self.counts.misses += 1;
        self.counts.miss_bytes += size_bytes;
        self.counts.cold_misses += u64::from(key.state == NEVER_STORED);
        self.set(id, weight());
    }

    fn write(&mut self, _at: usize, id: u32, weight: Option<u64>) {
        self.counts.writes += 1;
        self.set(id, weight);
    }

    fn read_resizing(&mut self, at: usize, id: u32, size_bytes: u64, weight: Option<u64>) {
        let state = self.key(id).state;
        match weight {
            Some(weight) if state > GONE && state != weight + 1 => {
                self.counts.hits += 1;
                self.counts.hit_bytes += size_bytes;
                self.set(id, Some(weight));
            }
            _ => self.read(at, id, size_bytes, || weight),
        }
    }

    fn read_changed(&mut self, _at: usize, id: u32, size_bytes: u64, weight: Option<u64>) {
        self.counts.misses += 1;
        self.counts.miss_bytes += size_bytes;
        self.counts.cold_misses += 1;
        self.remove(id);
        self.set(id, weight);
    }

    fn delete(&mut self, _at: usize, id: u32) {
        self.counts.deletes += 1;
        self.remove(id);
    }

    fn expire(&mut self, id: u32) {
        self.remove(id);
    }

    fn counts(&mut self) -> &mut Counts {
        &mut self.counts
    }

    fn used(&self) -> u64 {
        self.shards.iter().map(|shard| shard.bytes.used).sum()
    }

    fn entries(&self) -> u64 {
        self.shards.iter().map(|shard| shard.slab.len() as u64).sum()
    }

    fn metadata_bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.policy.metadata_bytes()).sum()
    }
}

/// Returns the hash of a key as a program would write it: a number in decimal digits.
fn fingerprint(trace: &Trace, id: u32) -> u64 {
    match trace.key(id) {
        Key::Number(number) => rules::fingerprint(number.to_string().as_bytes(), ENGINE_HASH_SEED),
        Key::Text(text) => rules::fingerprint(text, ENGINE_HASH_SEED),
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
