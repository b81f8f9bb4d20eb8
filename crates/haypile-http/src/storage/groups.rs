//! Purges of groups of responses.
//!
//! Each group has a record of its own, with the numbers of the last purges of it; a response has the
//! number of the last purge of all before its request was sent. A purge of its group with a higher
//! number is about it: also about one that was on its way then, and that names its groups only when
//! it comes. A purge first takes the next number, from the record of all purges, and then writes it
//! into that of the group.
//!
//! A name makes two groups of a response, one for operators and one for its origin, so that no origin
//! purges the responses of another. A third one has all responses of the origin that are in groups, for
//! invalidations of more groups than are told apart.
//!
//! A store that has evicted the record of a group has forgotten whether it was purged, so that none of
//! its responses counts any more. Whoever stores the next one begins the record again: first as one
//! under which nothing counts, and then, unless somebody has changed it since, with the number of the
//! last purge of all that it finds after that. So a purge that was evicted in between is not missed.
//!
//! ```text
//! version (1 byte) | epoch (8) | number of the last purge (8), of the last soft purge (8)
//! ```

use std::collections::HashMap;

use bytes::Buf;
use haypile::{SetOptions, Store, Ttl};
use xxhash_rust::xxh3::Xxh3;

use super::entry::{Entry, StoredResponse};
use super::ledger::{PURGE_ATTEMPTS, certain_purges, next_number, read_purges};
use super::purges::{Purges, Stamp};
use super::unchanged;

/// The largest number of purge groups that a response may name, and that one invalidation can distinguish.
pub(crate) const MOST_GROUPS: usize = 256;
/// The largest number of purge groups that are stored with a response: two for each name, and the one for all of its
/// origin.
pub(super) const MOST_STORED_GROUPS: usize = 2 * MOST_GROUPS + 1;
/// Rises with every change of the format.
const VERSION: u8 = 1;

/// A group of responses that can be purged together, as a hash: groups with the same hash are purged together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Group(u64);

/// The purges of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Record {
    /// The epoch of the record of all purges.
    epoch: u64,
    marks: Marks,
}

/// The numbers of the last purges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Marks {
    hard: u64,
    soft: u64,
}

impl Group {
    /// Returns the purge group with a name in a scope, which is one origin or all origins.
    pub(crate) fn of(scope: &[u8], name: &str) -> Self {
        let mut hash = Xxh3::new();
        hash.update(&(scope.len() as u64).to_le_bytes());
        hash.update(scope);
        hash.update(name.as_bytes());
        Self(hash.digest())
    }

    pub(super) fn of_hash(hash: u64) -> Self {
        Self(hash)
    }

    pub(super) fn hash(self) -> u64 {
        self.0
    }

    fn key(self) -> String {
        format!("http-group/{:016x}", self.0)
    }
}

impl Marks {
    fn of(number: u64, is_soft: bool) -> Self {
        if is_soft { Self { hard: 0, soft: number } } else { Self { hard: number, soft: 0 } }
    }

    /// Returns the marks of what both are about.
    fn and(self, other: Self) -> Self {
        Self { hard: self.hard.max(other.hard), soft: self.soft.max(other.soft) }
    }
}

impl Record {
    /// Returns one under which no response counts.
    fn begun(epoch: u64) -> Self {
        Self { epoch, marks: Marks::of(u64::MAX, false) }
    }

    fn is_begun(self) -> bool {
        self.marks.hard == u64::MAX
    }

    /// Whether responses may count by it, under the record of all purges of this epoch.
    fn counts_in(self, epoch: u64) -> bool {
        self.epoch == epoch && !self.is_begun()
    }

    fn encode(self) -> Vec<u8> {
        let numbers = [self.epoch, self.marks.hard, self.marks.soft];
        [VERSION].into_iter().chain(numbers.into_iter().flat_map(u64::to_le_bytes)).collect()
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        if bytes.try_get_u8().ok()? != VERSION {
            return None;
        }
        let mut next = || bytes.try_get_u64_le().ok();
        let record = Self { epoch: next()?, marks: Marks { hard: next()?, soft: next()? } };
        bytes.is_empty().then_some(record)
    }
}

