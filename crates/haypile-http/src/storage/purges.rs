//! Purges of all targets whose names begin alike, and the numbers of all purges.
//!
//! One record of each store has the latest purges, numbered. Each entry has the number of the last
//! purge before it was created (its [`Stamp`]): a purge with a higher number that names its begin has
//! purged it. So a purge costs one write however many entries it is about, and each request one read
//! of this record. A soft purge makes responses stale: those whose request was sent before it.
//!
//! The record begins with a random number. A store that has evicted it has forgotten what was
//! purged, so that none of its entries counts any more: the next record begins with another.
//!
//! ```text
//! version (1 byte) | epoch (8) | number of the last (8) | purges
//! purge: number (8) | 1 if it is soft, or 0 (1) | length (4) | the begin of the names
//! ```

use bytes::{Buf, Bytes};

/// Rises with every change of the format.
const VERSION: u8 = 2;
/// The purges that are kept. Beyond it, the two that have most in common become one.
const MOST_PURGES: usize = 48;
/// The length in bytes of the longest URL prefix that can be purged, so that all purges fit into
/// one value.
pub(crate) const LONGEST_PREFIX: usize = 1024;

/// The state of the store's record of purges (epoch and number of the last purge) when an entry was created, by which
/// later purges are recognized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The random number (epoch) of the store's record of purges, which a new record changes; zero if there was no
    /// record.
    pub(crate) epoch: u64,
    /// The number of the last purge before the entry was created.
    pub(crate) number: u64,
}

/// The record of the latest purges of stored responses in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Purges {
    last: Stamp,
    recent: Vec<Purge>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Purge {
    number: u64,
    is_soft: bool,
    prefix: Bytes,
}

impl Purges {
    /// Creates a record without purges, with a new epoch.
    pub(super) fn new() -> Self {
        let epoch = rand::random_range(1..=u64::MAX);
        Self { last: Stamp { epoch, number: 0 }, recent: Vec::new() }
    }

    /// Returns the state of the record (its epoch and the number of the last purge), for entries that are created now.
    pub(super) fn stamp(&self) -> Stamp {
        self.last
    }

    /// Whether no purge in the record has removed an entry, given the entry's name and the state of the record when it
    /// was created.
    pub(super) fn permit(&self, name: &[u8], stamp: Stamp) -> bool {
        stamp.epoch == self.last.epoch && !self.names(name, stamp.number, false)
    }

    /// Whether a soft purge has made a response stale, given the name of its entry and the number
    /// of the last purge before its request was sent.
    pub(super) fn has_expired(&self, name: &[u8], number: u64) -> bool {
        self.names(name, number, true)
    }

    /// Whether a purge after this number is about a name.
    fn names(&self, name: &[u8], number: u64, is_soft: bool) -> bool {
        let is_about = |purge: &Purge| {
            purge.number > number && purge.is_soft == is_soft && name.starts_with(&purge.prefix)
        };
        self.recent.iter().any(is_about)
    }

    /// Adds a purge of all entries whose names (URLs) begin with a prefix.
    pub(super) fn add(&mut self, prefix: Bytes, is_soft: bool) {
        let number = self.count();
        // What it contains needs no line of its own, unless that forgets what this one makes stale.
        self.recent
            .retain(|purge| !purge.prefix.starts_with(&prefix) || (is_soft && !purge.is_soft));
        self.recent.push(Purge { number, is_soft, prefix });
        if self.recent.len() > MOST_PURGES {
            self.merge();
        }
    }

    /// Returns a new number for a purge that the record does not list, such as the purge of a group.
    pub(super) fn count(&mut self) -> u64 {
        self.last.number += 1;
        self.last.number
    }

    /// Makes one of the two purges of a kind that have most in common. It purges more than they did,
    /// and never less.
    fn merge(&mut self) {
        self.recent.sort_unstable_by(|one, other| {
            (one.is_soft, &one.prefix).cmp(&(other.is_soft, &other.prefix))
        });
        let in_common = |(place, pair): (usize, &[Purge])| {
            let both = pair[0].prefix.iter().zip(&pair[1].prefix);
            let length = both.take_while(|(one, other)| one == other).count();
            (pair[0].is_soft == pair[1].is_soft).then_some((place, length))
        };
        let pairs = self.recent.windows(2).enumerate().filter_map(in_common);
        let Some((place, length)) = pairs.max_by_key(|(_, length)| *length) else { return };
        let removed = self.recent.remove(place + 1);
        let kept = &mut self.recent[place];
        kept.prefix.truncate(length);
        kept.number = kept.number.max(removed.number);
    }

