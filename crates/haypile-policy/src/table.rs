//! A hash table of numbers, whose lookups usually read one cache line.
//!
//! The layout is that of Folly's F14 (N. Bronson and X. Shi, "Open-sourcing F14 for faster, more
//! memory-efficient hash tables", 2019): a chunk is a cache line of twelve numbers, with a byte of
//! each one's hash and the count of numbers that found no room in it and went on to a later chunk.
//! A search ends at a chunk that no number went past, so that removed numbers need no marks, or where it
//! began. The caller knows what a number stands for: it compares keys, and hashes again when the table grows.

use crate::prefetch::{prefetch, prefetch_to_write};

/// Numbers in a chunk.
const CELLS: usize = 12;

/// The average number per chunk at which the table grows, so that few numbers go past their chunk.
const FULL: usize = 8;

/// The lowest bit of the tag of each cell.
const LOWEST: u128 = 0x0101_0101_0101_0101_0101_0101;

/// The highest bit of the tag of each cell.
const HIGHEST: u128 = LOWEST << 7;

/// Mixes the bits of a fingerprint (a hash of a key) for tables that use its low and its high bits, because
/// fingerprints may be small numbers.
#[inline]
pub fn spread(fingerprint: u64) -> u64 {
    // Knuth's multiplicative hashing: 2^64 over the golden ratio.
    fingerprint.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct Chunk {
    /// A byte of each number's hash; 0 for an empty cell.
    tags: [u8; CELLS],
    /// The count of numbers that were placed in later chunks because this one was full.
    passed: u32,
    numbers: [u32; CELLS],
}

impl Chunk {
    /// Returns the cells with a tag.
    #[inline]
    fn with_tag(&self, tag: u8) -> Cells {
        let mut tags = [0; 16];
        tags[..CELLS].copy_from_slice(&self.tags);
        let differ = u128::from_le_bytes(tags) ^ (LOWEST * u128::from(tag));
        // The sum sets the highest bit of a byte, unless it is set already or all bits are zero; no
        // sum carries into the next byte.
        let others = HIGHEST - LOWEST;
        Cells(!(((differ & others) + others) | differ) & HIGHEST)
    }
}

/// Cells of a chunk, as the highest bits of their tags.
struct Cells(u128);

impl Iterator for Cells {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let cell = self.0.trailing_zeros() / 8;
        self.0 &= self.0 - 1;
        Some(cell as usize)
    }
}

/// A hash table of 32-bit numbers, such as those of cache entries, whose keys the caller has.
///
/// The highest bits of a hash and its bits 16 to 23 should vary. In a large table, a number takes 8
/// to 11 bytes. All operations take constant time on average.
#[derive(Debug, Default)]
pub struct Table {
    chunks: Vec<Chunk>,
    len: usize,
}