/// Removes the responses of an entry whose purge groups were purged, and marks those that a soft purge made stale;
/// `None` if the store fails to answer.
pub(super) fn heed(store: &dyn Store, purges: &Purges, entry: &mut Entry) -> Option<()> {
    let mut groups: Vec<Group> =
        entry.responses.iter().flat_map(|response| &response.groups).copied().collect();
    if groups.is_empty() {
        return Some(());
    }
    groups.sort_unstable_by_key(|group| group.0);
    groups.dedup();
    let marks = all_marks(store, purges.stamp(), &groups)?;
    entry.responses.retain_mut(|response| {
        let of_all = together(&response.groups, &marks);
        response.has_expired |= of_all.is_some_and(|marks| marks.soft > response.number);
        of_all.is_some_and(|marks| marks.hard <= response.number)
    });
    Some(())
}

/// Whether none of a response's purge groups was purged since its request was sent; `None` if the store fails to
/// answer.
pub(super) fn permit(store: &dyn Store, now: Stamp, number: u64, groups: &[Group]) -> Option<bool> {
    // Where nothing was purged, a group may have no record yet.
    if groups.is_empty() || now.number == number {
        return Some(true);
    }
    let of_all = together(groups, &all_marks(store, now, groups)?);
    Some(of_all.is_some_and(|marks| marks.hard.max(marks.soft) <= number))
}

