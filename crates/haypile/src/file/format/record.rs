//! The words before a key and its value in a segment.

use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_64_with_seed};

use crate::mutant;

/// The length of the largest value that a record's header in the cache file can state, in bytes.
pub(in crate::file) const MAX_VALUE_BYTES: u64 = (1 << 30) - 1;
/// The largest version of an entry that a record's header in the cache file can state.
pub(in crate::file) const MAX_VERSION: u64 = (1 << 48) - 1;
const HAS_EXPIRY: u64 = 1 << 30;
const HAS_NAMESPACE: u64 = 1 << 31;
/// The expiry of what never expires, in the bits that a word has for it.
const NEVER: u64 = (1 << 47) - 1;

/// The header of a record (a stored key and value): the two words before the key, without the
/// checksum. It takes two registers, because every step of an operation passes it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) struct Head {
    first: u64,
    second: u64,
}

impl Head {
    /// Returns the header of a record (a stored key and value) with this version and lengths, which
    /// are within their limits.
    #[inline]
    pub(in crate::file) fn new(
        version: u64,
        key_bytes: u64,
        value_bytes: u64,
        has_expiry: bool,
        has_namespace: bool,
    ) -> Self {
        let flags =
            if has_expiry { HAS_EXPIRY } else { 0 } | if has_namespace { HAS_NAMESPACE } else { 0 };
        Self { first: version << 16 | key_bytes, second: flags | value_bytes }
    }

    #[inline]
    pub(in crate::file) fn version(self) -> u64 {
        self.first >> 16
    }

    #[inline]
    pub(in crate::file) fn key_bytes(self) -> u64 {
        self.first & 0xFFFF
    }

    #[inline]
    pub(in crate::file) fn value_bytes(self) -> u64 {
        self.second & MAX_VALUE_BYTES
    }

    /// Returns whether the record has a word for an expiry time.
    #[inline]
    pub(in crate::file) fn has_expiry(self) -> bool {
        self.second & HAS_EXPIRY != 0
    }

    /// Returns whether the record's stored key begins with the name of a namespace.
    #[inline]
    pub(in crate::file) fn has_namespace(self) -> bool {
        self.second & HAS_NAMESPACE != 0
    }

    /// Returns the first two words of a stored record: this header, encoded together with a
    /// checksum.
    #[inline]
    pub(in crate::file) fn encode(self, checksum: u64) -> (u64, u64) {
        (self.first, self.second | checksum << 32)
    }

    /// Returns the second word of a stored record, with its checksum changed so that no reader
    /// accepts the record.
    #[inline]
    pub(in crate::file) fn withhold(second: u64) -> u64 {
        second ^ 1 << 63
    }

    /// Decodes the first two words of a stored record into its header and its checksum.
    #[inline]
    pub(in crate::file) fn decode(first: u64, second: u64) -> (Self, u64) {
        (Self { first, second: second & 0xFFFF_FFFF }, second >> 32)
    }

    /// Returns the checksum of a stored record: 32 bits over its header, key hash and value, but
    /// not its expiry.
    #[inline]
    pub(in crate::file) fn checksum(self, key_hash: u64, value: &[u8]) -> u64 {
        xxh3_64_with_seed(value, self.checksum_seed(key_hash)) >> 32
    }

    #[inline]
    fn checksum_seed(self, key_hash: u64) -> u64 {
        key_hash ^ self.first.rotate_left(32) ^ self.second
    }

    /// Returns a started checksum of a stored record, to which the caller adds the record's value
    /// in pieces.
    pub(in crate::file) fn start_checksum(self, key_hash: u64) -> Xxh3 {
        Xxh3::with_seed(self.checksum_seed(key_hash))
    }

    pub(in crate::file) fn end_checksum(pieces: &Xxh3) -> u64 {
        pieces.digest() >> 32
    }

    /// The offset of the expiry word from the start of a stored record that has one, in bytes.
    pub(in crate::file) const EXPIRY_AT: u64 = 16;

    /// Returns the offset of the key from the start of a stored record, in bytes.
    #[inline]
    pub(in crate::file) fn key_at(self) -> u64 {
        if self.has_expiry() { 24 } else { 16 }
    }

    #[inline]
    pub(in crate::file) fn value_at(self) -> u64 {
        self.key_at() + self.key_bytes().next_multiple_of(8)
    }