impl Table {
    /// Returns how many numbers are in the hash table.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the hash table contains no number.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns how many numbers fit into the allocated memory of the hash table.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.chunks.len() * FULL
    }

    /// Returns a number in the hash table that has this hash and for which `is_it` returns true (such as an entry with
    /// the wanted key); `None` if there is none.
    #[inline]
    pub fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.locate(hash, is_it).map(|(at, cell)| self.chunks[at].numbers[cell])
    }

    /// Prefetches the part of the hash table that [`find`](Self::find) reads first for this hash.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        if let Some(chunk) = self.chunks.get(self.home(hash)) {
            prefetch(chunk);
        }
    }

    /// Prefetches the part of the hash table that [`insert`](Self::insert) or [`remove`](Self::remove) probably changes
    /// for this hash.
    #[inline]
    pub fn prefetch_to_write(&self, hash: u64) {
        if let Some(chunk) = self.chunks.get(self.home(hash)) {
            prefetch_to_write(chunk);
        }
    }

    /// Returns the number that [`find`](Self::find) would test first for this hash, if it is in the part of the hash
    /// table that [`prefetch`](Self::prefetch) fetches.
    #[inline]
    pub fn likely(&self, hash: u64) -> Option<u32> {
        let chunk = self.chunks.get(self.home(hash))?;
        chunk.with_tag(tag(hash)).next().map(|cell| chunk.numbers[cell])
    }

    /// Adds a number that is not in the hash table yet. `hash_of` returns the hashes of the other numbers.
    #[inline]
    pub fn insert(&mut self, hash: u64, number: u32, hash_of: impl Fn(u32) -> u64) {
        if self.len == self.capacity() {
            self.resize(self.chunks.len() + self.chunks.len() * 3 / 8 + 1, hash_of);
        }
        self.place(hash, number);
        self.len += 1;
    }

    /// Removes a number with this hash from the hash table.
    ///
    /// # Panics
    ///
    /// If it is not in the table under this hash.
    pub fn remove(&mut self, hash: u64, number: u32) {
        let (end, cell) =
            self.locate(hash, |other| other == number).expect("a number in the table");
        self.chunks[end].tags[cell] = 0;
        self.len -= 1;
        let mut at = self.home(hash);
        while at != end {
            self.chunks[at].passed -= 1;
            at = self.after(at);
        }
    }

    /// Replaces the number `from` in the hash table by `to`, which has the same hash.
    ///
    /// # Panics
    ///
    /// If `from` is not in the table under this hash.
    #[inline]
    pub fn replace(&mut self, hash: u64, from: u32, to: u32) {
        let (at, cell) = self.locate(hash, |other| other == from).expect("a number in the table");
        self.chunks[at].numbers[cell] = to;
    }

    /// Removes all numbers from the hash table, and keeps its memory.
    #[inline]
    pub fn clear(&mut self) {
        self.chunks.fill(Chunk::default());
        self.len = 0;
    }

    /// Frees memory of the hash table that is needed neither for `capacity` numbers nor for its present ones.
    #[inline]
    pub fn shrink_to(&mut self, capacity: usize, hash_of: impl Fn(u32) -> u64) {
        let chunks = capacity.max(self.len).div_ceil(FULL);
        if chunks < self.chunks.len() {
            self.resize(chunks, hash_of);
        }
    }

    /// Returns the number of bytes of memory that the hash table takes.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        self.chunks.capacity() * size_of::<Chunk>()
    }

    #[inline]
    fn locate(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<(usize, usize)> {
        let home = self.home(hash);
        let mut at = home;
        loop {
            let chunk = self.chunks.get(at)?;
            for cell in chunk.with_tag(tag(hash)) {
                if is_it(chunk.numbers[cell]) {
                    return Some((at, cell));
                }
            }
            if chunk.passed == 0 {
                return None;
            }
            at = self.after(at);
            // In a table of few chunks, numbers may have gone past each of them.
            if at == home {
                return None;
            }
        }
    }

    /// Puts a number into the first free cell for its hash. There must be one.
    fn place(&mut self, hash: u64, number: u32) {
        let mut at = self.home(hash);
        loop {
            let chunk = &mut self.chunks[at];
            if let Some(cell) = chunk.with_tag(0).next() {
                chunk.tags[cell] = tag(hash);
                chunk.numbers[cell] = number;
                return;
            }
            chunk.passed += 1;
            at = self.after(at);
        }
    }

    fn resize(&mut self, chunks: usize, hash_of: impl Fn(u32) -> u64) {
        let before = std::mem::replace(&mut self.chunks, vec![Chunk::default(); chunks]);
        for chunk in before {
            for (number, _) in
                chunk.numbers.into_iter().zip(chunk.tags).filter(|(_, tag)| *tag != 0)
            {
                self.place(hash_of(number), number);
            }
        }
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        let at = (u128::from(hash) * self.chunks.len() as u128) >> 64;
        usize::try_from(at).expect("the chunks are in memory")
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.chunks.len() { 0 } else { at + 1 }
    }
}

