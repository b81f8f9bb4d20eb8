//! The record of purges in a store: reading it, and changing it while other processes do.

use bytes::Bytes;
use haypile::{SetOptions, Store, Ttl, Written};

use super::purges::{Purges, Stamp};
use super::replacing;

/// The key of the record of purges.
const PURGES_KEY: &[u8] = b"http-purges";
/// The number of times that a write of the record of purges is tried while others write first.
pub(super) const PURGE_ATTEMPTS: u32 = 16;

/// Reads the record of purges; `None` if the store fails, and in it `None` if there is no record.
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

/// Writes the record of purges again as it is, if that is due and nobody else writes it.
pub(super) fn refresh_purges(store: &dyn Store, is_due: bool) {
    if !is_due {
        return;
    }
    let mut value = Vec::new();
    let Ok(Some(hit)) = store.get_versioned_into(PURGES_KEY, &mut value) else { return };
    // Without versions, a purge of another process at the same time would be lost.
    if let (Some(_), Some(purges)) = (hit.version, Purges::decode(value.into())) {
        let _ = write_purges(store, &purges, replacing(hit.version));
    }
}

/// Begins the record of purges, unless another process was first, and returns the stamp of entries
/// that are created now.
pub(super) fn begin_purges(store: &dyn Store) -> Option<Stamp> {
    for _ in 0..PURGE_ATTEMPTS {
        let mut value = Vec::new();
        let hit = store.get_versioned_into(PURGES_KEY, &mut value).ok()?;
        if let Some(purges) = hit.and_then(|_| Purges::decode(value.into())) {
            return Some(purges.stamp());
        }
        let condition = hit.map_or(SetOptions::add(), |hit| replacing(hit.version));
        let _ = write_purges(store, &Purges::new(), condition)?;
    }
    None
}

/// Adds a purge to the record; returns whether nobody else did at the same time.
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
    let purges = versioned_purges(store)??;
    let is_known = if is_soft {
        purges.stamp().epoch == before.epoch && purges.has_expired(prefix, before.number)
    } else {
        !purges.permit(prefix, before)
    };
    Some(is_known)
}

/// Takes the next number of the record for a purge that it does not have; `None` if the store fails, or
/// somebody else changes it at the same time.
pub(super) fn next_number(store: &dyn Store) -> Option<Stamp> {
    let mut taken = Stamp::default();
    let is_written = change_purges(store, |purges| {
        purges.count();
        taken = purges.stamp();
    })?;
    // As above.
    let now = versioned_purges(store)??.stamp();
    let is_known = is_written && now.epoch == taken.epoch && now.number >= taken.number;
    is_known.then_some(taken)
}

/// Changes the record of purges; returns whether nobody else did at the same time.
fn change_purges(store: &dyn Store, change: impl FnOnce(&mut Purges)) -> Option<bool> {
    let mut value = Vec::new();
    let hit = store.get_versioned_into(PURGES_KEY, &mut value).ok()?;
    let condition = hit.map_or(SetOptions::add(), |hit| replacing(hit.version));
    let purges = hit.and_then(|_| Purges::decode(value.into()));
    let mut purges = purges.unwrap_or_else(Purges::new);
    change(&mut purges);
    write_purges(store, &purges, condition)
}

/// Reads the record of purges from the last level of the store.
#[expect(clippy::option_option, reason = "a failure, and nothing there")]
fn versioned_purges(store: &dyn Store) -> Option<Option<Purges>> {
    let mut value = Vec::new();
    let hit = store.get_versioned_into(PURGES_KEY, &mut value).ok()?;
    Some(hit.and_then(|_| Purges::decode(value.into())))
}

/// Reads the record of purges from the last level of the store for certain; `None` if the store fails, or
/// another process changes it at the same time.
pub(super) fn certain_purges(store: &dyn Store) -> Option<Purges> {
    let mut value = Vec::new();
    let hit = store.get_versioned_into(PURGES_KEY, &mut value).ok()??;
    let purges = Purges::decode(value.into())?;
    // An upper level may have another one than the last, which alone can tell: by a condition that holds.
    let is_certain =
        store.url().levels().len() == 1 || write_purges(store, &purges, replacing(hit.version))?;
    is_certain.then_some(purges)
}
