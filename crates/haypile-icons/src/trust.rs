//! The check of one process as other processes find it.
//!
//! ```text
//! magic | moment | index | number of pictures | pictures (sorted) | checksum
//! ```
//!
//! A process that begins to look for icons less than an epoch after another one with the same view has checked them
//! need not check them again: it takes the moment of that check for the beginning of its own epoch, as if it were a
//! thread of that process. So a change is seen as soon as without the record.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::stamp::Stamp;

/// Begins a record; the digits are the version of the format.
const MAGIC: [u8; 8] = *b"hptrus01";
/// Magic, moment, index, number of pictures.
const HEAD_BYTES: usize = 8 + 8 + 8 + 8;
const CHECKSUM_BYTES: usize = 8;
/// The most pictures of a record: 32 KiB of them.
const MAX_PICTURES: usize = 4096;

/// A picture whose source file was found unchanged: a hash of the file's path and stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SeenPicture(u64);

impl SeenPicture {
    pub(crate) fn new(path: u128, stamp: Stamp) -> Self {
        let seed = u64::try_from(path & u128::from(u64::MAX)).unwrap_or(0);
        let other = u64::try_from(path >> 64).unwrap_or(0);
        Self(xxh3_64_with_seed(&stamp.to_bytes(), seed) ^ other)
    }
}

/// A record of a process's file checks that other processes may trust: the theme's index and the pictures that were
/// found up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trust {
    /// The time at which the file checks began, in nanoseconds of the clock of [`Viewer`](crate::view::Viewer).
    pub(crate) moment_ns: u64,
    /// The id of the theme's index whose folders were found unchanged.
    pub(crate) index: u64,
    /// The pictures that were found unchanged, sorted.
    pictures: Vec<SeenPicture>,
}

impl Trust {
    /// Creates a record of file checks with an index that was found up to date, and no pictures yet.
    pub(crate) fn new(moment_ns: u64, index: u64) -> Self {
        Self { moment_ns, index, pictures: Vec::new() }
    }

    /// Returns the key of the cache under which processes with one view of the file system share the file checks of a
    /// theme.
    pub(crate) fn key(view: u128, scan_hash: u64) -> Vec<u8> {
        [&b"t"[..], &view.to_le_bytes(), &scan_hash.to_le_bytes()].concat()
    }

    /// Whether the shared file checks include that the source file of this picture is unchanged.
    pub(crate) fn has(&self, picture: SeenPicture) -> bool {
        self.pictures.binary_search(&picture).is_ok()
    }

    /// Returns the number of pictures in the record whose source files were found unchanged.
    pub(crate) fn pictures(&self) -> usize {
        self.pictures.len()
    }

    /// Adds pictures whose source files were found unchanged, as far as there is room.
    pub(crate) fn add(&mut self, pictures: impl IntoIterator<Item = SeenPicture>) {
        self.pictures.extend(pictures);
        self.pictures.sort_unstable();
        self.pictures.dedup();
        self.pictures.truncate(MAX_PICTURES);
    }

    /// Adds the pictures of another process's record of the same checks.
    pub(crate) fn join(&mut self, other: &Self) {
        self.add(other.pictures.iter().copied());
    }

    /// Encodes the file checks as a value for a key of the cache.
    pub(crate) fn encode(&self, key: &[u8]) -> Vec<u8> {
        let pictures = self.pictures.len();
        let mut bytes = Vec::with_capacity(HEAD_BYTES + 8 * pictures + CHECKSUM_BYTES);
        bytes.extend(MAGIC);
        for number in [self.moment_ns, self.index, pictures as u64] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.pictures.iter().flat_map(|picture| picture.0.to_le_bytes()));
        bytes.extend(checksum(&bytes, key).to_le_bytes());
        bytes
    }

    /// Decodes the value of a key of the cache as file checks; `None` if it was not encoded for this key.
    pub(crate) fn decode(value: &[u8], key: &[u8]) -> Option<Self> {
        let (bytes, sum) = value.split_last_chunk::<CHECKSUM_BYTES>()?;
        if checksum(bytes, key) != u64::from_le_bytes(*sum) {
            return None;
        }
        let mut numbers = bytes
            .strip_prefix(&MAGIC)?
            .chunks_exact(8)
            .map(|chunk| chunk.try_into().map_or(0, u64::from_le_bytes));
        let (moment_ns, index, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let pictures: Vec<SeenPicture> = numbers.map(SeenPicture).collect();
        let is_whole = pictures.len() as u64 == count && bytes.len() % 8 == 0;
        (is_whole && pictures.is_sorted()).then_some(Self { moment_ns, index, pictures })
    }
}

/// Another one under each key: a record of one view is none of another.
fn checksum(bytes: &[u8], key: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, xxh3_64(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Trust {
        let mut trust = Trust::new(7_000, 8);
        trust.add([SeenPicture(9), SeenPicture(3), SeenPicture(9)]);
        trust
    }

    #[test]
    fn a_record_is_read_under_its_key_and_every_byte_of_it_counts() {
        let key = Trust::key(1 << 100, 5);
        let bytes = record().encode(&key);
        assert_eq!(Trust::decode(&bytes, &key), Some(record()));
        assert_eq!(Trust::decode(&bytes, &Trust::key(1 << 101, 5)), None);
        for at in 0..bytes.len() {
            assert_eq!(Trust::decode(&bytes[..at], &key), None, "{at} bytes");
            for flip in [1, 0x55, 0xFF] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                assert_eq!(Trust::decode(&damaged, &key), None, "byte {at}");
            }
        }
    }

    #[test]
    fn pictures_are_those_of_a_path_and_a_stamp() {
        let stamp = Stamp::of(std::path::Path::new("/")).unwrap().0;
        let seen = SeenPicture::new(3 << 70, stamp);
        assert_ne!(seen, SeenPicture::new(3 << 71, stamp));
        assert_ne!(seen, SeenPicture::new((3 << 70) + 1, stamp));
        assert_ne!(seen, SeenPicture::new(3 << 70, Stamp::default()));
        let mut trust = record();
        assert!(!trust.has(seen));
        let mut other = Trust::new(7_000, 8);
        other.add([seen]);
        trust.join(&other);
        assert!(trust.has(seen) && trust.has(SeenPicture(3)) && trust.pictures() == 3);
        trust.add((0..10_000).map(SeenPicture));
        assert_eq!(trust.pictures(), MAX_PICTURES);
    }
}
