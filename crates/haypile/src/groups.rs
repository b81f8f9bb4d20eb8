//! Groups of entries, which are invalidated together: one number per group, and one in each entry.
//!
//! A store has a clock that counts invalidations, and a word for each group, which groups share by their hashes. To invalidate a
//! group is to store the clock's next number in its word. An entry keeps the clock of when what it was computed from was
//! read, and the hashes of its groups, in *marks* after its value: it is valid as long as none of their words is above its
//! number. So an invalidation takes the same time however many entries there are, and each reader sees it at once.
//!
//! Where two groups have one word, the invalidation of one invalidates the other: a miss that need not have been. Words of
//! groups are never those of removals: in one array, each deletion of a key would invalidate the groups of its word.
//!
//! Symfony's cache component (*tags*), RFC 9875 (*HTTP Cache Groups*) and the surrogate keys of content networks are this
//! idea; with one number per group that is read with the entry, the first of these does it with two round trips.

use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::error::{Error, Result};
use crate::mutant;
use crate::store::Store;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::write::WriteMode;

/// The largest number of groups (for joint invalidation) that one entry can be in.
pub(crate) const MAX_GROUPS: usize = 64;
/// The length of the longest name of a group of entries, in bytes.
pub(crate) const MAX_GROUP_BYTES: usize = 250;
/// The smallest and the largest number of words that a store may have for the last invalidations of
/// its groups of entries.
pub(crate) const WORDS: std::ops::RangeInclusive<u64> = 8..=1 << 24;

/// The length of a word in bytes.
const WORD_BYTES: usize = 8;
const HASH_BYTES: usize = size_of::<u32>();
/// The number of words in marks besides the hashes of groups: one has the entry's number, and one the lengths.
const FIXED_WORDS: usize = 2;

/// The hashes of the names of the groups that an entry is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hashes(Vec<u32>);

impl Hashes {
    /// Returns the hashes of the names of groups of entries in a store.
    ///
    /// # Errors
    ///
    /// [`Error::Group`] if there are too many, or one has a length that it cannot have.
    pub(crate) fn of(store: &dyn Store, groups: &[&[u8]], seed: u64) -> Result<Self> {
        check(store, groups)?;
        let mut hashes: Vec<u32> = groups.iter().map(|group| hash(group, seed)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        Ok(Self(hashes))
    }

    /// Returns whether one of these groups was invalidated since the store's count of invalidations
    /// was `number`; `number_of` returns the number of a group's last one.
    pub(crate) fn are_invalid_since(
        &self,
        number: u64,
        word_of_group: impl Fn(u32) -> u64,
    ) -> bool {
        self.0.iter().any(|hash| word_of_group(*hash) > number)
    }

    /// Appends to a value its marks (the hashes of its groups, and the number of an invalidation),
    /// and returns the marks' length in bytes. Value and marks together are a multiple of a word's
    /// length.
    pub(crate) fn mark(&self, value: &mut Vec<u8>, number: u64) -> usize {
        let before = value.len();
        value.resize(before.next_multiple_of(WORD_BYTES), 0);
        for hash in &self.0 {
            value.extend(hash.to_le_bytes());
        }
        value.resize(value.len().next_multiple_of(WORD_BYTES), 0);
        value.extend(number.to_le_bytes());
        let bytes = value.len() + WORD_BYTES - before;
        let lengths = (bytes as u64) << 8 | self.0.len() as u64;
        value.extend(lengths.to_le_bytes());
        bytes
    }

    /// Returns the largest number of bytes that the hashes of these groups take after a value.
    pub(crate) fn most_bytes(&self) -> usize {
        WORD_BYTES * (1 + FIXED_WORDS + self.0.len().div_ceil(2))
    }
}

/// Returns an error if these are more groups than an entry can be in, or if the name of a group has
/// an invalid length.
pub(crate) fn check(store: &dyn Store, groups: &[&[u8]]) -> Result<()> {
    let longest = groups.iter().map(|group| group.len()).max().unwrap_or(1);
    let shortest = groups.iter().map(|group| group.len()).min().unwrap_or(1);
    if groups.len() <= MAX_GROUPS && shortest > 0 && longest <= MAX_GROUP_BYTES {
        return Ok(());
    }
    let group_bytes = if shortest == 0 { 0 } else { longest };
    Err(Error::Group { groups: groups.len(), group_bytes, store: store.describe() })
}

/// Returns the number of the last invalidation to store with an entry in groups: when its lease was
/// granted, or now without a lease.
pub(crate) fn number(mode: WriteMode, clock: impl FnOnce() -> u64) -> u64 {
    match mode {
        // That of a lease that was made up is of no use: the write is refused.
        WriteMode::Leased(lease) if !mutant::is_on("computed-values-are-of-now") => lease.clock(),
        _ => clock(),
    }
}

/// Returns the hash of the name of a group of entries, which selects the word that records the
/// group's last invalidation.
pub(crate) fn hash(group: &[u8], seed: u64) -> u32 {
    let hash = xxh3_64_with_seed(group, seed) >> 32;
    u32::try_from(hash).expect("the upper half")
}

/// Returns the index, among `words` words, of the word that records invalidations of groups with
/// this hash.
#[inline]
pub(crate) fn word_of(hash: u32, words: u32) -> u32 {
    let wide = u64::from(hash) * u64::from(words);
    u32::try_from(wide >> 32).expect("less than the number of words")
}

/// The last invalidations of the groups of entries in a store that belongs to one process: a count,
/// and a word for each group's last one. The words take no memory until the first group is named.
#[derive(Debug)]
pub(crate) struct Words {
    clock: AtomicU64,
    /// The numbers of the last invalidations, one for all groups whose hashes lead to the same
    /// word.
    numbers: OnceLock<Box<[AtomicU64]>>,
    count: usize,
}

impl Words {
    /// Returns the record of group invalidations for a store of this size; its words have no memory
    /// yet.
    pub(crate) fn for_bytes(capacity_bytes: u64) -> Self {
        let count = (capacity_bytes / BYTES_PER_WORD).clamp(FEWEST_WORDS, MOST_WORDS);
        let count = usize::try_from(count).expect("at most MOST_WORDS");
        Self { clock: AtomicU64::new(0), numbers: OnceLock::new(), count }
    }

