//! Choosing the entries to remove.

use haypile::{Cache, Result};

use super::entry::{Entry, Use};
use super::{ENTRY, USE};

/// A rule for which pictures are removed from the cache first: the oldest, the least often used or the least recently
/// used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemoveStrategy {
    /// The entries that were stored first.
    Oldest,
    /// The entries that were found the fewest times.
    LeastOftenUsed,
    /// The entries that were found the longest ago.
    #[default]
    LeastRecentlyUsed,
}

/// A stored picture with its size and times, which decide when it is removed.
pub(super) struct Listed {
    key: String,
    pub(super) bytes: u64,
    stored_ns: i64,
    used: Use,
}

/// Returns all pictures of a cache, with their sizes and times, which decide when they are removed.
pub(super) fn entries(cache: &Cache) -> Result<Vec<Listed>> {
    let mut entries = Vec::new();
    for name in cache.keys() {
        let name = name?;
        let Some((&ENTRY, key)) = name.split_first() else { continue };
        let Some(key) = std::str::from_utf8(key).ok() else { continue };
        let Some(value) = cache.get_pinned(&name)? else { continue };
        let Some(stored_ns) = Entry::stored_ns(&value) else { continue };
        let used = cache.get(super::named(USE, key))?;
        entries.push(Listed {
            key: key.to_owned(),
            bytes: value.len() as u64,
            stored_ns,
            used: used.and_then(|bytes| Use::decode(&bytes)).unwrap_or_default(),
        });
    }
    Ok(entries)
}

/// Returns the keys of the pictures to remove, so that the remaining ones have at most this number
/// of bytes.
pub(super) fn victims(
    cache: &Cache,
    strategy: RemoveStrategy,
    size_bytes: u64,
) -> Result<Vec<String>> {
    let mut entries = entries(cache)?;
    entries.sort_by_key(|entry| match strategy {
        RemoveStrategy::Oldest => (entry.stored_ns, 0),
        RemoveStrategy::LeastOftenUsed => {
            (i64::try_from(entry.used.times).unwrap_or(i64::MAX), entry.used.last_ns)
        }
        RemoveStrategy::LeastRecentlyUsed => (entry.used.last_ns, entry.stored_ns),
    });
    let mut left: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let mut victims = Vec::new();
    for entry in entries {
        if left <= size_bytes {
            break;
        }
        left -= entry.bytes;
        victims.push(entry.key);
    }
    Ok(victims)
}
