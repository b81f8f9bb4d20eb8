//! The entries of a shard, under dense numbers that are reused.

use super::record::Record;
use crate::policy::Slot;

/// Records by slot.
#[derive(Debug, Default)]
pub(super) struct Slab {
    records: Vec<Option<Record>>,
    /// Free slots. Numbers that are not below the length any more are passed over.
    free: Vec<Slot>,
    taken: usize,
}

impl Slab {
    /// Takes a free slot, or a new one at the end.
    pub(super) fn insert(&mut self, record: Record) -> Slot {
        self.taken += 1;
        if let Some(slot) = self.pop_free() {
            self.records[slot as usize] = Some(record);
            return slot;
        }
        if self.records.len() == self.records.capacity() {
            // By an eighth: entries that are not there yet cost memory as well.
            self.records.reserve_exact(self.records.len() / 8 + 16);
        }
        self.records.push(Some(record));
        Slot::try_from(self.records.len() - 1).expect("the largest size allows 2^31 entries")
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Record {
        let record = self.records[slot as usize].take().expect("a slot that is taken");
        self.taken -= 1;
        self.free.push(slot);
        record
    }

    /// Puts another record into a slot that is taken, and gives the one that was there.
    pub(super) fn replace(&mut self, slot: Slot, record: Record) -> Record {
        self.records[slot as usize].replace(record).expect("a slot that is taken")
    }

    #[inline]
    pub(super) fn get(&self, slot: Slot) -> &Record {
        self.records[slot as usize].as_ref().expect("a slot that is taken")
    }

    /// Fetches the header of a record that is about to be read into the processor's cache.
    #[inline]
    pub(super) fn prefetch(&self, slot: Slot) {
        if let Some(Some(record)) = self.records.get(slot as usize) {
            record.prefetch();
        }
    }

    /// How many slots there are, free ones included.
    pub(super) fn slots(&self) -> usize {
        self.records.len()
    }

    /// How many slots are taken.
    pub(super) fn len(&self) -> usize {
        self.taken
    }

    /// Some slot that is taken.
    pub(super) fn first(&self) -> Option<Slot> {
        let first = self.records.iter().position(Option::is_some)?;
        Some(Slot::try_from(first).expect("slots are numbered by u32"))
    }

    /// Whether so many slots are free that it is worth the work to have fewer.
    pub(super) fn is_sparse(&self) -> bool {
        self.records.len() > self.taken + self.taken / 8 + 64
    }

    /// Drops the last slot. If an entry is there it moves to a free slot first; the move is
    /// returned.
    pub(super) fn drop_last(&mut self) -> Option<(Slot, Slot)> {
        let record = self.records.pop()?;
        let last = Slot::try_from(self.records.len()).expect("slots are numbered by u32");
        let moved = record.map(|record| {
            let free = self.pop_free().expect("only a sparse slab is made denser");
            self.records[free as usize] = Some(record);
            (last, free)
        });
        if self.records.capacity() > self.records.len() + self.records.len() / 4 + 64 {
            self.records.shrink_to(self.records.len() + self.records.len() / 8);
            let slots = self.records.len();
            self.free.retain(|slot| (*slot as usize) < slots);
            self.free.shrink_to_fit();
        }
        moved
    }

    /// The entries in the slots of `range`, as far as they exist and are taken.
    pub(super) fn range(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = &Record> {
        self.records.iter().take(range.end).skip(range.start).flatten()
    }

    /// What the slots take beside their records, in bytes.
    #[cfg(test)]
    pub(super) fn metadata_bytes(&self) -> usize {
        self.records.capacity() * size_of::<Option<Record>>()
            + self.free.capacity() * size_of::<Slot>()
    }

    /// The slots that are taken.
    pub(super) fn taken(&self) -> Vec<Slot> {
        let slots = 0..Slot::try_from(self.records.len()).expect("slots are numbered by u32");
        slots.filter(|slot| self.records[*slot as usize].is_some()).collect()
    }

    fn pop_free(&mut self) -> Option<Slot> {
        std::iter::from_fn(|| self.free.pop()).find(|slot| (*slot as usize) < self.records.len())
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::super::record::Draft;
    use super::*;

    fn record(key: &[u8]) -> Record {
        Draft::copied(0, key, b"value").expect("there is memory for it").place(0, u64::MAX, 0)
    }

    #[test]
    fn slots_are_dense_and_reused() {
        let mut slab = Slab::default();
        assert_eq!(slab.insert(record(b"a")), 0);
        assert_eq!(slab.insert(record(b"b")), 1);
        assert_eq!(slab.remove(0).key(), b"a");
        assert_eq!(slab.taken(), [1]);
        assert_eq!(slab.insert(record(b"c")), 0);
        assert_eq!(slab.replace(0, record(b"d")).key(), b"c");
        assert_eq!(slab.get(0).key(), b"d");
        assert_eq!((slab.slots(), slab.len()), (2, 2));
        assert_eq!(slab.range(1..9).map(Record::key).collect::<Vec<_>>(), [b"b"]);
    }

    #[test]
    fn a_sparse_slab_becomes_dense_entry_by_entry() {
        let mut slab = Slab::default();
        for number in 0..1_000_u32 {
            slab.insert(record(&number.to_le_bytes()));
        }
        let (keep, full_bytes) = (10, slab.metadata_bytes());
        for slot in 0..1_000 - keep {
            slab.remove(slot);
        }
        let mut slots: Vec<Slot> = (1_000 - keep..1_000).collect();
        while slab.is_sparse() {
            if let Some((from, to)) = slab.drop_last() {
                let at = slots.iter().position(|slot| *slot == from).unwrap();
                slots[at] = to;
            }
        }
        assert!(slab.metadata_bytes() < full_bytes / 4, "{} bytes", slab.metadata_bytes());
        assert_eq!(slab.len(), keep as usize);
        for (at, slot) in slots.iter().enumerate() {
            let number = 1_000 - keep + u32::try_from(at).unwrap();
            assert_eq!(slab.get(*slot).key(), number.to_le_bytes());
        }
        for number in 0..500_u32 {
            slab.insert(record(&number.to_le_bytes()));
        }
        let taken = slab.taken();
        assert_eq!(taken.len(), 510);
        assert!(taken.iter().all(|slot| (*slot as usize) < slab.slots()));
    }
}