    /// Allocates the words that record invalidations of groups; if there is no memory, returns the
    /// number of bytes that they would take.
    pub(crate) fn begin(&self) -> Result<(), usize> {
        if self.numbers.get().is_none() {
            let mut numbers = Vec::new();
            let reserved = numbers.try_reserve_exact(self.count);
            reserved.map_err(|_| self.count * size_of::<AtomicU64>())?;
            numbers.resize_with(self.count, || AtomicU64::new(0));
            // Another thread may have made them.
            let _ = self.numbers.set(numbers.into());
        }
        Ok(())
    }

    /// Returns the number of the last invalidation of any group of entries in the store.
    pub(crate) fn clock(&self) -> u64 {
        self.clock.load(Ordering::Acquire)
    }

    /// Invalidates the group with this hash: its entries written before this call become misses.
    pub(crate) fn invalidate(&self, hash: u32) {
        let number = self.clock.fetch_add(1, Ordering::AcqRel) + 1;
        if let Some(word) = self.word(hash) {
            word.fetch_max(number, Ordering::AcqRel);
        }
    }

    /// Returns whether a group of an entry with these marks (hashes of groups after its value) was
    /// invalidated after the entry was written. Damaged marks count as invalidated.
    pub(crate) fn are_invalid(&self, marks: &[u8]) -> bool {
        let Some(read) = Marks::at_end_of(marks) else { return true };
        // One word tells it of most entries where little is invalidated.
        if self.clock() <= read.number {
            return false;
        }
        let Some(numbers) = self.numbers.get() else { return false };
        let count = u32::try_from(numbers.len()).expect("at most MOST_WORDS");
        // As `Marks::are_invalid`, with fewer steps for each group.
        read.hashes_in(marks).iter().any(|hash| {
            let word = &numbers[word_of(u32::from_le_bytes(*hash), count) as usize];
            word.load(Ordering::Acquire) > read.number
        })
    }

    /// Returns the number of the last invalidation of the group with this hash, or of another group
    /// that shares its word; zero before the first.
    pub(crate) fn number_of(&self, hash: u32) -> u64 {
        self.word(hash).map_or(0, |word| word.load(Ordering::Acquire))
    }

    fn word(&self, hash: u32) -> Option<&AtomicU64> {
        let words = self.numbers.get()?;
        let count = u32::try_from(words.len()).expect("at most MOST_WORDS");
        words.get(word_of(hash, count) as usize)
    }
}

/// A word for each part of a store in memory of this length.
const BYTES_PER_WORD: u64 = 4096;
const FEWEST_WORDS: u64 = 1 << 12;
const MOST_WORDS: u64 = 1 << 20;

/// The marks after an entry's value: the hashes of its groups, and the number of the last
/// invalidation before it was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    /// The number of the last invalidation of any group when the data from which the entry was
    /// computed was read.
    pub(crate) number: u64,
    groups: usize,
    /// The length in bytes of the marks (hashes of groups) after a value, with the padding that
    /// fills the value up to whole words.
    pub(crate) bytes: usize,
}

impl Marks {
    /// Reads the marks (hashes of groups) at the end of `bytes` bytes, which are a value and its
    /// marks. `word` returns a word by its distance from the end, one for the last, and is never
    /// called for one before the first. Returns `None` for damaged marks.
    #[inline]
    pub(crate) fn read(bytes: u64, word: impl Fn(usize) -> u64) -> Option<Self> {
        if bytes < (FIXED_WORDS * WORD_BYTES) as u64 || !bytes.is_multiple_of(WORD_BYTES as u64) {
            return None;
        }
        let lengths = word(1);
        let groups = usize::from(lengths.to_le_bytes()[0]);
        let marks = Self { number: word(2), groups, bytes: usize::try_from(lengths >> 8).ok()? };
        let least = (FIXED_WORDS + groups.div_ceil(2)) * WORD_BYTES;
        let is_possible = groups <= MAX_GROUPS
            && marks.bytes as u64 <= bytes
            && (least..least + WORD_BYTES).contains(&marks.bytes);
        is_possible.then_some(marks)
    }