/// Returns the marks of groups; those without a record, or with one that is only begun, are not among
/// them.
fn all_marks(store: &dyn Store, now: Stamp, groups: &[Group]) -> Option<HashMap<Group, Marks>> {
    let keys: Vec<String> = groups.iter().map(|group| group.key()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    let found = store.get_many(&keys).ok()?;
    let marks = |(group, found): (&Group, Option<(Vec<u8>, _)>)| {
        let record = Record::decode(&found?.0)?;
        record.counts_in(now.epoch).then_some((*group, record.marks))
    };
    Some(groups.iter().zip(found).filter_map(marks).collect())
}

/// Returns the marks of several groups together; `None` if one has none.
fn together(groups: &[Group], marks: &HashMap<Group, Marks>) -> Option<Marks> {
    groups.iter().try_fold(Marks::default(), |all, group| Some(all.and(*marks.get(group)?)))
}

/// Ensures that the store has a record of each of a response's purge groups before the response is stored. Returns
/// whether none of them was purged since its request was sent; `None` if the store fails.
pub(super) fn join(store: &dyn Store, response: &StoredResponse) -> Option<bool> {
    let known = all_marks(store, read_purges(store)??.stamp(), &response.groups)?;
    for group in &response.groups {
        let marks = match known.get(group) {
            Some(marks) => *marks,
            None => (0..PURGE_ATTEMPTS).find_map(|_| marks_of(store, *group))?,
        };
        if marks.hard > response.number {
            return Some(false);
        }
    }
    Some(true)
}

/// Returns the marks of a group that has a record. Of one that has none, it writes the next of the two
/// records that make one, unless another process does, and returns `None`: the next call finds it. `None`
/// as well if the store fails.
fn marks_of(store: &dyn Store, group: Group) -> Option<Marks> {
    let epoch = read_purges(store)??.stamp().epoch;
    let key = group.key();
    let (record, condition) = read(store, &key, epoch)?;
    let next = match record {
        Some(record) if !record.is_begun() => return Some(record.marks),
        Some(_) => {
            // The number is of after the record was seen: a purge that is not in it is in this.
            let now = certain_purges(store)?.stamp();
            Record { epoch: now.epoch, marks: Marks::of(now.number, false) }
        }
        None => Record::begun(epoch),
    };
    write(store, &key, next, condition)?;
    None
}

/// Purges all responses in these groups: `Some(true)` if the store recorded the purge of every group, `Some(false)` if not
/// of all, and `None` if the purge could not begin.
pub(super) fn purge(store: &dyn Store, groups: &[Group], is_soft: bool) -> Option<bool> {
    let stamp = (0..PURGE_ATTEMPTS).find_map(|_| next_number(store))?;
    let purge = |group: &Group| {
        (0..PURGE_ATTEMPTS).any(|_| add(store, *group, stamp, is_soft).unwrap_or(false))
    };
    // Each counts for itself, also if another fails.
    let number = groups.iter().filter(|group| purge(group)).count();
    Some(number == groups.len())
}

/// Writes a purge into the record of its group; returns whether it is there then.
fn add(store: &dyn Store, group: Group, stamp: Stamp, is_soft: bool) -> Option<bool> {
    let key = group.key();
    let marks = Marks::of(stamp.number, is_soft);
    let (record, condition) = read(store, &key, stamp.epoch)?;
    let before = match record {
        Some(record) if !record.is_begun() => record.marks,
        // What is stored in it does not count, and what is on its way must not.
        _ => Marks::of(stamp.number, false),
    };
    write(store, &key, Record { epoch: stamp.epoch, marks: before.and(marks) }, condition)?;
    // As of the record of all purges: another process may have written over it, and a server that
    // cannot be reached takes every write.
    let (record, _) = read(store, &key, stamp.epoch)?;
    Some(record.is_some_and(|record| record.marks.and(marks) == record.marks))
}

/// Returns the record under a key, if there is one of this epoch, and the condition under which nobody
/// has changed it since; `None` if the store fails.
fn read(store: &dyn Store, key: &str, epoch: u64) -> Option<(Option<Record>, SetOptions)> {
    let mut value = Vec::new();
    let hit = store.get_versioned_into(key.as_bytes(), &mut value).ok()?;
    let record = hit.and_then(|_| Record::decode(&value)).filter(|record| record.epoch == epoch);
    Some((record, unchanged(hit)))
}

/// Writes a record, unless the condition does not hold: the caller reads it again to know. `None` if the
/// store fails.
fn write(store: &dyn Store, key: &str, record: Record, condition: SetOptions) -> Option<()> {
    let condition = condition.with_ttl(Ttl::Never);
    store.set(key.as_bytes(), &record.encode(), &condition).ok().map(drop)
}

/// Returns the part of an entry's name that identifies its origin, with the user if the cache is
/// private.
pub(crate) fn origin_of(name: &[u8]) -> &[u8] {
    // The third slash of the target, which has no space, begins its path.
    let target = name.iter().rposition(|byte| *byte == b' ').map_or(0, |space| space + 1);
    let mut slashes = (target..name.len()).filter(|place| name[*place] == b'/');
    slashes.nth(2).map_or(name, |end| &name[..end])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn origins_of_names() {
        for (name, expected) in [
            ("http://example.org/a?b=http://c/d", "http://example.org"),
            ("https://example.org:8443/", "https://example.org:8443"),
            ("6 a user http://example.org/a", "6 a user http://example.org"),
            ("9 a/user/of it http://example.org/a", "9 a/user/of it http://example.org"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(origin_of(name.as_bytes()), expected.as_bytes(), "{name}");
        }
    }

    #[test]
    fn what_is_put_together_of_other_parts_is_another_group() {
        let groups = [("", "ab"), ("a", "b"), ("ab", ""), ("b", "a")];
        for (place, one) in groups.iter().enumerate() {
            for other in &groups[..place] {
                let of = |(scope, name): &(&str, &str)| Group::of(scope.as_bytes(), name);
                assert_ne!(of(one), of(other), "{one:?} {other:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(garbage in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(record) = Record::decode(&garbage) {
                prop_assert_eq!(record.encode(), garbage);
            }
        }

        #[test]
        fn records_come_back(epoch in any::<u64>(), hard in any::<u64>(), soft in any::<u64>()) {
            let record = Record { epoch, marks: Marks { hard, soft } };
            prop_assert_eq!(Record::decode(&record.encode()), Some(record));
        }
    }
}