#[inline]
fn tag(hash: u64) -> u8 {
    // The high bits select the chunk.
    (hash >> 16).to_le_bytes()[0].max(1)
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Insert(u64),
        Remove(usize),
        Replace(usize),
        Shrink(usize),
        Clear,
    }

    fn ops(hash: impl Strategy<Value = u64>) -> impl Strategy<Value = Vec<Op>> {
        let op = prop_oneof![
            600 => hash.prop_map(Op::Insert),
            300 => any::<usize>().prop_map(Op::Remove),
            100 => any::<usize>().prop_map(Op::Replace),
            20 => (0..200_usize).prop_map(Op::Shrink),
            1 => Just(Op::Clear),
        ];
        prop::collection::vec(op, 0..800)
    }

    /// Runs the same operations on a table and on a vector. A number stays in the vector's cell of
    /// that number forever, so that hashes are known by number.
    fn check(ops: &[Op]) {
        let mut table = Table::default();
        let mut hashes: Vec<u64> = Vec::new();
        let mut there: Vec<u32> = Vec::new();
        for op in ops {
            let number = u32::try_from(hashes.len()).expect("few");
            match *op {
                Op::Insert(hash) => {
                    table.insert(hash, number, |other| hashes[other as usize]);
                    hashes.push(hash);
                    there.push(number);
                }
                Op::Remove(pick) if !there.is_empty() => {
                    let gone = there.swap_remove(pick % there.len());
                    table.remove(hashes[gone as usize], gone);
                    assert_eq!(table.find(hashes[gone as usize], |other| other == gone), None);
                }
                Op::Replace(pick) if !there.is_empty() => {
                    let at = pick % there.len();
                    let hash = hashes[there[at] as usize];
                    table.replace(hash, there[at], number);
                    hashes.push(hash);
                    there[at] = number;
                }
                Op::Shrink(capacity) => table.shrink_to(capacity, |other| hashes[other as usize]),
                Op::Clear => {
                    table.clear();
                    there.clear();
                }
                Op::Remove(_) | Op::Replace(_) => {}
            }
            assert_eq!(table.len(), there.len());
            assert!(table.capacity() >= table.len());
            for number in &there {
                let found = table.find(hashes[*number as usize], |other| other == *number);
                assert_eq!(found, Some(*number), "after {op:?}");
            }
            // A number that is found is in the table, and has the tag of the search.
            for hash in hashes.iter().rev().take(3) {
                table.find(*hash, |other| {
                    assert!(there.contains(&other), "after {op:?}");
                    assert_eq!(tag(hashes[other as usize]), tag(*hash));
                    false
                });
            }
        }
        for number in there {
            table.remove(hashes[number as usize], number);
        }
        assert!(table.chunks.iter().all(|chunk| chunk.passed == 0 && chunk.tags == [0; CELLS]));
    }

    proptest! {
        #[test]
        fn as_a_plain_vector_does(ops in ops(any::<u64>())) {
            check(&ops);
        }

        #[test]
        fn as_a_plain_vector_does_where_hashes_collide(
            ops in ops((0..3_u64, 0..4_u64).prop_map(|(high, low)| high << 63 | low << 16)),
        ) {
            check(&ops);
        }
    }

    #[test]
    fn a_number_takes_8_to_12_bytes() {
        let hash = |number: u32| spread(number.into());
        let mut table = Table::default();
        for number in 0..100_000 {
            table.insert(hash(number), number, hash);
            if table.len() > 1000 {
                let bytes = table.memory_bytes();
                assert!((8 * table.len()..12 * table.len()).contains(&bytes), "{bytes} bytes");
            }
        }
        // Few numbers go past their chunk.
        let passed: u32 = table.chunks.iter().map(|chunk| chunk.passed).sum();
        assert!(passed < 5_000, "{passed} went past");
    }

    #[test]
    fn most_numbers_are_likely_by_their_hash() {
        let hash = |number: u32| spread(number.into());
        let mut table = Table::default();
        assert_eq!(table.likely(hash(0)), None);
        for number in 0..10_000 {
            table.insert(hash(number), number, hash);
        }
        let likely = (0..10_000).filter(|number| table.likely(hash(*number)) == Some(*number));
        let likely = likely.count();
        assert!(likely > 9_000, "{likely} of 10,000");
    }

    /// Numbers that come and go in a table of few chunks leave it so that some went past each chunk. A search
    /// for what is not there ends all the same.
    #[test]
    fn a_search_in_a_small_table_ends_where_it_began() {
        let hash = |number: u32| xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes());
        for len in [14, 16, 22, 24, 40] {
            let mut table = Table::default();
            let mut there: Vec<u32> = Vec::new();
            let mut went_past_all = false;
            for number in 0..1_000_000 {
                if there.len() == len {
                    let random = usize::try_from(hash(!number) >> 40).expect("24 bits");
                    let gone = there.swap_remove(random % len);
                    table.remove(hash(gone), gone);
                }
                table.insert(hash(number), number, hash);
                there.push(number);
                if table.chunks.iter().all(|chunk| chunk.passed > 0) {
                    went_past_all = true;
                    break;
                }
            }
            assert!(went_past_all || ![16, 24, 40].contains(&len), "{len} numbers show nothing");
            for absent in 2_000_000..2_000_100 {
                assert_eq!(table.find(hash(absent), |_| false), None);
            }
        }
    }

    #[test]
    #[should_panic(expected = "a number in the table")]
    fn what_is_not_there_cannot_be_removed() {
        Table::default().remove(1, 2);
    }
}
