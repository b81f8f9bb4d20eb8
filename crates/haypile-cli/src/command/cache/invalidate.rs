//! `haypile invalidate`

use crate::args::cache::Invalidate;
use crate::cache::OpenCache;

/// Executes `haypile invalidate`: makes all entries of groups misses.
pub(crate) fn run(arguments: &Invalidate) -> anyhow::Result<()> {
    let cache = OpenCache::open(&arguments.cache)?;
    for group in &arguments.groups {
        cache.store().invalidate(group.as_encoded_bytes())?;
    }
    cache.end(true)
}
