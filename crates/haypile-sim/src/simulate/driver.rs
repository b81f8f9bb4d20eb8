//! The driver of one policy: it knows which keys are in the cache and keeps the bound.

use haypile_policy::prefetch::prefetch_to_write;
use haypile_policy::{Newcomer, Policy};

use super::Counts;
use super::run::Cached;

/// The state of a key in a simulated cache, as one integer: 0 for never stored, 1 for currently not stored, otherwise
/// the weight of its entry plus 1. One byte is enough if every entry weighs 1.
pub trait KeyState: Copy + Default + Send + Sync {
    /// From the number described above.
    fn from_number(number: u64) -> Self;
    /// To the number described above.
    fn number(self) -> u64;
}

impl KeyState for u8 {
    #[expect(clippy::cast_possible_truncation, reason = "only 0, 1 and 2 occur")]
    #[inline]
    fn from_number(number: u64) -> Self {
        number as Self
    }

    #[inline]
    fn number(self) -> u64 {
        u64::from(self)
    }
}

impl KeyState for u64 {
    #[inline]
    fn from_number(number: u64) -> Self {
        number
    }

    #[inline]
    fn number(self) -> u64 {
        self
    }
}

const NEVER_STORED: u64 = 0;
const GONE: u64 = 1;

/// A simulated cache: an eviction policy, and for each key of the trace, whether it is stored and how much it weighs.
#[derive(Debug)]
pub struct Driver<P, K> {
    policy: P,
    keys: Vec<K>,
    capacity: u64,
    used: u64,
    entries: u64,
    counts: Counts,
}

impl<P: Policy, K: KeyState> Driver<P, K> {
    /// Creates an empty simulated cache of size `capacity`, for a trace with `keys` distinct keys.
    pub fn new(mut policy: P, capacity: u64, keys: u32) -> Self {
        policy.reserve_slots(keys as usize);
        Self {
            policy,
            keys: vec![K::default(); keys as usize],
            capacity,
            used: 0,
            entries: 0,
            counts: Counts::default(),
        }
    }

    /// Returns the eviction policy of the simulated cache, so that tests can read its queues.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    fn state(&self, id: u32) -> u64 {
        self.keys[id as usize].number()
    }

    fn set_state(&mut self, id: u32, number: u64) {
        self.keys[id as usize] = K::from_number(number);
    }

    fn leave(&mut self, id: u32) {
        self.used -= self.state(id) - 1;
        self.entries -= 1;
        self.set_state(id, GONE);
    }

    fn remove(&mut self, id: u32) {
        if self.state(id) > GONE {
            self.policy.on_remove(id);
            self.leave(id);
        }
    }

    #[inline]
    fn drain_overflow(&mut self) {
        if P::HAS_OVERFLOW {
            while let Some(id) = self.policy.overflow() {
                self.leave(id);
                self.counts.evictions += 1;
            }
        }
    }

    fn store(&mut self, id: u32, weight: u64) {
        self.set_state(id, GONE);
        let newcomer = Newcomer { fingerprint: u64::from(id), weight };
        let excess = (self.used + weight).saturating_sub(self.capacity);
        let missing = if P::EXCEEDS_BOUND { 0 } else { excess };
        if weight > self.capacity || !self.policy.admit(newcomer, missing) {
            self.counts.refused += 1;
            self.drain_overflow();
            return;
        }
        self.drain_overflow();
        while !P::EXCEEDS_BOUND && self.used + weight > self.capacity {
            let victim = self.policy.evict(Some(newcomer));
            self.leave(victim);
            self.counts.evictions += 1;
        }
        self.policy.on_insert(id, newcomer);
        self.set_state(id, weight + 1);
        self.used += weight;
        self.entries += 1;
        self.drain_overflow();
    }

    fn update(&mut self, id: u32, weight: u64) {
        self.policy.on_update(id, weight);
        self.used = self.used - (self.state(id) - 1) + weight;
        self.set_state(id, weight + 1);
        self.drain_overflow();
        while !P::EXCEEDS_BOUND && self.used > self.capacity {
            let victim = self.policy.evict(None);
            self.leave(victim);
            self.counts.evictions += 1;
        }
    }
}

impl<P: Policy, K: KeyState> Cached for Driver<P, K> {
    #[inline]
    fn prefetch(&self, id: u32) {
        prefetch_to_write(&raw const self.keys[id as usize]);
        self.policy.prefetch_slot(id);
        self.policy.prefetch_victim(id);
        self.policy.prefetch(u64::from(id));
    }

    #[inline]
    fn read(&mut self, _at: usize, id: u32, size_bytes: u64, weight: impl FnOnce() -> Option<u64>) {
        let state = self.keys[id as usize].number();
        if state > GONE {
            self.counts.hits += 1;
            self.counts.hit_bytes += size_bytes;
            self.policy.on_hit(id);
            self.drain_overflow();
            return;
        }
        self.counts.misses += 1;
        self.counts.miss_bytes += size_bytes;
        self.counts.cold_misses += u64::from(state == NEVER_STORED);
        match weight() {
            Some(weight) => self.store(id, weight),
            None => self.counts.refused += 1,
        }
    }

    fn write(&mut self, _at: usize, id: u32, weight: Option<u64>) {
        self.counts.writes += 1;
        let is_there = self.state(id) > GONE;
        match weight {
            Some(weight) if is_there && weight <= self.capacity => self.update(id, weight),
            Some(weight) if !is_there => self.store(id, weight),
            Some(_) => {
                // The old value is not the key's any more, and a program that is told so deletes it.
                self.counts.refused += 1;
                self.remove(id);
            }
            // RelStorage, whose limit this is, leaves the old value.
            None => self.counts.refused += 1,
        }
    }

    fn read_resizing(&mut self, at: usize, id: u32, size_bytes: u64, weight: Option<u64>) {
        let state = self.state(id);
        match weight {
            Some(weight) if state > GONE && state != weight + 1 => {
                self.counts.hits += 1;
                self.counts.hit_bytes += size_bytes;
                if weight <= self.capacity {
                    self.update(id, weight);
                } else {
                    self.counts.refused += 1;
                    self.remove(id);
                }
            }
            _ => self.read(at, id, size_bytes, || weight),
        }
    }

    fn read_changed(&mut self, _at: usize, id: u32, size_bytes: u64, weight: Option<u64>) {
        self.counts.misses += 1;
        self.counts.miss_bytes += size_bytes;
        self.counts.cold_misses += 1;
        self.remove(id);
        self.set_state(id, NEVER_STORED);
        match weight {
            Some(weight) => self.store(id, weight),
            None => self.counts.refused += 1,
        }
    }

    fn delete(&mut self, _at: usize, id: u32) {
        self.counts.deletes += 1;
        self.remove(id);
        self.set_state(id, NEVER_STORED);
    }

    fn expire(&mut self, id: u32) {
        self.remove(id);
        self.set_state(id, NEVER_STORED);
    }

    fn counts(&mut self) -> &mut Counts {
        &mut self.counts
    }

    fn used(&self) -> u64 {
        self.used
    }

    fn entries(&self) -> u64 {
        self.entries
    }

    fn metadata_bytes(&self) -> usize {
        self.policy.metadata_bytes()
    }
}
