//! What a memory store holds, and the policy that decides over it: all that its lock protects.

use std::time::Duration;

use hashbrown::HashTable;

use super::charge;
use super::expiry::Expiries;
use super::slab::{Entry, Slab};
use crate::policy::{Newcomer, Policy, Slot, Victim};
use crate::stats::Stats;
use crate::store::{Cursor, Hit, Page};
use crate::write::{Version, WriteMode, Written};

/// How many expired entries a write removes besides those that it meets.
const SWEEP: usize = 8;

/// A key and its fingerprint.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) fingerprint: u64,
}

/// A value to be written, with its key.
pub(super) struct Record {
    /// The key and then the value.
    pub(super) bytes: Box<[u8]>,
    pub(super) key_bytes: u16,
    pub(super) fingerprint: u64,
    pub(super) expires_ns: u64,
}

impl Record {
    fn key(&self) -> Key<'_> {
        let bytes = &self.bytes[..usize::from(self.key_bytes)];
        Key { bytes, fingerprint: self.fingerprint }
    }
}

/// Why a counter stays as it is.
pub(super) enum Uncounted {
    /// The value is no counter.
    NotACounter,
    /// With one digit more, of this many bytes, the entry would outweigh the cache.
    TooLarge(u64),
}

#[derive(Debug)]
pub(super) struct Contents<P> {
    policy: P,
    slab: Slab,
    /// Slots by fingerprint.
    index: HashTable<Slot>,
    expiries: Expiries,
    capacity_bytes: u64,
    /// The version of the last write.
    version: u64,
    /// How many slots the policy is prepared for.
    policy_slots: usize,
    stats: Stats,
    closed: bool,
}

impl<P: Policy> Contents<P> {
    pub(super) fn new(policy: P, capacity_bytes: u64) -> Self {
        Self {
            policy,
            slab: Slab::default(),
            index: HashTable::new(),
            expiries: Expiries::default(),
            capacity_bytes,
            version: 0,
            policy_slots: 0,
            stats: Stats { capacity_bytes: Some(capacity_bytes), ..Stats::default() },
            closed: false,
        }
    }