    /// Encodes the record of purges as bytes for the store.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        for number in [self.last.epoch, self.last.number] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for Purge { number, is_soft, prefix } in &self.recent {
            let length = u32::try_from(prefix.len()).expect("at most LONGEST_PREFIX");
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.push((*is_soft).into());
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(prefix);
        }
        bytes
    }

    /// Decodes a record of purges from bytes of the store; `None` if they are invalid.
    pub(super) fn decode(mut bytes: Bytes) -> Option<Self> {
        if bytes.try_get_u8().ok()? != VERSION {
            return None;
        }
        let (epoch, number) = (bytes.try_get_u64_le().ok()?, bytes.try_get_u64_le().ok()?);
        let mut recent = Vec::new();
        while !bytes.is_empty() {
            let number = bytes.try_get_u64_le().ok()?;
            let is_soft = match bytes.try_get_u8().ok()? {
                0 => false,
                1 => true,
                _ => return None,
            };
            let length = usize::try_from(bytes.try_get_u32_le().ok()?).ok()?;
            if length > LONGEST_PREFIX.min(bytes.len()) || recent.len() == MOST_PURGES {
                return None;
            }
            recent.push(Purge { number, is_soft, prefix: bytes.split_to(length) });
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
        purges.add(prefix("http://a/x"), false);
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
    fn a_soft_purge_makes_stale_what_was_asked_for_before_it() {
        let mut purges = Purges::new();
        let before = purges.stamp();
        purges.add(prefix("http://a/x"), true);
        let after = purges.stamp();
        for (name, number, expected) in [
            ("http://a/x/1", before.number, true),
            ("http://a/y", before.number, false),
            ("http://a/x/1", after.number, false),
        ] {
            assert_eq!(purges.has_expired(name.as_bytes(), number), expected, "{name} {number}");
            assert!(purges.permit(name.as_bytes(), before), "{name}");
        }
        // What is gone is not brought back by what would be stale.
        let mut purges = Purges::new();
        let before = purges.stamp();
        purges.add(prefix("http://a/x/1"), false);
        purges.add(prefix("http://a/"), true);
        assert!(!purges.permit(b"http://a/x/1", before));
        assert!(purges.permit(b"http://a/y", before));
    }

    #[test]
    fn another_record_permits_nothing_of_the_last() {
        let stamp = Purges::new().stamp();
        assert!(!Purges::new().permit(b"http://a/", stamp));
    }

    #[test]
    fn bytes_that_are_none() {
        let mut purges = Purges::new();
        purges.add(prefix("http://a/"), true);
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
            all in prop::collection::vec(
                ("http://[ab]/[a-c]{0,3}(/[a-d]{0,6})?", any::<bool>()),
                1..200,
            ),
            name in "http://[ab]/[a-c]{0,3}(/[a-d]{0,6})?",
        ) {
            let mut purges = Purges::new();
            let mut stamps = vec![purges.stamp()];
            for (purged, is_soft) in &all {
                purges.add(prefix(purged), *is_soft);
                stamps.push(purges.stamp());
                purges = Purges::decode(purges.encode().into()).expect("its own bytes");
            }
            for (place, stamp) in stamps.iter().enumerate() {
                let is_named = |soft: bool| {
                    let mut later = all[place..].iter();
                    later.any(|(purged, is_soft)| *is_soft == soft && name.starts_with(purged))
                };
                let is_gone = !purges.permit(name.as_bytes(), *stamp);
                if is_named(false) || place == all.len() {
                    prop_assert_eq!(is_gone, is_named(false));
                }
                let is_stale = purges.has_expired(name.as_bytes(), stamp.number);
                if (is_named(true) && !is_gone) || place == all.len() {
                    prop_assert_eq!(is_stale, is_named(true));
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
