//! Making segments of an earlier boot walkable. Under the recycler's lock.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use super::area::{Area, Me, Stop};
use super::chain::slots_of_line;
use super::ground::Ground;
use super::slot::Slot;

/// Segments of an earlier boot are made walkable in batches: the whole index is looked at for each.
const ADOPTED_AT_ONCE: usize = 64;

impl<G: Ground> Area<G> {
    /// Whether all slots into a segment are those of the records that walking finds.
    pub(super) fn is_walkable(&self, segment: u32) -> bool {
        let entry = self.entry(segment);
        entry.stamp() == self.stamp || entry.is_adopted(self.stamp)
    }

    /// Makes sure that walking finds every slot into this segment, and into others of an earlier boot:
    /// what a loss of power left may point between records.
    pub(super) fn adopt(&self, me: Me, segment: u32) -> Result<(), Stop> {
        let is_foreign = |segment: &u32| !self.is_walkable(*segment);
        let is_free = |segment: &u32| self.is_free(*segment);
        let others = || {
            let all = 0..self.geometry.numbers.segments;
            all.filter(|other| *other != segment && is_foreign(other))
        };
        // Nothing is to be looked at in free ones.
        let filled = others().filter(|other| !is_free(other)).take(ADOPTED_AT_ONCE);
        let adopted: HashSet<u32> =
            std::iter::once(segment).chain(filled).chain(others().filter(is_free)).collect();
        let mut walkable = HashMap::new();
        let mut key = Vec::new();
        for segment in adopted.iter().filter(|segment| !is_free(segment)) {
            for (offset, record) in self.walk(*segment, self.entry(*segment).state()) {
                self.copy_key(&record, &mut key)?;
                walkable.insert(offset, self.key(&key, record.head.has_namespace).hash);
            }
        }
        // A slot of another key than the record's would not be found when the record leaves.
        let is_lost = |bucket: u32, slot: Slot| match self.segment_of(slot) {
            None => true,
            Some(segment) if !adopted.contains(&segment) => false,
            Some(_) => walkable.get(&slot.offset()).is_none_or(|hash| {
                !slot.is_tagged(*hash) || self.geometry.bucket_of(*hash) != bucket
            }),
        };
        let mut forgotten = false;
        for bucket in 0..self.geometry.numbers.buckets {
            forgotten |= self.forget_lost(me, bucket, |slot| is_lost(bucket, slot))?;
        }
        if forgotten {
            self.distrust_counts();
        }
        // Lines that no bucket links to are emptied when they are taken.
        for segment in adopted {
            self.entry(segment).set_adopted(self.stamp);
        }
        Ok(())
    }

    /// Empties slots of a bucket that lead nowhere; says whether there were any.
    fn forget_lost(
        &self,
        me: Me,
        bucket: u32,
        is_lost: impl Fn(Slot) -> bool,
    ) -> Result<bool, Stop> {
        if self.lost_slots(bucket, &is_lost).1.is_empty() {
            return Ok(false);
        }
        let _held = self.lock(me, self.geometry.bucket(bucket))?;
        // A line may have gone to another bucket meanwhile.
        let (slots, lost) = self.lost_slots(bucket, &is_lost);
        for at in &lost {
            for hidden in self.hidden_by(*at, &slots)? {
                self.ground.store(hidden, 0, Ordering::Release);
            }
            self.ground.store(*at, 0, Ordering::Release);
        }
        Ok(!lost.is_empty())
    }

    /// Where the slots of a bucket are, and which of them lead nowhere.
    fn lost_slots(&self, bucket: u32, is_lost: &impl Fn(Slot) -> bool) -> (Vec<u64>, Vec<u64>) {
        let slots: Vec<u64> =
            self.lines(bucket, self.link_of(bucket)).flat_map(slots_of_line).collect();
        let mut offsets = Vec::new();
        let mut is_lost = |slot: Slot| {
            // Only the first of two that point to one record would be found when it leaves.
            let is_second = offsets.contains(&slot.offset());
            offsets.push(slot.offset());
            is_second || is_lost(slot)
        };
        let filled = slots.iter().map(|at| (*at, self.slot(*at)));
        let filled = filled.filter(|(_, slot)| !slot.is_empty());
        let lost = filled.filter(|(_, slot)| is_lost(*slot)).map(|(at, _)| at).collect();
        (slots, lost)
    }

    /// Where the other slots of a key are that readers do not get to, for this one comes before: an
    /// older value that one of them has would come back without it.
    fn hidden_by(&self, at: u64, slots: &[u64]) -> Result<Vec<u64>, Stop> {
        let record_of = |at: u64| self.live_record(self.slot(at), self.epoch());
        let Some(record) = record_of(at) else {
            return Ok(Vec::new());
        };
        let mut bytes = Vec::new();
        self.copy_key(&record, &mut bytes)?;
        let key = self.key(&bytes, record.head.has_namespace);
        if !self.is_whole(key.hash, &record)? {
            return Ok(Vec::new());
        }
        let after = slots.iter().copied().skip_while(|slot| *slot != at).skip(1);
        let is_hidden = |at: &u64| {
            // A copy has its original's version, and one of two slots of a record is none of its own.
            record_of(*at).is_some_and(|other| {
                other.at != record.at
                    && other.head.version != record.head.version
                    && self.is_of(&other, &key)
            })
        };
        Ok(after.filter(is_hidden).collect())
    }
}
