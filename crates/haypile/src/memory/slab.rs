//! The entries of a memory store, under dense numbers that are reused.

use crate::policy::Slot;

/// A key with its value, and what the store has to know of them.
#[derive(Debug)]
pub(super) struct Entry {
    /// The key and then the value, in one allocation.
    pub(super) record: Box<[u8]>,
    pub(super) fingerprint: u64,
    pub(super) version: u64,
    /// `u64::MAX` for never.
    pub(super) expires_ns: u64,
    pub(super) key_bytes: u16,
}

impl Entry {
    pub(super) fn key(&self) -> &[u8] {
        &self.record[..usize::from(self.key_bytes)]
    }

    pub(super) fn value(&self) -> &[u8] {
        &self.record[usize::from(self.key_bytes)..]
    }
}

/// Entries by slot.
#[derive(Debug, Default)]
pub(super) struct Slab {
    entries: Vec<Option<Entry>>,
    free: Vec<Slot>,
}

impl Slab {
    /// Takes a free slot, or a new one at the end.
    pub(super) fn insert(&mut self, entry: Entry) -> Slot {
        if let Some(slot) = self.free.pop() {
            self.entries[slot as usize] = Some(entry);
            return slot;
        }
        if self.entries.len() == self.entries.capacity() {
            // By an eighth: entries that are not there yet cost memory as well.
            self.entries.reserve_exact(self.entries.len() / 8 + 64);
        }
        self.entries.push(Some(entry));
        Slot::try_from(self.entries.len() - 1).expect("the largest size allows 2^31 entries")
    }

    pub(super) fn remove(&mut self, slot: Slot) -> Entry {
        let entry = self.entries[slot as usize].take().expect("a slot that is taken");
        self.free.push(slot);
        entry
    }

    pub(super) fn get(&self, slot: Slot) -> &Entry {
        self.entries[slot as usize].as_ref().expect("a slot that is taken")
    }

    pub(super) fn get_mut(&mut self, slot: Slot) -> &mut Entry {
        self.entries[slot as usize].as_mut().expect("a slot that is taken")
    }

    /// How many slots there are, free ones included.
    pub(super) fn slots(&self) -> usize {
        self.entries.len()
    }

    /// The entries in the slots of `range`, as far as they exist and are taken.
    pub(super) fn range(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = &Entry> {
        self.entries.iter().take(range.end).skip(range.start).flatten()
    }

    /// What the slots take beside their records.
    #[cfg(test)]
    pub(super) fn metadata_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Option<Entry>>()
            + self.free.capacity() * size_of::<Slot>()
    }

    /// The slots that are taken.
    pub(super) fn taken(&self) -> Vec<Slot> {
        let slots = 0..Slot::try_from(self.entries.len()).expect("slots are numbered by u32");
        slots.filter(|slot| self.entries[*slot as usize].is_some()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &[u8], value: &[u8]) -> Entry {
        Entry {
            record: [key, value].concat().into(),
            fingerprint: 0,
            version: 0,
            expires_ns: u64::MAX,
            key_bytes: u16::try_from(key.len()).unwrap(),
        }
    }

    #[test]
    fn slots_are_dense_and_reused() {
        let mut slab = Slab::default();
        assert_eq!(slab.insert(entry(b"a", b"1")), 0);
        assert_eq!(slab.insert(entry(b"b", b"2")), 1);
        assert_eq!(slab.remove(0).key(), b"a");
        assert_eq!(slab.taken(), [1]);
        assert_eq!(slab.insert(entry(b"c", b"3")), 0);
        assert_eq!(slab.get(0).value(), b"3");
        assert_eq!(slab.slots(), 2);
        assert_eq!(slab.range(1..9).map(Entry::key).collect::<Vec<_>>(), [b"b"]);
    }
}
