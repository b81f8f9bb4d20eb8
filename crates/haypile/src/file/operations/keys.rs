//! Going through the keys of a bucket.

use crate::file::area::{Area, Key, OpError};
use crate::file::operations::read::{Lookup, Search};
use crate::file::platform::ground::Ground;

/// Returns the keys of a bucket that have not expired.
pub(in crate::file) fn keys_of<G: Ground>(
    area: &Area<G>,
    bucket: u32,
    now_ms: u64,
) -> Result<Vec<(Vec<u8>, bool)>, OpError> {
    let mut keys = Vec::new();
    for slot in area.slots_of(bucket) {
        let Some(segment) = area.segment_of(slot) else {
            continue;
        };
        let entry = area.entry(segment);
        let generation = entry.generation();
        let Some(record) = area.live_record(slot, area.epoch()) else {
            continue;
        };
        let head = record.head;
        let mut bytes = Vec::new();
        area.copy_key(&record, &mut bytes)?;
        if entry.generation_after() != generation {
            continue;
        }
        // Found as anybody would find it: what this slot showed may be damaged, or of the past.
        let key: Key<'_> = area.key(&bytes, head.has_namespace());
        if let Search::Found(seen) = Lookup::new(area, &key).search(None)?
            && seen.expires_ms > now_ms
            && !keys.contains(&(bytes.clone(), head.has_namespace()))
        {
            keys.push((bytes, head.has_namespace()));
        }
    }
    Ok(keys)
}