    /// Returns the length of the record in bytes, with its header, key and value.
    #[inline]
    pub(in crate::file) fn bytes(self) -> u64 {
        self.value_at() + self.value_bytes().next_multiple_of(8)
    }
}

/// The decoded expiry word of a record: when the record expires, and whether it is in groups. The
/// record's version is mixed into the word's check, because this word alone changes in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) struct Expiration {
    /// The time at which the stored record expires, in ms since 1970; `u64::MAX` for never.
    pub(in crate::file) ms: u64,
    /// Whether the hashes of groups of entries follow the record's value; the record's length
    /// counts them as a part of the value.
    pub(in crate::file) has_groups: bool,
}

impl Expiration {
    pub(in crate::file) fn encode(self, version: u64) -> u64 {
        let bits = self.ms.min(NEVER) << 1 | u64::from(self.has_groups);
        bits << 16 | expiry_check(bits, version)
    }

    /// Decodes the expiry word of a stored record of this version; `None` if the word is damaged.
    #[inline]
    pub(in crate::file) fn decode(word: u64, version: u64) -> Option<Self> {
        let bits = word >> 16;
        let is_damaged = word & 0xFFFF != expiry_check(bits, version);
        if is_damaged && !mutant::is_on("expiry-not-checked") {
            return None;
        }
        let ms = bits >> 1;
        Some(Self { ms: if ms == NEVER { u64::MAX } else { ms }, has_groups: bits & 1 != 0 })
    }
}

fn expiry_check(bits: u64, version: u64) -> u64 {
    // A multiplication spreads every bit into the upper ones.
    (bits ^ version.rotate_left(17)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48
}

/// Returns the hash of a key in the cache file, which the file's seed makes unpredictable.
pub(in crate::file) fn hash(key: &[u8], has_namespace: bool, seed: u64) -> u64 {
    match (has_namespace, seed) {
        (false, 0) => xxh3_64(key),
        (false, seed) => xxh3_64_with_seed(key, seed),
        (true, seed) => xxh3_64_with_seed(key, !seed),
    }
}

/// Returns the hash of a namespace's name in the cache file, computed differently from the hashes
/// of keys.
pub(in crate::file) fn namespace_hash(namespace: &str, seed: u64) -> u64 {
    xxh3_64_with_seed(namespace.as_bytes(), seed.rotate_left(32) ^ 0x9E37_79B9_7F4A_7C15)
}

/// Returns the seed with which the names of groups in a namespace are hashed, from the hash of the namespace's name.
pub(in crate::file) fn group_seed(namespace: u64) -> u64 {
    namespace ^ 0x67F0_3A5C_91D2_8B4E
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_as_they_were_written() {
        for (has_expiry, has_namespace) in [(false, false), (true, false), (true, true)] {
            let head = Head::new(MAX_VERSION, 65_535, 3, has_expiry, has_namespace);
            assert_eq!(
                (head.version(), head.key_bytes(), head.value_bytes()),
                (MAX_VERSION, 65_535, 3)
            );
            assert_eq!((head.has_expiry(), head.has_namespace()), (has_expiry, has_namespace));
            let (first, second) = head.encode(head.checksum(1, b"abc"));
            let (read, checksum) = Head::decode(first, second);
            assert_eq!(read, head);
            assert_eq!(checksum, head.checksum(1, b"abc"));
            assert_ne!(checksum, head.checksum(2, b"abc"));
            assert_ne!(checksum, head.checksum(1, b"abd"));
            let mut pieces = head.start_checksum(1);
            for piece in [&b"a"[..], b"bc"] {
                pieces.update(piece);
            }
            assert_eq!(Head::end_checksum(&pieces), checksum);
            let key_at = if has_expiry { 24 } else { 16 };
            assert_eq!((head.key_at(), head.bytes()), (key_at, key_at + 65_536 + 8));
        }
    }

    #[test]
    fn an_expiry_belongs_to_one_version() {
        for (ms, has_groups) in
            [(0, false), (1_700_000_000_000, true), (u64::MAX, false), (u64::MAX, true)]
        {
            let expiration = Expiration { ms, has_groups };
            let word = expiration.encode(7);
            assert_eq!(Expiration::decode(word, 7), Some(expiration));
            assert_eq!(Expiration::decode(word, 8), None);
        }
        let word = Expiration { ms: 5, has_groups: true }.encode(7);
        for bit in 0..64 {
            assert_eq!(Expiration::decode(word ^ 1 << bit, 7), None, "bit {bit}");
        }
    }
}
