//! Values whose checksums are verified.
//!
//! A file that lives for months meets disks and programs that change its bytes. A value that is not what was stored is
//! a miss here, whatever the URL of the cache says about `verify=`.

use haypile::{Cache, OwnedPinned, Result};

/// The outcome of reading a value of the icon cache and verifying its checksum: whole, missing or damaged.
pub(crate) enum Verified {
    /// The value, whose bytes are those that were stored.
    Whole(OwnedPinned),
    Missing,
    /// A value whose bytes are not those that were stored.
    Damaged,
}

/// Reads a value of the cache in place, and verifies its checksum at this process's first read.
///
/// # Errors
///
/// The cache fails.
pub(crate) fn read(cache: &Cache, key: &[u8]) -> Result<Verified> {
    if let Some(value) = cache.get_in_place_verified_owned(key)? {
        return Ok(Verified::Whole(value));
    }
    if !cache.contains(key)? {
        return Ok(Verified::Missing);
    }
    // Another process may have stored it in between.
    let again = cache.get_in_place_verified_owned(key)?;
    Ok(again.map_or(Verified::Damaged, Verified::Whole))
}
