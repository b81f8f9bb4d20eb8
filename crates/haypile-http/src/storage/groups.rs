//! Purges of groups of responses.
//!
//! Each group has a record of its own, with the numbers of the last purges of it; a response has the
//! number of the last purge of all before its request was sent. A purge of its group with a higher
//! number is about it: also about one that was on its way then, and that names its groups only when
//! it comes. A purge first takes the next number, from the record of all purges, and then writes it
//! into that of the group.
//!
//! A store that has evicted the record of a group has forgotten whether it was purged, so that none of
//! its responses counts any more. Whoever stores the next one begins the record again: first as one
//! under which nothing counts, and then, unless somebody has changed it since, with the number of the
//! last purge of all that it finds after that. So a purge that was evicted in between is not missed.
//!
//! ```text
//! version (1 byte) | epoch (8) | marks of all origins | for each origin that has others: hash (8) | marks
//! marks: number of the last purge (8), of the last soft purge (8)
//! ```

use std::collections::HashMap;

use bytes::Buf;
use haypile::{SetOptions, Store, Ttl};
use xxhash_rust::xxh3::xxh3_64;

use super::entry::{Entry, StoredResponse};
use super::purges::Purges;
use super::{PURGE_ATTEMPTS, next_number, replacing, versioned_purges};

/// The most groups of a response.
pub(crate) const MOST_GROUPS: usize = 256;
/// Rises with every change of the format.
const VERSION: u8 = 1;
/// The origins that a record tells apart. Beyond it, the purge of the one that had its last the
/// longest ago becomes one of all.
const MOST_ORIGINS: usize = 16;

/// A group of responses, by the hash of its name: of two with the same one, each is purged with the
/// other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Group(u64);

/// The purges of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    /// That of the record of all purges.
    epoch: u64,
    everywhere: Marks,
    /// By the hash of the origin, the latest purge last.
    by_origin: Vec<(u64, Marks)>,
}

/// The numbers of the last purges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Marks {
    hard: u64,
    soft: u64,
}

impl Group {
    /// Returns the group of a name, in the cache of one user if that is one.
    pub(crate) fn of(partition: Option<&str>, name: &str) -> Self {
        match partition {
            None => Self(xxh3_64(name.as_bytes())),
            Some(user) => Self(xxh3_64(format!("{user} {name}").as_bytes())),
        }
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
        let everywhere = Marks::of(u64::MAX, false);
        Self { epoch, everywhere, by_origin: Vec::new() }
    }

    fn is_begun(&self) -> bool {
        self.everywhere.hard == u64::MAX
    }

    /// Returns the marks that count for an origin.
    fn marks(&self, origin: &[u8]) -> Marks {
        if self.by_origin.is_empty() {
            return self.everywhere;
        }
        let hash = xxh3_64(origin);
        let own = self.by_origin.iter().find(|(other, _)| *other == hash);
        own.map_or(self.everywhere, |(_, marks)| marks.and(self.everywhere))
    }

