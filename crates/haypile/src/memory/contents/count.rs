//! Counters: values that consist of decimal digits.

use haypile_policy::Policy;
use haypile_policy::rules::counter;

use super::super::pool::Pool;
use super::super::record::Draft;
use super::write::SlotPlace;
use super::{Contents, HashedKey, charge_of_lengths};
use crate::clock::Clock;
use crate::stats::Event;

/// The reason why the counter under a key was not changed: the value is not a number, or there is
/// no memory or no room for one more digit.
pub(in crate::memory) enum Uncounted {
    /// The value is not a counter.
    NotACounter,
    /// The entry would outweigh the cache with one more digit, of this many bytes.
    TooLarge(u64),
    /// An allocation of this number of bytes failed.
    OutOfMemory(usize),
    /// The counter is unchanged so far: the shard should first claim this number of bytes from
    /// other shards.
    NeedsRoom(u64),
}

impl<P: Policy> Contents<P> {
    /// Replaces the counter (a number in decimal digits) under `key` by the result of `count`, if
    /// the new entry takes at most `limit_bytes`, and returns it; `None` if there is no entry.
    /// `has_room` is true if other shards have made room for it.
    pub(in crate::memory) fn count(
        &mut self,
        key: HashedKey<'_>,
        count: impl FnOnce(u64) -> u64,
        limit_bytes: u64,
        has_room: bool,
        clock: &dyn Clock,
        pool: &Pool,
    ) -> Result<Option<u64>, Uncounted> {
        let now_ns = self.now_ns(clock);
        self.sweep(now_ns, pool);
        let Some(slot) = self.live(key, now_ns, pool) else {
            self.counters.add_exclusive(Event::CountMiss);
            return Ok(None);
        };
        let record = self.slab.get(slot);
        let number = count(counter::parse(record.value()).ok_or(Uncounted::NotACounter)?);
        let digits = number.to_string();
        let weight = charge_of_lengths((key.bytes.len(), digits.len() + record.marks().len()));
        let before = self.freed_by_update(slot);
        if weight > limit_bytes {
            return Err(Uncounted::TooLarge(digits.len() as u64));
        }
        let expires_ns = record.expires_ns();
        let draft = Draft::marked(key.fingerprint, key.bytes, digits.as_bytes(), record.marks())
            .ok_or(Uncounted::OutOfMemory(digits.len()))?;
        if let Some(bytes) = self.claim(weight.saturating_sub(before), weight, now_ns, pool)
            && !has_room
        {
            return Err(Uncounted::NeedsRoom(bytes));
        }
        self.tell_capacity(pool);
        if P::HAS_OVERFLOW && self.find(key) != Some(slot) {
            return Ok(None);
        }
        self.counters.add_exclusive(Event::Set);
        self.counters.add_exclusive(Event::Count);
        self.note_change(key.fingerprint);
        let written_s = self.written_s(now_ns);
        let place = SlotPlace { draft, expires_ns, written_s, uses: None };
        self.update(slot, place, has_room, now_ns, pool);
        self.settle(pool);
        Ok(Some(number))
    }
}
