//! The record of purges in a store: reading it, and changing it while other processes do.

use bytes::Bytes;
use haypile::{SetOptions, Store, Ttl, Written};

use super::purges::{Purges, Stamp};
use super::unchanged;

/// The key of the record of purges.
const PURGES_KEY: &[u8] = b"http-purges";
/// The number of attempts to write the record of purges, if other processes write it first each time.
pub(super) const PURGE_ATTEMPTS: u32 = 16;

/// Reads the record of purges from the store; the outer `None` means that the store failed, the inner one that there is
/// no record.
#[expect(clippy::option_option, reason = "a failure, and nothing there")]
pub(super) fn read_purges(store: &dyn Store) -> Option<Option<Purges>> {
    let mut value = Vec::new();
    let hit = store.get_into(PURGES_KEY, &mut value).ok()?;
    Some(hit.and_then(|_| Purges::decode(value.into())))
}

/// Writes the record of purges; returns whether the condition held.
fn write_purges(store: &dyn Store, purges: &Purges, condition: SetOptions) -> Option<bool> {
    // Whatever the cache's own TTL is: all entries go with this one.
    let condition = condition.with_ttl(Ttl::Never);
    store.set(PURGES_KEY, &purges.encode(), &condition).ok().map(Written::is_stored)
}

/// Rewrites the record of purges unchanged, so that the store does not evict it, if that is due and no other process
/// writes it.
pub(super) fn refresh_purges(store: &dyn Store, is_due: bool) {
    if !is_due {
        return;
    }
    let Some(read) = Versioned::read(store) else { return };
    // Without versions, a purge of another process at the same time would be lost.
    if let (Some(purges), true) = (&read.purges, read.has_version) {
        let _ = write_purges(store, purges, read.condition);
    }
}

/// Creates the record of purges in the store, unless another process was first. Returns the number of its last purge
/// and its epoch, for entries that are created now.
pub(super) fn begin_purges(store: &dyn Store) -> Option<Stamp> {
    for _ in 0..PURGE_ATTEMPTS {
        let read = Versioned::read(store)?;
        if let Some(purges) = read.purges {
            return Some(purges.stamp());
        }
        let _ = write_purges(store, &Purges::new(), read.condition)?;
    }
    None
}

/// Adds a purge of a URL prefix to the store's record of purges; returns whether it is recorded.
pub(super) fn add_purge(store: &dyn Store, prefix: &Bytes, is_soft: bool) -> Option<bool> {
    let mut before = Stamp::default();
    let is_written = change_purges(store, |purges| {
        before = purges.stamp();
        purges.add(prefix.clone(), is_soft);
    })?;
    if !is_written {
        return Some(false);
    }
    // Where nothing is conditional, another process may have written over it; and a server that cannot be
    // reached takes every write.
    let purges = Versioned::read(store)?.purges?;
    let is_known = if is_soft {
        purges.stamp().epoch == before.epoch && purges.has_expired(prefix, before.number)
    } else {
        !purges.permit(prefix, before)
    };
    Some(is_known)
}

/// Takes a new number for a purge that the store's record of purges does not list; `None` if the store fails, or
/// another process changes the record at the same time.
pub(super) fn next_number(store: &dyn Store) -> Option<Stamp> {
    let mut taken = Stamp::default();
    let is_written = change_purges(store, |purges| {
        purges.count();
        taken = purges.stamp();
    })?;
    // As above.
    let now = Versioned::read(store)?.purges?.stamp();
    let is_known = is_written && now.epoch == taken.epoch && now.number >= taken.number;
    is_known.then_some(taken)
}

/// Changes the record of purges; returns whether nobody else did at the same time.
fn change_purges(store: &dyn Store, change: impl FnOnce(&mut Purges)) -> Option<bool> {
    let read = Versioned::read(store)?;
    let mut purges = read.purges.unwrap_or_else(Purges::new);
    change(&mut purges);
    write_purges(store, &purges, read.condition)
}

/// Reads the record of purges from the last level of the store, which all processes share; `None` if the store fails,
/// or another process changes the record at the same time.
pub(super) fn certain_purges(store: &dyn Store) -> Option<Purges> {
    let read = Versioned::read(store)?;
    let purges = read.purges?;
    // An upper level may have another one than the last, which alone can tell: by a condition that holds.
    let is_certain =
        store.url().levels().len() == 1 || write_purges(store, &purges, read.condition)?;
    is_certain.then_some(purges)
}

/// The record of purges, and the condition under which nobody has changed it since it was read.
struct Versioned {
    purges: Option<Purges>,
    condition: SetOptions,
    /// Whether the store has versions: otherwise the condition always holds.
    has_version: bool,
}

impl Versioned {
    /// Reads it; `None` if the store fails.
    fn read(store: &dyn Store) -> Option<Self> {
        let mut value = Vec::new();
        let hit = store.get_versioned_into(PURGES_KEY, &mut value).ok()?;
        Some(Self {
            purges: hit.and_then(|_| Purges::decode(value.into())),
            condition: unchanged(hit),
            has_version: hit.is_some_and(|hit| hit.version.is_some()),
        })
    }
}
