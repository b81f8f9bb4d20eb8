//! Entries that are loaded from a snapshot or saved to one.

use std::collections::HashSet;

use haypile_policy::table::spread;
use haypile_policy::{Policy, Slot};

use super::super::pool::Pool;
use super::super::record::{Draft, Pin};
use super::write::{Room, SlotPlace};
use super::{Contents, charge_of, key_of};
use crate::process;

const NS_PER_S: u64 = 1_000_000_000;

/// An entry of a snapshot, to be inserted into a memory store if its key is absent.
pub(in crate::memory) struct Load {
    pub(in crate::memory) draft: Draft,
    pub(in crate::memory) expires_ns: u64,
    pub(in crate::memory) written_s: u32,
    /// The number of hits to report to the eviction policy, so that the loaded entry has its former
    /// rank.
    pub(in crate::memory) uses: u8,
    pub(in crate::memory) now_ns: u64,
    /// The room that other shards of the memory store have made for this entry from a snapshot; `None` until its
    /// loading has asked for room, as a [`Write`](super::Write) does.
    pub(in crate::memory) room: Option<Room>,
}

/// An entry of the memory store to be saved to a snapshot, with its rank (how long to keep it).
pub(in crate::memory) struct Kept {
    fingerprint: u64,
    version: u64,
    /// The number of hits that restore the saved entry's rank in the eviction policy when it is
    /// loaded; see [`Load`].
    pub(in crate::memory) uses: u8,
}

impl<P: Policy> Contents<P> {
    /// Returns every live entry of a shard, ranked from the entry to keep longest to the next
    /// victim of eviction.
    pub(in crate::memory) fn ranked(&self, now_ns: u64) -> Vec<Kept> {
        let kept = |slot: Slot, uses: u8| {
            let record = self.slab.get(slot);
            let (fingerprint, version) = (record.fingerprint(), record.version());
            self.is_valid(record, now_ns).then_some(Kept { fingerprint, version, uses })
        };
        let ranking = self.policy.ranking();
        if ranking.is_empty() {
            return self.slab.taken().filter_map(|slot| kept(slot, 0)).collect();
        }
        ranking.into_iter().filter_map(|ranked| kept(ranked.slot, ranked.uses)).collect()
    }

    /// Returns a hold on the record of an entry that was [ranked](Self::ranked), with the current
    /// value; `None` if the entry has been removed since.
    pub(in crate::memory) fn pin_kept(&self, kept: &Kept) -> Option<Pin> {
        // An overwritten entry has a later version. If keys share a fingerprint, this can be
        // another entry, which is then saved twice.
        let find = |is_it: fn(u64, u64) -> bool| {
            self.index.find(spread(kept.fingerprint), |slot| {
                let record = self.slab.get(slot);
                record.fingerprint() == kept.fingerprint && is_it(record.version(), kept.version)
            })
        };
        let slot = find(|now, then| now == then).or_else(|| find(|now, then| now > then))?;
        Some(self.slab.get(slot).pin())
    }

    /// Prepares this shard of the memory store for entries that are loaded from a snapshot.
    pub(in crate::memory) fn begin_loading(&mut self) {
        self.changed = Some(HashSet::new());
        self.loaded_in = process::generation();
    }

    pub(in crate::memory) fn end_loading(&mut self) {
        self.changed = None;
    }

    /// Inserts an entry of a snapshot, unless its key has changed since, and reports its former
    /// uses to the eviction policy. If the shard first needs bytes of other shards, returns the
    /// entry with the number of bytes.
    pub(in crate::memory) fn load(&mut self, load: Load, pool: &Pool) -> Option<(Load, u64)> {
        let key = key_of(load.draft.record());
        let fingerprint = key.fingerprint;
        let is_unchanged = self.changed.as_ref().is_some_and(|set| !set.contains(&fingerprint));
        if !is_unchanged || self.find(key).is_some() {
            return None;
        }
        let weight = charge_of(load.draft.record());
        let budget_before = self.budget;
        match self.find_room(load.draft.record(), weight, true, load.room, load.now_ns, pool) {
            Ok(Some(wanted)) => {
                return Some((Load { room: Some(wanted.room), ..load }, wanted.bytes));
            }
            Err(declined) => self.decline(declined, budget_before, pool),
            Ok(None) => {
                self.tell_capacity(pool);
                let Load { draft, expires_ns, written_s, uses, now_ns, .. } = load;
                let place = SlotPlace { draft, expires_ns, written_s, uses: Some(uses) };
                self.insert(place, now_ns, pool);
            }
        }
        self.settle(pool);
        None
    }

    #[inline]
    pub(super) fn note_change(&mut self, fingerprint: u64) {
        if self.changed.is_some() {
            self.note_change_while_loading(fingerprint);
        }
    }

    #[cold]
    fn note_change_while_loading(&mut self, fingerprint: u64) {
        if self.loaded_in != process::generation() {
            // In a child, nobody goes on to load.
            self.changed = None;
        }
        if let Some(changed) = &mut self.changed {
            changed.insert(fingerprint);
        }
    }

    /// Returns the time to record for an entry that is written now, in seconds of the Unix epoch; 0
    /// if the store does not record such times.
    pub(super) fn written_s(&self, now_ns: u64) -> u32 {
        let from_s = self.notes_time_from_s;
        from_s.map_or(0, |from_s| u32::try_from(from_s + now_ns / NS_PER_S).unwrap_or(u32::MAX))
    }
}
