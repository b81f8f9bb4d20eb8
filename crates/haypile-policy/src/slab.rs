//! The entries of a shard, in dense numbered slots that are reused. The simulator numbers its entries
//! with the same code.

use crate::Slot;
use crate::free::FreeList;
use crate::prefetch::{prefetch, prefetch_to_write};

/// A table of records (such as cache entries) in numbered slots; free slots are reused.
#[derive(Debug)]
pub struct Slab<T> {
    records: Vec<Option<T>>,
    free: FreeList,
    taken: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { records: Vec::new(), free: FreeList::default(), taken: 0 }
    }
}

impl<T> Slab<T> {
    /// Prefetches the memory of a slot that is about to be read.
    #[inline]
    pub fn prefetch_slot(&self, slot: Slot) {
        if let Some(place) = self.records.get(slot as usize) {
            prefetch(place);
        }
    }

    /// Prefetches the memory of a slot whose record is about to be removed.
    #[inline]
    pub fn prefetch_slot_to_write(&self, slot: Slot) {
        if let Some(place) = self.records.get(slot as usize) {
            prefetch_to_write(place);
        }
    }

    /// Returns the record in a slot, if there is one.
    #[inline]
    pub fn peek(&self, slot: Slot) -> Option<&T> {
        self.records.get(slot as usize)?.as_ref()
    }

    /// Inserts a record into a free slot, or into a new one at the end, and returns the slot.
    ///
    /// # Panics
    ///
    /// At more than 2^32 slots.
    pub fn insert(&mut self, record: T) -> Slot {
        self.taken += 1;
        if let Some(slot) = self.free.pop(self.records.len()) {
            self.records[slot as usize] = Some(record);
            return slot;
        }
        if self.records.len() == self.records.capacity() {
            // Grows by an eighth, because unused slots cost memory as well.
            self.records.reserve_exact(self.records.len() / 8 + 16);
        }
        self.records.push(Some(record));
        Slot::try_from(self.records.len() - 1).expect("the largest size allows 2^31 entries")
    }

    /// Removes the record of an occupied slot, and returns it.
    ///
    /// # Panics
    ///
    /// If the slot is free.
    #[inline]
    pub fn remove(&mut self, slot: Slot) -> T {
        let record = self.records[slot as usize].take().expect("callers pass occupied slots");
        self.taken -= 1;
        self.free.push(slot);
        record
    }

    /// Replaces the record in an occupied slot, and returns the previous one.
    #[inline]
    pub fn replace(&mut self, slot: Slot, record: T) -> T {
        self.records[slot as usize].replace(record).expect("callers pass occupied slots")
    }

    /// Returns the record in an occupied slot.
    ///
    /// # Panics
    ///
    /// If the slot is free.
    #[inline]
    pub fn get(&self, slot: Slot) -> &T {
        self.records[slot as usize].as_ref().expect("callers pass occupied slots")
    }

    /// Whether the table has to allocate memory for one more record.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.records.len() == self.records.capacity()
            && (self.taken == self.records.len() || self.free.is_empty())
    }

    /// Returns the number of slots in the table, including free ones.
    #[inline]
    pub fn slots(&self) -> usize {
        self.records.len()
    }

    /// Returns the number of occupied slots in the table.
    #[inline]
    pub fn len(&self) -> usize {
        self.taken
    }

    /// Whether no slot of the table is occupied.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// Whether enough slots of the table are free to make it worthwhile to drop some.
    #[inline]
    pub fn is_sparse(&self) -> bool {
        self.records.len() > self.taken + self.taken / 8 + 64
    }

    /// Drops the last slot of the table. A record there first moves to a free slot; the move (from, to) is returned.
    ///
    /// # Panics
    ///
    /// If no slot is free: see [`is_sparse`](Self::is_sparse).
    pub fn drop_last(&mut self) -> Option<(Slot, Slot)> {
        let record = self.records.pop()?;
        let last = Slot::try_from(self.records.len()).expect("slots have numbers of 32 bits");
        let moved = record.map(|record| {
            let free = self.free.pop(self.records.len()).or_else(|| self.find_free());
            let free = free.expect("a sparse slab has a free slot");
            self.records[free as usize] = Some(record);
            (last, free)
        });
        if self.records.capacity() > self.records.len() + self.records.len() / 4 + 64 {
            self.records.shrink_to(self.records.len() + self.records.len() / 8);
            self.free.shrink(self.records.len());
        }
        moved
    }

    /// Returns the records in the occupied slots with numbers in a range.
    #[inline]
    pub fn range(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = &T> {
        self.records.iter().take(range.end).skip(range.start).flatten()
    }

    /// Returns the number of bytes that the slots of the table take in addition to their records.
    #[inline]
    pub fn metadata_bytes(&self) -> usize {
        self.records.capacity() * size_of::<Option<T>>() + self.free.memory_bytes()
    }

    /// Returns the first occupied slot of the table from number `from` on.
    #[inline]
    pub fn next_taken(&self, from: Slot) -> Option<Slot> {
        self.records
            .get(from as usize..)?
            .iter()
            .zip(from..)
            .find_map(|(record, slot)| record.is_some().then_some(slot))
    }

    /// Returns the numbers of the occupied slots of the table.
    #[inline]
    pub fn taken(&self) -> impl Iterator<Item = Slot> {
        self.records.iter().zip(0..).filter_map(|(record, slot)| record.is_some().then_some(slot))
    }

    #[cold]
    fn find_free(&self) -> Option<Slot> {
        self.records.iter().zip(0..).find_map(|(record, slot)| record.is_none().then_some(slot))
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn record(key: &[u8]) -> Vec<u8> {
        key.to_vec()
    }

    #[test]
    fn slots_are_dense_and_reused() {
        let mut slab = Slab::default();
        assert_eq!(slab.insert(record(b"a")), 0);
        assert_eq!(slab.insert(record(b"b")), 1);
        assert_eq!(slab.remove(0), b"a");
        assert!(slab.taken().eq([1]));
        assert_eq!(slab.insert(record(b"c")), 0);
        assert_eq!(slab.replace(0, record(b"d")), b"c");
        assert_eq!(slab.get(0), b"d");
        assert_eq!((slab.slots(), slab.len()), (2, 2));
        assert_eq!(slab.range(1..9).cloned().collect::<Vec<_>>(), [b"b"]);
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
            assert_eq!(slab.get(*slot), &number.to_le_bytes());
        }
        for number in 0..500_u32 {
            slab.insert(record(&number.to_le_bytes()));
        }
        let taken: Vec<Slot> = slab.taken().collect();
        assert_eq!(taken.len(), 510);
        assert!(taken.iter().all(|slot| (*slot as usize) < slab.slots()));
    }
}
