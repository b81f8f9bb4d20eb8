//! Leases on keys: the right to store a value that was computed from data read earlier.

use std::fmt;

/// A lease on a key: the right to store a value that was computed from data read after this moment,
/// unless the key changes in the meantime.
///
/// A program that looks aside reads the cache, misses, asks its data base, and writes the answer. If the data base changes
/// and the key is deleted between the last two, the cache has an old value for its whole life. A lease closes that gap:
/// take one with [`Cache::lease`](crate::Cache::lease) before you ask, and write with
/// [`SetOptions::leased`](crate::SetOptions::leased). If anybody has deleted or written the key since, in whatever process
/// (or has cleared the cache, or the value of another writer was evicted since), the write is
/// [`Revoked`](crate::Written::Revoked), and nothing has changed. The term is memcached's (R. Nishtala and others, "Scaling
/// Memcache at Facebook", NSDI 2013).
///
/// A lease changes nothing that our operations see, and needs not be given back. On a server it is a placeholder for some minutes,
/// which other programs read as a value. It is valid for its key in its store, and may be
/// handed to another process that uses the same file. One of before a reboot, of a file that was replaced, or one that was
/// damaged or made up is revoked.
///
/// [`Cache::get_or_compute`](crate::Cache::get_or_compute) takes leases by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Lease([u8; Self::BYTES]);

impl Lease {
    /// The length of an encoded lease, 32 bytes.
    pub const BYTES: usize = 32;

    /// Decodes a lease from bytes that [`to_bytes`](Self::to_bytes) returned.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Encodes the lease as 32 bytes, for a binding or another process to keep.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        self.0
    }

    /// Returns a lease made of four words, in which the store that grants the lease states what it
    /// knows of the key. The third word is the number of the last invalidation of a group, if the
    /// store has groups.
    pub fn from_words(words: [u64; 4]) -> Self {
        let mut bytes = [0; Self::BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Self(bytes)
    }

    /// Returns the number of the last invalidation of a group when the lease was granted: its third
    /// word.
    pub(crate) fn clock(self) -> u64 {
        self.words()[2]
    }

    /// Returns the four words that the store which granted the lease put into it; a lease can be
    /// forged.
    pub fn words(self) -> [u64; 4] {
        let (words, _) = self.0.as_chunks::<8>();
        std::array::from_fn(|number| u64::from_le_bytes(words[number]))
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Lease").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_bytes_in_the_same_order_everywhere() {
        let lease = Lease::from_words([1, 2, 3, u64::MAX]);
        assert_eq!((lease.to_bytes()[0], lease.to_bytes()[8]), (1, 2));
        assert_eq!(Lease::from_bytes(lease.to_bytes()).words(), [1, 2, 3, u64::MAX]);
    }
}
