//! The versions that reads have returned: each write has one, and none comes back.

use std::collections::HashMap;

use haypile::Version;

use super::key::Key;
use super::mismatch::{Checked, wrong};
use super::operation::KnownVersion;

/// The versions (for compare-and-swap) that the cache has reported for a namespace's keys, with the
/// numbers of the writes that they belong to.
#[derive(Debug, Default)]
pub(super) struct Versions {
    by_key: HashMap<Key, Vec<(Version, u64)>>,
    writes: HashMap<(Key, Version), u64>,
}

/// A version chosen for a compare-and-swap operation, with the number of the write that made it;
/// `None` if no write did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    pub(super) version: Version,
    pub(super) write: Option<u64>,
}

impl Versions {
    /// Records the version that the cache reported for a write of a key; returns an error if two
    /// writes have the same version, or if the version changed without a write.
    pub(super) fn saw(&mut self, key: Key, version: Version, write: u64) -> Checked {
        let versions = self.by_key.entry(key).or_default();
        if let Some((last, last_write)) = versions.last()
            && *last_write == write
        {
            if *last == version {
                return Ok(());
            }
            return wrong!(key, "its version went from {last:?} to {version:?} without a write");
        }
        if self.writes.insert((key, version), write).is_some() {
            return wrong!(key, "{version:?} is the version of two writes");
        }
        versions.push((version, write));
        Ok(())
    }

    /// Returns a version of a key for a compare-and-swap operation: the latest, an earlier or an
    /// invented one, as `known` says.
    pub(super) fn choose(&self, key: Key, known: KnownVersion) -> Chosen {
        let versions = self.by_key.get(&key).map_or(&[][..], Vec::as_slice);
        let chosen = match known {
            KnownVersion::Latest => versions.last(),
            KnownVersion::Earlier => versions.get(versions.len() / 2),
            KnownVersion::Invented => None,
        };
        match chosen {
            Some((version, write)) => Chosen { version: *version, write: Some(*write) },
            // No store gets to this number: the file store's have 48 bits, the others count.
            None => Chosen { version: Version::from_raw(u64::MAX - 1), write: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_of_one_write() {
        let mut versions = Versions::default();
        let version = Version::from_raw;
        assert!(versions.saw(Key(1), version(7), 1).is_ok());
        assert!(versions.saw(Key(1), version(7), 1).is_ok());
        assert!(versions.saw(Key(1), version(8), 1).is_err());
        assert!(versions.saw(Key(1), version(8), 2).is_ok());
        assert!(versions.saw(Key(1), version(7), 3).is_err());
        assert!(versions.saw(Key(2), version(7), 4).is_ok());
        assert_eq!(versions.choose(Key(1), KnownVersion::Latest).write, Some(2));
        assert_eq!(versions.choose(Key(1), KnownVersion::Invented).write, None);
    }
}