    /// Takes note of a purge, at one origin or at all.
    fn purge(&mut self, origin: Option<&[u8]>, marks: Marks) {
        let Some(origin) = origin else {
            self.everywhere = self.everywhere.and(marks);
            return;
        };
        let hash = xxh3_64(origin);
        let place = self.by_origin.iter().position(|(other, _)| *other == hash);
        let before = place.map_or(Marks::default(), |place| self.by_origin.remove(place).1);
        self.by_origin.push((hash, before.and(marks)));
        if self.by_origin.len() > MOST_ORIGINS {
            let (_, oldest) = self.by_origin.remove(0);
            self.everywhere = self.everywhere.and(oldest);
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        let numbers = [self.epoch, self.everywhere.hard, self.everywhere.soft];
        let of_origins =
            self.by_origin.iter().flat_map(|(hash, marks)| [*hash, marks.hard, marks.soft]);
        bytes.extend(numbers.into_iter().chain(of_origins).flat_map(u64::to_le_bytes));
        bytes
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        if bytes.try_get_u8().ok()? != VERSION {
            return None;
        }
        let mut next = || bytes.try_get_u64_le().ok();
        let epoch = next()?;
        let everywhere = Marks { hard: next()?, soft: next()? };
        let mut by_origin = Vec::new();
        while let Some(hash) = next() {
            by_origin.push((hash, Marks { hard: next()?, soft: next()? }));
        }
        let is_one = bytes.is_empty() && by_origin.len() <= MOST_ORIGINS;
        is_one.then_some(Self { epoch, everywhere, by_origin })
    }
}

/// Forgets the responses of an entry whose groups were purged, and marks those that a soft purge of a
/// group has made stale; `None` if the store fails.
pub(super) fn heed(store: &dyn Store, purges: &Purges, entry: &mut Entry) -> Option<()> {
    let mut groups: Vec<Group> =
        entry.responses.iter().flat_map(|response| &response.groups).copied().collect();
    if groups.is_empty() {
        return Some(());
    }
    groups.sort_unstable_by_key(|group| group.0);
    groups.dedup();
    let marks = all_marks(store, purges, &groups, origin_of(&entry.name))?;
    entry.responses.retain_mut(|response| {
        let of_all = together(&response.groups, &marks);
        response.has_expired |= of_all.is_some_and(|marks| marks.soft > response.number);
        of_all.is_some_and(|marks| marks.hard <= response.number)
    });
    Some(())
}

/// Whether no group of a response that is on its way was purged since its request was sent.
pub(super) fn permit(
    store: &dyn Store,
    purges: &Purges,
    name: &[u8],
    number: u64,
    groups: &[Group],
) -> Option<bool> {
    // Where nothing was purged, a group may have no record yet.
    if groups.is_empty() || purges.stamp().number == number {
        return Some(true);
    }
    let marks = all_marks(store, purges, groups, origin_of(name))?;
    let of_all = together(groups, &marks);
    Some(of_all.is_some_and(|marks| marks.hard.max(marks.soft) <= number))
}

/// Returns the marks of groups for an origin; those without a record are not among them.
fn all_marks(
    store: &dyn Store,
    purges: &Purges,
    groups: &[Group],
    origin: &[u8],
) -> Option<HashMap<Group, Marks>> {
    let keys: Vec<String> = groups.iter().map(|group| group.key()).collect();
    let keys: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    let found = store.get_many(&keys).ok()?;
    let marks = |(group, found): (&Group, Option<(Vec<u8>, _)>)| {
        let record = Record::decode(&found?.0)?;
        (record.epoch == purges.stamp().epoch).then(|| (*group, record.marks(origin)))
    };
    Some(groups.iter().zip(found).filter_map(marks).collect())
}

/// Returns the marks of several groups together; `None` if one has none.
fn together(groups: &[Group], marks: &HashMap<Group, Marks>) -> Option<Marks> {
    groups.iter().try_fold(Marks::default(), |all, group| Some(all.and(*marks.get(group)?)))
}

/// Makes sure that the groups of a response have records before it is stored; returns whether it was
/// not purged with one of them. `None` if the store fails.
pub(super) fn join(store: &dyn Store, name: &[u8], response: &StoredResponse) -> Option<bool> {
    for group in &response.groups {
        let record = (0..PURGE_ATTEMPTS).find_map(|_| record_of(store, *group))?;
        if record.marks(origin_of(name)).hard > response.number {
            return Some(false);
        }
    }
    Some(true)
}

/// Returns the record of a group if it is there; otherwise takes the next step of making it, unless
/// somebody else is first.
fn record_of(store: &dyn Store, group: Group) -> Option<Record> {
    let purges = versioned_purges(store)??;
    let key = group.key();
    let mut value = Vec::new();
    let hit = store.get_versioned_into(key.as_bytes(), &mut value).ok()?;
    let found = hit.and_then(|_| Record::decode(&value));
    let found = found.filter(|record| record.epoch == purges.stamp().epoch);
    match (found, hit) {
        (Some(record), Some(hit)) if record.is_begun() => {
            // The number is of after the record was seen: a purge that is not in it is in this.
            let purges = versioned_purges(store)??;
            let everywhere = Marks::of(purges.stamp().number, false);
            let record = Record { epoch: purges.stamp().epoch, everywhere, ..record };
            write(store, &key, &record, replacing(hit.version))?;
        }
        (Some(record), _) => return Some(record),
        (None, hit) => {
            let condition = hit.map_or(SetOptions::add(), |hit| replacing(hit.version));
            write(store, &key, &Record::begun(purges.stamp().epoch), condition)?;
        }
    }
    // Whoever has written it: the next turn reads it.
    None
}

/// Purges groups, at one origin or at all; returns whether the store took note.
pub(super) fn purge(
    store: &dyn Store,
    groups: &[Group],
    origin: Option<&[u8]>,
    is_soft: bool,
) -> Option<bool> {
    let stamp = (0..PURGE_ATTEMPTS).find_map(|_| next_number(store))?;
    let marks = Marks::of(stamp.number, is_soft);
    let purge = |group: &Group| {
        (0..PURGE_ATTEMPTS).any(|_| add(store, *group, origin, stamp.epoch, marks).unwrap_or(false))
    };
    Some(groups.iter().all(purge))
}

/// Writes a purge into the record of its group; returns whether it is there then.
fn add(
    store: &dyn Store,
    group: Group,
    origin: Option<&[u8]>,
    epoch: u64,
    marks: Marks,
) -> Option<bool> {
    let key = group.key();
    let read = |value: &mut Vec<u8>| {
        let hit = store.get_versioned_into(key.as_bytes(), value).ok()?;
        let record = hit.and_then(|_| Record::decode(value));
        Some((hit, record.filter(|record| record.epoch == epoch)))
    };
    let (hit, record) = read(&mut Vec::new())?;
    let condition = hit.map_or(SetOptions::add(), |hit| replacing(hit.version));
    let mut record = record.unwrap_or(Record {
        epoch,
        everywhere: Marks::of(marks.hard.max(marks.soft), false),
        by_origin: Vec::new(),
    });
    if record.is_begun() {
        record.everywhere = Marks::of(marks.hard.max(marks.soft), false);
    }
    record.purge(origin, marks);
    write(store, &key, &record, condition)?;
    // As of the record of all purges: another process may have written over it, and a server that
    // cannot be reached takes every write.
    let (_, record) = read(&mut Vec::new())?;
    let counts = |record: Record| {
        let now = record.marks(origin.unwrap_or_default());
        now.hard >= marks.hard && now.soft >= marks.soft
    };
    Some(record.is_some_and(counts))
}

/// Writes a record if the condition holds; `None` if the store fails.
fn write(store: &dyn Store, key: &str, record: &Record, condition: SetOptions) -> Option<()> {
    let condition = condition.with_ttl(Ttl::Never);
    store.set(key.as_bytes(), &record.encode(), &condition).ok().map(drop)
}

/// Returns the part of an entry's name that is its origin's, with the user's where it is one user's.
fn origin_of(name: &[u8]) -> &[u8] {
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
            ("a user http://example.org/a", "a user http://example.org"),
            ("a/user/of it http://example.org/a", "a/user/of it http://example.org"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(origin_of(name.as_bytes()), expected.as_bytes(), "{name}");
        }
    }

