//! Iteration over the keys of a bucket.

use crate::file::area::{Area, Key, OpError};
use crate::file::crash;
use crate::file::format::slot::Slot;
use crate::file::operations::read::{Lookup, Search};
use crate::file::platform::ground::Ground;

/// The number of times that a bucket is read while others change it.
const ATTEMPTS: u32 = 64;

/// A key as it stands in the file, and whether it has a namespace.
type Listed = (Vec<u8>, bool);

/// Returns the keys of all entries in an index bucket of the cache file that have not expired.
///
/// A record that is moved while its slot is read is not where the slot said, and its key would be missed, although it was there all the
/// time. So a bucket is read again until its slots are the same before and after. Each reading adds to the keys of those before it.
pub(in crate::file) fn keys_of<G: Ground>(
    area: &Area<G>,
    bucket: u32,
    now_ms: u64,
) -> Result<Vec<Listed>, OpError> {
    let mut keys = Vec::new();
    let mut slots = area.slots_of(bucket);
    for _ in 0..ATTEMPTS {
        if !slots.is_empty() {
            crash::point("keys.slots-read");
        }
        for slot in &slots {
            if let Some(key) = key_of(area, *slot, now_ms)?
                && !keys.contains(&key)
            {
                keys.push(key);
            }
        }
        let now = area.slots_of(bucket);
        let is_same = |(slot, now): (&Slot, &Slot)| slot.is_same(*now);
        if slots.len() == now.len() && slots.iter().zip(&now).all(is_same) {
            break;
        }
        slots = now;
    }
    Ok(keys)
}

/// Returns the key that a slot leads to, if it has an entry.
fn key_of<G: Ground>(area: &Area<G>, slot: Slot, now_ms: u64) -> Result<Option<Listed>, OpError> {
    let Some(segment) = area.segment_of(slot) else { return Ok(None) };
    let entry = area.entry(segment);
    let generation = entry.generation();
    let Some(record) = area.live_record(slot, area.epoch()) else { return Ok(None) };
    let has_namespace = record.head.has_namespace();
    let mut bytes = Vec::new();
    area.copy_key(&record, &mut bytes)?;
    if entry.generation_after() != generation {
        return Ok(None);
    }
    // Found as anybody would find it: what this slot showed may be damaged, or of the past.
    let key: Key<'_> = area.key(&bytes, has_namespace);
    let search = Lookup::new(area, &key).search(None)?;
    let is_there = matches!(search, Search::Found(seen) if seen.expires_ms > now_ms);
    Ok(is_there.then_some((bytes, has_namespace)))
}
