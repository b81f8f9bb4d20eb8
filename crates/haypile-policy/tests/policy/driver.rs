//! A small reference driver: it owns entries, slots, weights and the bound, and makes the calls of
//! the contract of `haypile_policy` one after the other, without optimisations.

use std::collections::{BTreeMap, HashMap};

use haypile_policy::ghost::{ByFingerprint, BySlot, Memory};
use haypile_policy::{Newcomer, Policy, PolicySpec, PolicyVisitor, Slot};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::invariants;

/// A request. The weight of a read is that of the value it is filled with when it misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Read(u32, u64),
    Write(u32, u64),
    Remove(u32),
    Resize(u64),
}

/// Outcome of a request. Numbers are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    Evicted(u32),
    Hit(u32),
    Stored(u32),
    Updated(u32),
    Removed(u32),
    /// Refused before any eviction.
    Refused(u32),
}

/// A queue of a policy as keys, from the next victim to the last.
pub(crate) type Dump = (&'static str, Vec<u32>);

/// A mapping of keys to slots and fingerprints.
pub(crate) trait Slots {
    type Memory: Memory;
    /// Whether every number in a queue identifies a key: the queues of a policy over nodes show
    /// node numbers, which are slots only if slots belong to keys.
    const SLOT_IS_KEY: bool;
    /// Whether entries are moved from slot to slot.
    const MOVES: bool = false;
    fn fingerprint(&self, key: u32) -> u64;
    fn take(&mut self, key: u32) -> Slot;
    fn give_back(&mut self, slot: Slot);
    /// Returns moves to make after a request, each to a slot that is free by then; `taken` are the
    /// slots of entries.
    fn moves(&mut self, taken: &[Slot]) -> Vec<(Slot, Slot)> {
        let _ = taken;
        Vec::new()
    }
    /// The bound on slot numbers after slots were dropped.
    fn fewer(&mut self) -> Option<usize> {
        None
    }
}

/// Slot, key and fingerprint are one number, as in the simulator.
#[derive(Debug)]
pub(crate) struct KeySlots;

impl Slots for KeySlots {
    type Memory = BySlot;
    const SLOT_IS_KEY: bool = true;

    fn fingerprint(&self, key: u32) -> u64 {
        u64::from(key)
    }

    fn take(&mut self, key: u32) -> Slot {
        key
    }

    fn give_back(&mut self, _slot: Slot) {}
}

/// Slots are reused, the last freed one first; a fingerprint identifies a key, as in a store.
#[derive(Debug)]
pub(crate) struct ReusedSlots {
    free: Vec<Slot>,
    next: Slot,
    fingerprint: fn(u32) -> u64,
}

impl ReusedSlots {
    pub(crate) fn new(fingerprint: fn(u32) -> u64) -> Self {
        Self { free: Vec::new(), next: 0, fingerprint }
    }
}

impl Slots for ReusedSlots {
    type Memory = ByFingerprint;
    const SLOT_IS_KEY: bool = false;

    fn fingerprint(&self, key: u32) -> u64 {
        (self.fingerprint)(key)
    }

    fn take(&mut self, _key: u32) -> Slot {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    fn give_back(&mut self, slot: Slot) {
        self.free.push(slot);
    }
}

/// Slots are reused, and after many requests entries are moved to others: one to any free slot, or
/// all to the lowest slots, so that those above can be dropped.
#[derive(Debug)]
pub(crate) struct MovedSlots {
    free: Vec<Slot>,
    slots: Slot,
    random: ChaCha8Rng,
    drops: bool,
    dropped: bool,
}

impl MovedSlots {
    pub(crate) fn new(drops: bool) -> Self {
        let random = ChaCha8Rng::seed_from_u64(1);
        Self { free: Vec::new(), slots: 0, random, drops, dropped: false }
    }

    fn pop_free(&mut self) -> Slot {
        if self.free.is_empty() {
            self.slots += 1;
            self.free.push(self.slots - 1);
        }
        let at = self.random.random_range(0..self.free.len());
        self.free.swap_remove(at)
    }
}

impl Slots for MovedSlots {
    type Memory = ByFingerprint;
    const SLOT_IS_KEY: bool = false;
    const MOVES: bool = true;

    fn fingerprint(&self, key: u32) -> u64 {
        u64::from(key)
    }

    fn take(&mut self, _key: u32) -> Slot {
        self.pop_free()
    }

    fn give_back(&mut self, slot: Slot) {
        self.free.push(slot);
    }

    fn moves(&mut self, taken: &[Slot]) -> Vec<(Slot, Slot)> {
        let count = Slot::try_from(taken.len()).expect("a few slots");
        match self.random.random_range(0..16) {
            0 => {
                self.free.retain(|slot| *slot < count);
                let high = taken.iter().copied().filter(|slot| *slot >= count);
                let moves = high.zip(self.free.drain(..)).collect();
                (self.slots, self.dropped) = (count, self.drops);
                moves
            }
            1..8 if count > 0 => {
                let from = taken[self.random.random_range(0..taken.len())];
                let to = self.pop_free();
                self.free.push(from);
                vec![(from, to)]
            }
            _ => Vec::new(),
        }
    }

    fn fewer(&mut self) -> Option<usize> {
        std::mem::take(&mut self.dropped).then_some(self.slots as usize)
    }
}

/// A cache under test, whatever its policy.
pub(crate) trait Cache {
    /// Executes a request, and returns its outcomes in order.
    fn apply(&mut self, op: Op) -> Vec<Event>;
    /// Returns the queues of the policy.
    fn dump(&self) -> Vec<Dump>;
    /// Returns the weight of each key in the cache.
    fn entries(&self) -> BTreeMap<u32, u64>;
    /// Returns the weight that a key had when it was last in the cache.
    fn last_weight(&self, key: u32) -> u64;
    fn capacity(&self) -> u64;
    fn used(&self) -> u64;
    /// Returns the keys and uses of the policy's ranking.
    fn ranking(&self) -> Vec<(u32, u8)>;
    /// Restores an entry of a ranking.
    fn restore(&mut self, key: u32, weight: u64, uses: u8) -> Vec<Event>;
    /// Lets the policy evict without a newcomer, and returns the victims.
    fn evict_one(&mut self) -> Vec<u32>;
    /// Whether all dumped queues hold keys.
    fn dumps_keys(&self) -> bool;
}

impl dyn Cache {
    /// Reads keys of weight 1, one after the other.
    pub(crate) fn read(&mut self, keys: impl IntoIterator<Item = u32>) -> Vec<Event> {
        keys.into_iter().flat_map(|key| self.apply(Op::Read(key, 1))).collect()
    }

    /// Reads keys with weights.
    pub(crate) fn fill(&mut self, keys: impl IntoIterator<Item = (u32, u64)>) -> Vec<Event> {
        keys.into_iter().flat_map(|(key, weight)| self.apply(Op::Read(key, weight))).collect()
    }

    pub(crate) fn write(&mut self, key: u32, weight: u64) -> Vec<Event> {
        self.apply(Op::Write(key, weight))
    }

    pub(crate) fn remove(&mut self, keys: impl IntoIterator<Item = u32>) {
        for key in keys {
            assert_eq!(self.apply(Op::Remove(key)), [Event::Removed(key)]);
        }
    }

    pub(crate) fn resize(&mut self, capacity: u64) -> Vec<Event> {
        self.apply(Op::Resize(capacity))
    }

    /// Returns the queues in one line: `small 1 2 | main 3 | ghost`.
    pub(crate) fn queues(&self) -> String {
        let show = |(name, keys): &Dump| {
            keys.iter().fold((*name).to_owned(), |text, key| format!("{text} {key}"))
        };
        self.dump().iter().map(show).collect::<Vec<_>>().join(" | ")
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    slot: Slot,
    weight: u64,
}

/// The driver.
#[derive(Debug)]
pub(crate) struct Driver<P, S> {
    policy: P,
    slots: S,
    shared_hits: bool,
    capacity: u64,
    used: u64,
    entries: BTreeMap<u32, Entry>,
    key_in_slot: HashMap<Slot, u32>,
    key_of_fingerprint: HashMap<u64, u32>,
    last_weight: HashMap<u32, u64>,
    events: Vec<Event>,
}

impl<P: Policy, S: Slots> Driver<P, S> {
    /// Returns an empty cache for keys below `keys`. With `shared_hits`, hits go through
    /// `on_hit_shared` if the policy has it.
    pub(crate) fn new(
        mut policy: P,
        slots: S,
        capacity: u64,
        keys: u32,
        shared_hits: bool,
    ) -> Self {
        if S::SLOT_IS_KEY {
            policy.reserve_slots(keys as usize);
        }
        Self {
            policy,
            slots,
            shared_hits,
            capacity,
            used: 0,
            entries: BTreeMap::new(),
            key_in_slot: HashMap::new(),
            key_of_fingerprint: HashMap::new(),
            last_weight: HashMap::new(),
            events: Vec::new(),
        }
    }

    fn give_up(&mut self, slot: Slot) {
        let key = self.key_in_slot.remove(&slot).expect("the victim's slot is taken");
        self.used -= self.entries.remove(&key).expect("a key in a slot is an entry").weight;
        self.slots.give_back(slot);
        self.events.push(Event::Evicted(key));
    }

    fn drain_overflow(&mut self) {
        while let Some(slot) = self.policy.overflow() {
            assert!(P::HAS_OVERFLOW, "overflow where there can be none");
            self.give_up(slot);
        }
    }

    fn remove(&mut self, key: u32) {
        if let Some(entry) = self.entries.remove(&key) {
            self.used -= entry.weight;
            self.policy.on_remove(entry.slot);
            self.key_in_slot.remove(&entry.slot);
            self.slots.give_back(entry.slot);
            self.events.push(Event::Removed(key));
        }
    }

    fn move_entries(&mut self) {
        if !S::MOVES {
            return;
        }
        let mut taken: Vec<Slot> = self.key_in_slot.keys().copied().collect();
        taken.sort_unstable();
        for (from, to) in self.slots.moves(&taken) {
            assert!(P::RELOCATES);
            self.policy.reserve_slots(to as usize + 1);
            self.policy.relocate(from, to);
            let key = self.key_in_slot.remove(&from).expect("an entry to move");
            self.key_in_slot.insert(to, key);
            self.entries.get_mut(&key).expect("a key in a slot is an entry").slot = to;
        }
        if let Some(slots) = self.slots.fewer() {
            self.policy.drop_slots(slots);
        }
    }

    fn store(&mut self, key: u32, weight: u64, restored_uses: Option<u8>) {
        let fingerprint = self.slots.fingerprint(key);
        self.key_of_fingerprint.insert(fingerprint, key);
        let newcomer = Newcomer { fingerprint, weight };
        let excess = (self.used + weight).saturating_sub(self.capacity);
        let missing = if P::EXCEEDS_BOUND { 0 } else { excess };
        if weight > self.capacity || !self.policy.admit(newcomer, missing) {
            self.events.push(Event::Refused(key));
            assert_eq!(self.policy.overflow(), None, "nothing leaves for what is refused");
            return;
        }
        self.drain_overflow();
        while !P::EXCEEDS_BOUND && self.used + weight > self.capacity {
            let slot = self.policy.evict(Some(newcomer));
            self.give_up(slot);
        }
        let slot = self.slots.take(key);
        self.policy.reserve_slots(slot as usize + 1);
        match restored_uses {
            Some(uses) => self.policy.on_restore(slot, newcomer, uses),
            None => self.policy.on_insert(slot, newcomer),
        }
        self.entries.insert(key, Entry { slot, weight });
        self.used += weight;
        self.last_weight.insert(key, weight);
        self.key_in_slot.insert(slot, key);
        self.events.push(Event::Stored(key));
        self.drain_overflow();
    }

    fn hit(&mut self, key: u32, slot: Slot) {
        if self.shared_hits && P::SHARED_HITS {
            self.policy.on_hit_shared(slot);
        } else {
            self.policy.on_hit(slot);
        }
        self.events.push(Event::Hit(key));
        self.drain_overflow();
    }

    fn update(&mut self, key: u32, weight: u64) {
        if weight > self.capacity {
            self.remove(key);
            self.events.push(Event::Refused(key));
            return;
        }
        let entry = self.entries.get_mut(&key).expect("an entry to update");
        self.used = self.used - entry.weight + weight;
        entry.weight = weight;
        let slot = entry.slot;
        self.last_weight.insert(key, weight);
        self.policy.on_update(slot, weight);
        self.events.push(Event::Updated(key));
        self.drain_overflow();
        self.keep_bound();
    }

    fn keep_bound(&mut self) {
        while !P::EXCEEDS_BOUND && self.used > self.capacity {
            let slot = self.policy.evict(None);
            self.give_up(slot);
        }
        self.drain_overflow();
    }

    fn key(&self, is_ghost: bool, number: u64) -> u32 {
        if is_ghost {
            self.key_of_fingerprint[&number]
        } else if S::SLOT_IS_KEY {
            u32::try_from(number).expect("a slot")
        } else {
            let slot = u32::try_from(number).expect("a slot");
            *self.key_in_slot.get(&slot).expect("queues hold slots that are taken")
        }
    }
}

impl<P: Policy, S: Slots> Cache for Driver<P, S> {
    fn apply(&mut self, op: Op) -> Vec<Event> {
        self.events.clear();
        match op {
            Op::Read(key, weight) => match self.entries.get(&key) {
                Some(entry) => self.hit(key, entry.slot),
                None => self.store(key, weight, None),
            },
            Op::Write(key, weight) if self.entries.contains_key(&key) => self.update(key, weight),
            Op::Write(key, weight) => self.store(key, weight, None),
            Op::Remove(key) => self.remove(key),
            Op::Resize(capacity) => {
                self.capacity = capacity;
                self.policy.set_capacity(capacity);
                // Entries that segments of the new size cannot hold are evicted first.
                self.drain_overflow();
                self.keep_bound();
            }
        }
        if !P::EXCEEDS_BOUND {
            assert!(self.used <= self.capacity, "the bound is exceeded after {op:?}");
        }
        self.move_entries();
        self.events.clone()
    }

    fn dump(&self) -> Vec<Dump> {
        let queues = self.policy.queues().into_iter();
        let to_keys = |queue: haypile_policy::Queue| {
            let is_ghost = invariants::GHOSTS.contains(&queue.name);
            let keys = queue.entries.iter().map(|number| self.key(is_ghost, *number));
            (queue.name, keys.collect())
        };
        queues.map(to_keys).collect()
    }

    fn ranking(&self) -> Vec<(u32, u8)> {
        let ranking = self.policy.ranking();
        ranking.iter().map(|ranked| (self.key_in_slot[&ranked.slot], ranked.uses)).collect()
    }

    fn restore(&mut self, key: u32, weight: u64, uses: u8) -> Vec<Event> {
        self.events.clear();
        self.store(key, weight, Some(uses));
        self.move_entries();
        self.events.clone()
    }

    fn evict_one(&mut self) -> Vec<u32> {
        self.events.clear();
        let slot = self.policy.evict(None);
        self.give_up(slot);
        self.drain_overflow();
        self.move_entries();
        let left = |event: &Event| if let Event::Evicted(key) = event { Some(*key) } else { None };
        self.events.iter().filter_map(left).collect()
    }

    fn entries(&self) -> BTreeMap<u32, u64> {
        self.entries.iter().map(|(key, entry)| (*key, entry.weight)).collect()
    }

    fn last_weight(&self, key: u32) -> u64 {
        self.last_weight[&key]
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn used(&self) -> u64 {
        self.used
    }

    fn dumps_keys(&self) -> bool {
        S::SLOT_IS_KEY
    }
}

struct Build<S> {
    slots: S,
    capacity: u64,
    keys: u32,
    shared_hits: bool,
}

impl<S: Slots + 'static> PolicyVisitor for Build<S> {
    type Output = Box<dyn Cache>;

    fn visit<P: Policy + 'static>(self, make: impl Fn(u64) -> P) -> Box<dyn Cache> {
        let policy = make(self.capacity);
        Box::new(Driver::new(policy, self.slots, self.capacity, self.keys, self.shared_hits))
    }
}

/// The parameters of a cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup<'a> {
    pub(crate) spec: &'a str,
    pub(crate) capacity: u64,
    pub(crate) weighted: bool,
    pub(crate) keys: u32,
}

impl Setup<'_> {
    fn build<S: Slots + 'static>(self, slots: S, shared_hits: bool) -> Box<dyn Cache> {
        let Self { spec, capacity, weighted, keys } = self;
        let spec: PolicySpec = spec.parse().expect("a policy");
        let build = Build { slots, capacity, keys, shared_hits };
        spec.build::<S::Memory, _>(weighted, build).expect("a policy that a store can run")
    }

    /// Builds it with slots that belong to keys.
    pub(crate) fn by_slot(self) -> Box<dyn Cache> {
        self.build(KeySlots, false)
    }

    /// Does the same, with hits that need no exclusive access if the policy allows that.
    pub(crate) fn with_shared_hits(self) -> Box<dyn Cache> {
        self.build(KeySlots, true)
    }

    /// Builds it with reused slots and fingerprints that differ from them.
    pub(crate) fn by_fingerprint(self) -> Box<dyn Cache> {
        self.build(ReusedSlots::new(scattered), false)
    }

    /// Builds it with reused slots and the fingerprints of `by_slot`, for a policy that counts
    /// fingerprints.
    pub(crate) fn by_same_fingerprint(self) -> Box<dyn Cache> {
        self.build(ReusedSlots::new(u64::from), false)
    }

    /// Does the same as `by_same_fingerprint`, and moves entries to other slots.
    pub(crate) fn with_moves(self) -> Box<dyn Cache> {
        // With fewer slots, W-TinyLFU has a smaller sketch, and may then decide differently.
        let drops = !self.spec.starts_with("wtinylfu");
        self.build(MovedSlots::new(drops), false)
    }

    /// Builds it with reused slots and fingerprints that many keys share.
    pub(crate) fn with_collisions(self) -> Box<dyn Cache> {
        self.build(ReusedSlots::new(|key| u64::from(key % 7)), false)
    }
}

/// Returns a different number for each key.
fn scattered(key: u32) -> u64 {
    (u64::from(key) + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// Returns a cache of objects of weight 1, for hand-worked requests.
pub(crate) fn objects(spec: &str, capacity: u64) -> Box<dyn Cache> {
    Setup { spec, capacity, weighted: false, keys: 1000 }.by_slot()
}

/// Returns a cache of entries with weights, for hand-worked requests.
pub(crate) fn weighted(spec: &str, capacity: u64) -> Box<dyn Cache> {
    Setup { spec, capacity, weighted: true, keys: 1000 }.by_slot()
}

/// Returns a cache under a plain model's decisions.
pub(crate) fn model(policy: impl Policy + 'static, setup: &Setup<'_>) -> Box<dyn Cache> {
    Box::new(Driver::new(policy, KeySlots, setup.capacity, setup.keys, false))
}
