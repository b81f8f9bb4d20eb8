//! Prefetching of lines that operations read, so that they wait for memory once.

use crate::file::area::Area;
use crate::file::format::slot::Slot;
use crate::file::log::ghosts::Ghosts;
use crate::file::platform::ground::Ground;

/// Prefetches the memory of the cache file that a write of the key with this hash reads first.
#[inline]
pub(in crate::file) fn prefetch_write<G: Ground>(area: &Area<G>, hash: u64) {
    let bucket = area.geometry.bucket(area.geometry.bucket_of(hash));
    area.ground.prefetch_to_write(bucket, 8);
    Ghosts::of(area).prefetch(hash);
}

/// Returns the first index slot that may belong to the key with this hash, by the bits of the hash
/// in the slot alone, and prefetches its record; `None` if there is none.
#[inline]
pub(in crate::file) fn guess<G: Ground>(area: &Area<G>, hash: u64) -> Option<Slot> {
    let bucket = area.geometry.bucket_of(hash);
    let tagged = |_, slot: Slot| slot.is_tagged(hash).then_some(slot);
    let slot = area.scan(bucket, area.link_of(bucket), tagged)?;
    area.prefetch_record(slot);
    Some(slot)
}

/// Prefetches the memory of the cache file that operations on keys with these hashes read, so that
/// all of it is loaded at the same time.
pub(in crate::file) fn prefetch_keys<G: Ground>(area: &Area<G>, hashes: &[u64]) {
    for hash in hashes {
        area.ground.prefetch(area.geometry.bucket(area.geometry.bucket_of(*hash)));
    }
    for hash in hashes {
        if let Some(segment) = guess(area, *hash).and_then(|slot| area.segment_of(slot)) {
            area.ground.prefetch(area.geometry.segment_entry(segment));
        }
    }
}