    pub(super) fn stats(&self) -> &Stats {
        &self.stats
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn close(&mut self) {
        self.clear();
        self.closed = true;
    }

    /// Appends the value of `key` to `buffer`.
    pub(super) fn read(&mut self, key: Key<'_>, now_ns: u64, buffer: &mut Vec<u8>) -> Option<Hit> {
        let Some(slot) = self.live(key, now_ns) else {
            self.stats.misses += 1;
            return None;
        };
        self.stats.hits += 1;
        let entry = self.slab.get(slot);
        buffer.extend_from_slice(entry.value());
        let hit = Hit {
            version: Some(Version::from_raw(entry.version)),
            expires_in: (entry.expires_ns != u64::MAX)
                .then(|| Duration::from_nanos(entry.expires_ns - now_ns)),
        };
        self.policy.on_hit(slot);
        self.give_up_surplus();
        Some(hit)
    }

    pub(super) fn contains(&mut self, key: Key<'_>, now_ns: u64) -> bool {
        self.live(key, now_ns).is_some()
    }

    /// Writes a record that is not larger than the capacity.
    pub(super) fn write(&mut self, record: Record, mode: WriteMode, now_ns: u64) -> Written {
        self.sweep(now_ns);
        let found = self.live(record.key(), now_ns);
        let unmet = match (mode, found) {
            (WriteMode::Add, Some(_)) => Some(Written::Exists),
            (WriteMode::Replace | WriteMode::Cas(_), None) => Some(Written::Absent),
            (WriteMode::Cas(version), Some(slot))
                if self.slab.get(slot).version != version.raw() =>
            {
                Some(Written::Changed)
            }
            _ => None,
        };
        if let Some(unmet) = unmet {
            self.stats.unmet += 1;
            return unmet;
        }
        self.stats.sets += 1;
        match found {
            Some(slot) => self.update(slot, record, now_ns),
            None => self.insert(record, now_ns),
        }
        Written::Stored
    }

    pub(super) fn delete(&mut self, key: Key<'_>, now_ns: u64) -> bool {
        let Some(slot) = self.live(key, now_ns) else {
            self.stats.delete_misses += 1;
            return false;
        };
        self.policy.on_remove(slot);
        self.forget(slot);
        self.stats.deletes += 1;
        true
    }

    pub(super) fn touch(&mut self, key: Key<'_>, expires_ns: u64, now_ns: u64) -> bool {
        let Some(slot) = self.live(key, now_ns) else {
            self.stats.touch_misses += 1;
            return false;
        };
        self.stats.touches += 1;
        self.set_expiry(slot, expires_ns);
        self.policy.on_hit(slot);
        self.give_up_surplus();
        true
    }

    /// Replaces the counter under `key` by what `count` makes of it, if that fits into the cache.
    pub(super) fn count(
        &mut self,
        key: Key<'_>,
        now_ns: u64,
        count: impl FnOnce(u64) -> u64,
    ) -> Result<Option<u64>, Uncounted> {
        self.sweep(now_ns);
        let Some(slot) = self.live(key, now_ns) else {
            self.stats.count_misses += 1;
            return Ok(None);
        };
        let entry = self.slab.get(slot);
        let number = count(counter(entry.value()).ok_or(Uncounted::NotACounter)?);
        let digits = number.to_string();
        let value_bytes = digits.len() as u64;
        if charge(key.bytes.len() as u64, value_bytes) > self.capacity_bytes {
            return Err(Uncounted::TooLarge(value_bytes));
        }
        let record = Record {
            bytes: [key.bytes, digits.as_bytes()].concat().into(),
            key_bytes: entry.key_bytes,
            fingerprint: key.fingerprint,
            expires_ns: entry.expires_ns,
        };
        self.stats.sets += 1;
        self.stats.counts += 1;
        self.update(slot, record, now_ns);
        Ok(Some(number))
    }

    pub(super) fn clear(&mut self) {
        for slot in self.slab.taken() {
            self.policy.on_remove(slot);
            self.forget(slot);
        }
    }

    /// The keys in the `limit` slots from `from` on.
    pub(super) fn keys(&self, from: Cursor, limit: usize, now_ns: u64) -> Page {
        let start = usize::try_from(from.raw()).unwrap_or(usize::MAX);
        let end = start.saturating_add(limit.max(1));
        let entries = self.slab.range(start..end).filter(|entry| entry.expires_ns > now_ns);
        let keys = entries.map(|entry| entry.key().to_vec()).collect();
        let next = (end < self.slab.slots()).then(|| Cursor::new(0, end as u64));
        Page { keys, next }
    }

    /// The slot of an entry that has not expired. One that has leaves.
    fn live(&mut self, key: Key<'_>, now_ns: u64) -> Option<Slot> {
        let same = |slot: &Slot| {
            let entry = self.slab.get(*slot);
            entry.fingerprint == key.fingerprint && entry.key() == key.bytes
        };
        let slot = *self.index.find(spread(key.fingerprint), same)?;
        if self.slab.get(slot).expires_ns > now_ns {
            return Some(slot);
        }
        self.expire(slot);
        None
    }

    fn insert(&mut self, record: Record, now_ns: u64) {
        let weight = charge_of(&record.bytes);
        let newcomer = Newcomer { fingerprint: record.fingerprint, weight };
        let admitted = self.policy.admit(newcomer);
        self.give_up_surplus();
        if !admitted {
            self.stats.declined += 1;
            return;
        }
        while self.stats.bytes + weight > self.capacity_bytes {
            if self.expire_one(now_ns) {
                continue;
            }
            match self.policy.evict(Some(newcomer)) {
                Victim::Slot(slot) => self.evicted(slot),
                Victim::Newcomer => {
                    self.stats.declined += 1;
                    return;
                }
            }
        }
        let Record { bytes, key_bytes, fingerprint, expires_ns } = record;
        self.version += 1;
        let version = self.version;
        let slot =
            self.slab.insert(Entry { record: bytes, fingerprint, version, expires_ns, key_bytes });
        if self.slab.slots() > self.policy_slots {
            self.policy_slots = (self.policy_slots * 2).max(64);
            self.policy.reserve_slots(self.policy_slots);
        }
        self.stats.bytes += weight;
        self.stats.entries += 1;
        let hash = |slot: &Slot| spread(self.slab.get(*slot).fingerprint);
        self.index.insert_unique(spread(fingerprint), slot, hash);
        self.expiries.schedule(slot, expires_ns);
        self.policy.on_insert(slot, newcomer);
        self.give_up_surplus();
    }

    /// Gives the entry in `slot` a new value, unless making room for it takes the entry itself.
    fn update(&mut self, slot: Slot, record: Record, now_ns: u64) {
        let old = charge_of(&self.slab.get(slot).record);
        let new = charge_of(&record.bytes);
        self.policy.on_update(slot, new);
        // Before room is made: of what the policy has given up, `evict` knows nothing any more.
        if self.give_up_surplus().contains(&slot) {
            return;
        }
        while self.stats.bytes - old + new > self.capacity_bytes {
            if self.expire_one(now_ns) {
                continue;
            }
            let victim = match self.policy.evict(None) {
                Victim::Slot(victim) => victim,
                // There is no newcomer. A policy that names one all the same means this entry.
                Victim::Newcomer => {
                    self.policy.on_remove(slot);
                    slot
                }
            };
            self.evicted(victim);
            if victim == slot {
                return;
            }
        }
        self.set_expiry(slot, record.expires_ns);
        self.version += 1;
        let entry = self.slab.get_mut(slot);
        entry.record = record.bytes;
        entry.version = self.version;
        self.stats.bytes = self.stats.bytes - old + new;
    }

    fn set_expiry(&mut self, slot: Slot, expires_ns: u64) {
        self.slab.get_mut(slot).expires_ns = expires_ns;
        self.expiries.schedule(slot, expires_ns);
    }

    /// Removes what the policy gives up although the bound does not ask for it.
    fn give_up_surplus(&mut self) -> Vec<Slot> {
        let mut given_up = Vec::new();
        if P::HAS_SURPLUS {
            while let Some(slot) = self.policy.surplus() {
                self.evicted(slot);
                given_up.push(slot);
            }
        }
        given_up
    }

    /// Removes a few entries that have expired.
    fn sweep(&mut self, now_ns: u64) {
        for _ in 0..SWEEP {
            if !self.expire_one(now_ns) {
                break;
            }
        }
    }

    /// Removes an entry that has expired; says whether there was one.
    fn expire_one(&mut self, now_ns: u64) -> bool {
        let Some(slot) = self.expiries.pop_expired(now_ns) else { return false };
        self.expire(slot);
        true
    }

    fn expire(&mut self, slot: Slot) {
        self.policy.on_remove(slot);
        self.forget(slot);
        self.stats.expired += 1;
    }

    /// Removes an entry that the policy has given up.
    fn evicted(&mut self, slot: Slot) {
        self.forget(slot);
        self.stats.evictions += 1;
    }

    /// Removes an entry of which the policy knows nothing any more.
    fn forget(&mut self, slot: Slot) {
        let entry = self.slab.remove(slot);
        let found = self.index.find_entry(spread(entry.fingerprint), |other| *other == slot);
        found.expect("an entry is in the index").remove();
        self.expiries.cancel(slot);
        self.stats.bytes -= charge_of(&entry.record);
        self.stats.entries -= 1;
    }
}

fn charge_of(record: &[u8]) -> u64 {
    charge(0, record.len() as u64)
}

/// Fingerprints may be small numbers; the index looks at the high bits as well.
fn spread(fingerprint: u64) -> u64 {
    fingerprint.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Reads a counter as memcached does: up to 20 decimal digits that fit into 64 bits.
fn counter(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 20 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::OVERHEAD_BYTES;
    use crate::policy::ghost::ByFingerprint;
    use crate::policy::{PolicySpec, PolicyVisitor};

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

    /// What an allocator takes for a record beside its bytes: a header and rounding.
    const ALLOCATION_BYTES: f64 = 16.0;

    /// Fills a store with entries of one-byte values and gives the bytes of metadata per entry.
    struct Fill {
        capacity_bytes: u64,
    }

    impl PolicyVisitor for Fill {
        type Output = f64;

        #[expect(clippy::cast_precision_loss, reason = "an average")]
        fn visit<P: Policy + 'static>(self, policy: P) -> f64 {
            let mut contents = Contents::new(policy, self.capacity_bytes);
            for number in 0..self.capacity_bytes / 64 {
                let key = number.to_le_bytes();
                let record = Record {
                    bytes: [&key[..], b"v"].concat().into(),
                    key_bytes: 8,
                    fingerprint: number.wrapping_mul(0xD6E8_FEB8_6659_FD93),
                    expires_ns: u64::MAX,
                };
                let _ = contents.write(record, WriteMode::Set, 0);
                let _ = contents.read(Key { bytes: &key, fingerprint: 1 }, 0, &mut Vec::new());
            }
            let metadata = contents.policy.metadata_bytes()
                + contents.slab.metadata_bytes()
                + contents.index.allocation_size();
            metadata as f64 / contents.stats.entries as f64 + ALLOCATION_BYTES
        }
    }

    #[test]
    fn the_overhead_is_what_the_metadata_takes() {
        let overhead = f64::from(u32::try_from(OVERHEAD_BYTES).unwrap());
        for kind in PolicySpec::kinds() {
            let spec: PolicySpec = kind.name.parse().unwrap();
            // Vectors and tables double: look at sizes all the way between two powers of two.
            let fill = |eighths: u64| {
                let capacity_bytes = eighths << 17;
                let fill = Fill { capacity_bytes };
                spec.build::<ByFingerprint, _>(capacity_bytes, true, fill)
            };
            let mean = [9, 11, 13, 15].map(fill).iter().sum::<f64>() / 4.0;
            match kind.name {
                "lirs" => assert!(mean > overhead, "lirs has as many ghosts as entries: {mean}"),
                name => assert!(mean <= overhead, "{name} takes {mean}"),
            }
            if spec == PolicySpec::default() {
                assert!(mean > 0.9 * overhead, "the default takes only {mean}");
            }
        }
    }
}
