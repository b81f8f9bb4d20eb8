//! The words of the index: slots and locks.

use std::fmt;

const LOCATION_BITS: u32 = 38;
const FREQUENCY_BITS: u32 = 3;
const TAG_SHIFT: u32 = LOCATION_BITS + FREQUENCY_BITS;
const LOCATION_MASK: u64 = (1 << LOCATION_BITS) - 1;
const FREQUENCY_MASK: u64 = 7 << LOCATION_BITS;

/// The highest number of uses of an entry that its index slot counts.
pub(in crate::file) const MAX_FREQUENCY: u64 = 3;

/// A slot of the cache file's index: the offset of a record, a part of its key's hash, and the
/// entry's number of uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::file) struct Slot(pub(in crate::file) u64);

impl Slot {
    pub(in crate::file) const EMPTY: Self = Self(0);

    /// Returns an index slot for a record with this hash of its key and number of uses, at an
    /// offset counted from the first segment.
    #[inline]
    pub(in crate::file) fn new(hash: u64, frequency: u64, offset: u64) -> Self {
        Self(hash << TAG_SHIFT | frequency.min(7) << LOCATION_BITS | (offset / 8 + 1))
    }

    #[inline]
    pub(in crate::file) fn is_empty(self) -> bool {
        self.0 & LOCATION_MASK == 0
    }

    /// Returns the tag of a key's hash: the bits of it that an index slot stores.
    #[inline]
    pub(in crate::file) fn tag_of(hash: u64) -> u64 {
        hash << TAG_SHIFT
    }

    /// Returns whether the index slot is not empty and has this [tag](Self::tag_of), the stored
    /// bits of a key's hash.
    #[inline]
    pub(in crate::file) fn has_tag(self, tag: u64) -> bool {
        (self.0 ^ tag) >> TAG_SHIFT == 0 && !self.is_empty()
    }

    #[inline]
    pub(in crate::file) fn is_tagged(self, hash: u64) -> bool {
        self.has_tag(Self::tag_of(hash))
    }

    /// Returns whether two index slots have the same tag (stored bits of a key's hash), so that
    /// their keys may be the same.
    #[inline]
    pub(in crate::file) fn is_same_tag(self, other: Self) -> bool {
        (self.0 ^ other.0) >> TAG_SHIFT == 0 && !self.is_empty() && !other.is_empty()
    }

    #[inline]
    pub(in crate::file) fn frequency(self) -> u64 {
        (self.0 & FREQUENCY_MASK) >> LOCATION_BITS
    }

    #[inline]
    pub(in crate::file) fn used(self) -> Self {
        Self(self.0 + (1 << LOCATION_BITS))
    }

    /// Returns the offset, from the first segment, of the record that the index slot points to. An
    /// empty slot has an offset beyond every file: another process may empty a slot after this one
    /// has read it.
    #[inline]
    pub(in crate::file) fn offset(self) -> u64 {
        (self.0.wrapping_sub(1) & LOCATION_MASK) * 8
    }

    /// Returns whether two index slots point to the same record, whatever numbers of uses they
    /// count.
    #[inline]
    pub(in crate::file) fn is_same(self, other: Self) -> bool {
        (self.0 ^ other.0) & !FREQUENCY_MASK == 0
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("empty");
        }
        write!(f, "{:x}@{} used {}", self.0 >> TAG_SHIFT, self.offset(), self.frequency())
    }
}

const OWNER_SLOT_BITS: u32 = 10;

/// The token that names an owner (a user of the cache file): the number of its owner slot, and the
/// number of owners that the slot had before. Zero names no owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) struct Token(pub(in crate::file) u32);

impl Token {
    pub(in crate::file) const NOBODY: Self = Self(0);

    /// Returns the token that names an owner (a user of the cache file), made of the number of its
    /// slot and the number of owners that the slot had before.
    #[inline]
    pub(in crate::file) fn new(owner_slot: u32, incarnation: u64) -> Self {
        let incarnation = u32::try_from(incarnation & Self::INCARNATIONS).expect("22 bits");
        Self(incarnation << OWNER_SLOT_BITS | (owner_slot + 1))
    }

    const INCARNATIONS: u64 = (1 << (32 - OWNER_SLOT_BITS)) - 1;

    /// Returns the number of the owner slot that an owner's token names; `None` if the token names
    /// no owner.
    #[inline]
    pub(in crate::file) fn owner_slot(self) -> Option<u32> {
        (self.0 & ((1 << OWNER_SLOT_BITS) - 1)).checked_sub(1)
    }

    /// Returns whether an owner's token names the current owner of its owner slot, which has had
    /// this number of owners.
    pub(in crate::file) fn is_of(self, incarnation: u64) -> bool {
        u64::from(self.0 >> OWNER_SLOT_BITS) == incarnation & Self::INCARNATIONS
    }
}

/// A 64-bit word of the cache file whose upper half is a lock, and whose lower half is a number for
/// other use (the payload).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) struct LockWord(pub(in crate::file) u64);

impl LockWord {
    #[inline]
    pub(in crate::file) fn new(token: Token, payload: u32) -> Self {
        Self(u64::from(token.0) << 32 | u64::from(payload))
    }

    #[inline]
    pub(in crate::file) fn token(self) -> Token {
        Token(u32::try_from(self.0 >> 32).expect("32 bits"))
    }

    #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
    #[inline]
    pub(in crate::file) fn payload(self) -> u32 {
        self.0 as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_keeps_its_parts_apart() {
        let hash = 0xdead_beef_cafe_f00d;
        let slot = Slot::new(hash, 2, 8 * 77);
        assert!(slot.is_tagged(hash) && !slot.is_tagged(hash + 1));
        assert_eq!((slot.offset(), slot.frequency()), (8 * 77, 2));
        let used = slot.used();
        assert_eq!((used.offset(), used.frequency()), (8 * 77, 3));
        assert_eq!(Slot::EMPTY.offset(), 8 * LOCATION_MASK, "beyond every file");
        assert!(used.is_tagged(hash) && used.is_same(slot) && used != slot);
        assert!(!Slot::new(hash, 2, 8 * 78).is_same(slot));
        assert!(Slot::EMPTY.is_empty() && !Slot::EMPTY.is_tagged(0));
    }

    #[test]
    fn a_token_names_one_owner_of_a_slot() {
        let token = Token::new(1022, 5);
        assert_eq!(token.owner_slot(), Some(1022));
        assert!(token.is_of(5) && !token.is_of(6));
        assert_eq!(Token::NOBODY.owner_slot(), None);
        let word = LockWord::new(token, 9);
        assert_eq!((word.token(), word.payload()), (token, 9));
    }
}
