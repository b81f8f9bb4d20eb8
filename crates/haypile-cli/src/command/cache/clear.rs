//! `haypile clear`

use crate::args::cache::Clear;
use crate::cache::OpenCache;

/// Executes `haypile clear`: deletes every entry of a cache.
pub(crate) fn run(arguments: &Clear) -> anyhow::Result<()> {
    let cache = OpenCache::open(&arguments.cache)?;
    cache.store().clear()?;
    cache.end(true)
}