    #[test]
    fn users_have_groups_of_their_own() {
        assert_ne!(Group::of(Some("a"), "g"), Group::of(None, "g"));
        assert_ne!(Group::of(Some("a"), "g"), Group::of(Some("b"), "g"));
    }

    proptest! {
        /// A purge is about its origin, and no later purge of another takes it back.
        #[test]
        fn no_purge_is_forgotten(
            all in prop::collection::vec((prop::option::of(0_u8..40), any::<bool>()), 1..100),
        ) {
            let mut record = Record { epoch: 1, everywhere: Marks::default(), by_origin: Vec::new() };
            for (place, (origin, is_soft)) in all.iter().enumerate() {
                let origin = origin.map(|number| [number]);
                let marks = Marks::of(place as u64 + 1, *is_soft);
                record.purge(origin.as_ref().map(|origin| &origin[..]), marks);
                prop_assert_eq!(Record::decode(&record.encode()), Some(record.clone()));
            }
            for origin in 0..40 {
                let last = |soft: bool| {
                    let is_about = |(other, is_soft): &(Option<u8>, bool)| {
                        *is_soft == soft && other.is_none_or(|other| other == origin)
                    };
                    all.iter().rposition(is_about).map_or(0, |place| place as u64 + 1)
                };
                let marks = record.marks(&[origin]);
                prop_assert!(marks.hard >= last(false) && marks.soft >= last(true));
                let origins: std::collections::HashSet<_> =
                    all.iter().filter_map(|(origin, _)| *origin).collect();
                if origins.len() <= MOST_ORIGINS {
                    prop_assert_eq!(marks, Marks { hard: last(false), soft: last(true) });
                }
            }
        }

        #[test]
        fn no_bytes_are_too_strange(garbage in prop::collection::vec(any::<u8>(), 0..120)) {
            if let Some(record) = Record::decode(&garbage) {
                prop_assert_eq!(record.encode(), garbage);
            }
        }
    }
}