    /// Reads the marks (hashes of groups) at the end of a stored value; `None` if they are damaged.
    pub(crate) fn at_end_of(bytes: &[u8]) -> Option<Self> {
        Self::read(bytes.len() as u64, |back| word_from_end(bytes, back))
    }

    /// Returns whether a group of the entry with these marks was invalidated after the entry was
    /// computed, according to the stored words of the groups.
    #[inline]
    pub(crate) fn are_invalid(
        &self,
        word: impl Fn(usize) -> u64,
        word_of_group: impl Fn(u32) -> u64,
    ) -> bool {
        self.hashes(word).any(|hash| word_of_group(hash) > self.number)
    }

    #[inline]
    fn hashes(&self, word: impl Fn(usize) -> u64) -> impl Iterator<Item = u32> {
        let words = self.groups.div_ceil(2);
        (0..self.groups).map(move |number| {
            let pair = word(FIXED_WORDS + words - number / 2);
            let half = if number % 2 == 0 { pair } else { pair >> 32 };
            u32::try_from(half & u64::from(u32::MAX)).expect("the lower half")
        })
    }

    /// Returns the bytes of the hashes in marks that were read from the end of these bytes.
    fn hashes_in<'a>(&self, bytes: &'a [u8]) -> &'a [[u8; HASH_BYTES]] {
        let words = FIXED_WORDS + self.groups.div_ceil(2);
        &bytes[bytes.len() - words * WORD_BYTES..].as_chunks().0[..self.groups]
    }

    /// Returns the hashes of an entry's groups from the bytes of its value and marks.
    pub(crate) fn groups_of(&self, bytes: &[u8]) -> Hashes {
        Hashes(self.hashes_in(bytes).iter().map(|hash| u32::from_le_bytes(*hash)).collect())
    }
}

/// Appends to `renewed` the marks (hashes of groups) of an entry that is loaded into a new store,
/// with an invalidation number that any later one exceeds.
pub(crate) fn renew(marks: &[u8], renewed: &mut Vec<u8>) {
    if let Some(read) = Marks::at_end_of(marks) {
        read.groups_of(marks).mark(renewed, 0);
    }
}

/// Returns an 8-byte word of `bytes` by its distance from their end, 1 for the last word.
pub(crate) fn word_from_end(bytes: &[u8], back: usize) -> u64 {
    let at = bytes.len() - back * WORD_BYTES;
    u64::from_le_bytes(bytes[at..at + WORD_BYTES].try_into().expect("a word"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::NoneStore;

    #[test]
    fn words_are_chosen_within_their_number() {
        assert_eq!((word_of(0, 8), word_of(u32::MAX, 8), word_of(1 << 31, 8)), (0, 7, 4));
    }

    #[test]
    fn names_have_a_length_and_entries_a_number_of_groups() {
        let long = vec![b'x'; MAX_GROUP_BYTES + 1];
        for groups in [vec![&b""[..]], vec![&long[..]], vec![&b"a"[..]; MAX_GROUPS + 1]] {
            let error = Hashes::of(&NoneStore::new(), &groups, 0).unwrap_err();
            assert!(matches!(error, Error::Group { .. }), "{error}");
        }
        let most = vec![&long[1..]; MAX_GROUPS];
        assert_eq!(Hashes::of(&NoneStore::new(), &most, 0).unwrap().0.len(), 1);
    }

    proptest! {
        #[test]
        fn marks_are_read_as_they_were_written(
            value in prop::collection::vec(any::<u8>(), 0..40),
            names in prop::collection::vec("[a-z]{1,9}", 0..64),
            number in any::<u64>(),
        ) {
            let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
            let hashes = Hashes::of(&NoneStore::new(), &names, 7).unwrap();
            let mut bytes = value.clone();
            let length = hashes.mark(&mut bytes, number);
            prop_assert!(length <= hashes.most_bytes());
            let marks = Marks::at_end_of(&bytes).unwrap();
            prop_assert_eq!((marks.number, marks.bytes), (number, length));
            prop_assert_eq!(&bytes[..bytes.len() - length], &value[..]);
            prop_assert_eq!(marks.groups_of(&bytes), hashes.clone());
            let word = |back| word_from_end(&bytes, back);
            prop_assert!(!marks.are_invalid(word, |_| number));
            for hash in hashes.0.iter().copied() {
                let above = |of| if of == hash { number.saturating_add(1) } else { 0 };
                prop_assert_eq!(marks.are_invalid(word, above), number < u64::MAX);
            }
        }

        #[test]
        fn garbage_is_no_marks_or_marks_within_it(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(marks) = Marks::at_end_of(&bytes) {
                prop_assert!(marks.bytes <= bytes.len());
                marks.groups_of(&bytes);
            }
        }
    }
}
