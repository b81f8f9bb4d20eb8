//! Preparation of a cache of icons that is full.

use haypile::Cache;

/// The part of the file that is filled: more, and the store would make room among the icons.
const FILLED_PERCENT: u64 = 90;
/// Other values: pictures of 32 by 32 pixels, as long as those between which icons lie.
const OTHER_BYTES: usize = 4096;

/// Rewrites all values of an icon cache, with other values between them, until the file is full and
/// the icons' values lie as far apart as possible.
///
/// # Errors
///
/// The cache fails, or has no limit.
pub(super) fn scatter(url: &str) -> anyhow::Result<()> {
    let cache = Cache::open(url)?;
    let capacity_bytes = cache.stats()?.capacity_bytes.unwrap_or(0);
    let keys = cache.keys().collect::<haypile::Result<Vec<_>>>()?;
    let others = capacity_bytes * FILLED_PERCENT / 100 / OTHER_BYTES as u64;
    let mut filled = 0;
    for (number, key) in (1..).zip(&keys) {
        if let Some(value) = cache.get(key)? {
            cache.set(key, value)?;
        }
        while filled < others * number / keys.len() as u64 {
            cache.set(filled.to_le_bytes(), vec![filled.to_le_bytes()[0]; OTHER_BYTES])?;
            filled += 1;
        }
    }
    Ok(())
}
