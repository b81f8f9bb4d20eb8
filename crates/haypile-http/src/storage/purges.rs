//! Purges of all targets that begin alike.
//!
//! One record of each store has the latest purges, numbered. Each entry has the number of the last
//! purge before it was created (its [`Stamp`]): a purge with a higher number that names its begin has
//! purged it. So a purge costs one write however many entries it is about, and each request one read
//! of this record.
//!
//! The record begins with a random number. A store that has evicted it has forgotten what was
//! purged, so that none of its entries counts any more: the next record begins with another.
//!
//! ```text
//! version (1 byte) | epoch (8) | number of the last (8) | purges
//! purge: number (8) | length (4) | the begin of the names
//! ```

use bytes::{Buf, Bytes};

/// Rises with every change of the format.
const VERSION: u8 = 1;
/// The purges that are kept. Beyond it, the two that have most in common become one.
const MOST_PURGES: usize = 48;
/// The longest begin of a name that may be purged, so that all purges fit into one value.
pub(crate) const LONGEST_PREFIX: usize = 1024;

/// The place of an entry among the purges of its store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// That of the record of purges. Zero is that of none.
    pub(crate) epoch: u64,
    /// The number of the last purge before the entry was created.
    pub(crate) number: u64,
}

/// The latest purges of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Purges {
    last: Stamp,
    recent: Vec<Purge>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Purge {
    number: u64,
    prefix: Bytes,
}

impl Purges {
    /// Returns a record of no purges, which no entry has been created under.
    pub(super) fn new() -> Self {
        let epoch = rand::random_range(1..=u64::MAX);
        Self { last: Stamp { epoch, number: 0 }, recent: Vec::new() }
    }

    /// Returns the stamp of entries that are created now.
    pub(super) fn stamp(&self) -> Stamp {
        self.last
    }

    /// Whether an entry is still one: its name and its stamp.
    pub(super) fn permit(&self, name: &[u8], stamp: Stamp) -> bool {
        let has_purged =
            |purge: &Purge| purge.number > stamp.number && name.starts_with(&purge.prefix);
        stamp.epoch == self.last.epoch && !self.recent.iter().any(has_purged)
    }

    /// Purges all names that begin with this one.
    pub(super) fn add(&mut self, prefix: Bytes) {
        self.last.number += 1;
        // What it contains needs no line of its own.
        self.recent.retain(|purge| !purge.prefix.starts_with(&prefix));
        self.recent.push(Purge { number: self.last.number, prefix });
        if self.recent.len() > MOST_PURGES {
            self.merge();
        }
    }

    /// Makes one of the two purges that have most in common. It purges more than they did, and never
    /// less.
    fn merge(&mut self) {
        self.recent.sort_unstable_by(|one, other| one.prefix.cmp(&other.prefix));
        let in_common = |pair: &[Purge]| {
            let both = pair[0].prefix.iter().zip(&pair[1].prefix);
            both.take_while(|(one, other)| one == other).count()
        };
        let pairs = self.recent.windows(2).map(in_common).enumerate();
        let Some((place, length)) = pairs.max_by_key(|(_, length)| *length) else { return };
        let removed = self.recent.remove(place + 1);
        let kept = &mut self.recent[place];
        kept.prefix.truncate(length);
        kept.number = kept.number.max(removed.number);
    }

    /// Returns the bytes of the record.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        for number in [self.last.epoch, self.last.number] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for Purge { number, prefix } in &self.recent {
            let length = u32::try_from(prefix.len()).expect("at most LONGEST_PREFIX");
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(prefix);
        }
        bytes
    }

    /// Returns the record that these bytes are.
    pub(super) fn decode(mut bytes: Bytes) -> Option<Self> {
        if bytes.try_get_u8().ok()? != VERSION {
            return None;
        }
        let (epoch, number) = (bytes.try_get_u64_le().ok()?, bytes.try_get_u64_le().ok()?);
        let mut recent = Vec::new();
        while !bytes.is_empty() {
            let number = bytes.try_get_u64_le().ok()?;
            let length = usize::try_from(bytes.try_get_u32_le().ok()?).ok()?;
            if length > LONGEST_PREFIX.min(bytes.len()) || recent.len() == MOST_PURGES {
                return None;
            }
            recent.push(Purge { number, prefix: bytes.split_to(length) });
        }
        let is_of_some = epoch != 0;
        is_of_some.then_some(Self { last: Stamp { epoch, number }, recent })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prefix(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    #[test]
    fn a_purge_is_about_what_was_created_before_it() {
        let mut purges = Purges::new();
        let before = purges.stamp();
        purges.add(prefix("http://a/x"));
        let after = purges.stamp();
        for (name, stamp, expected) in [
            ("http://a/x/1", before, false),
            ("http://a/x", before, false),
            ("http://a/y", before, true),
            ("http://a/", before, true),
            ("http://a/x/1", after, true),
            ("http://a/y", Stamp { epoch: before.epoch ^ 1, ..after }, false),
            ("http://a/y", Stamp::default(), false),
        ] {
            assert_eq!(purges.permit(name.as_bytes(), stamp), expected, "{name} {stamp:?}");
        }
    }

    #[test]
    fn another_record_permits_nothing_of_the_last() {
        let stamp = Purges::new().stamp();
        assert!(!Purges::new().permit(b"http://a/", stamp));
    }

    #[test]
    fn bytes_that_are_none() {
        let mut purges = Purges::new();
        purges.add(prefix("http://a/"));
        let bytes = Bytes::from(purges.encode());
        assert_eq!(Purges::decode(bytes.clone()), Some(purges));
        let whole_without_purges = 17;
        for end in (0..bytes.len()).filter(|end| *end != whole_without_purges) {
            assert_eq!(Purges::decode(bytes.slice(..end)), None, "{end} bytes");
        }
        assert_eq!(Purges::decode([&[VERSION + 1], &bytes[1..]].concat().into()), None);
        assert_eq!(Purges::decode([&[VERSION][..], &[0; 16]].concat().into()), None);
    }

    proptest! {
        /// However many purges there are, what they are about stays purged; what is created after
        /// the last of them does not.
        #[test]
        fn no_purge_is_forgotten(
            all in prop::collection::vec("http://[ab]/[a-c]{0,3}(/[a-d]{0,6})?", 1..200),
            name in "http://[ab]/[a-c]{0,3}(/[a-d]{0,6})?",
        ) {
            let mut purges = Purges::new();
            let mut stamps = vec![purges.stamp()];
            for purged in &all {
                purges.add(prefix(purged));
                stamps.push(purges.stamp());
                purges = Purges::decode(purges.encode().into()).expect("its own bytes");
            }
            for (place, stamp) in stamps.iter().enumerate() {
                let is_purged = all[place..].iter().any(|purged| name.starts_with(purged));
                if is_purged || place == all.len() {
                    prop_assert_eq!(purges.permit(name.as_bytes(), *stamp), !is_purged);
                }
            }
            prop_assert!(purges.recent.len() <= MOST_PURGES);
        }

        #[test]
        fn no_bytes_are_too_strange(garbage in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Purges::decode(garbage.into());
        }
    }
}
