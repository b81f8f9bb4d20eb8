//! `haypile delete`

use std::process::ExitCode;

use crate::NEGATIVE;
use crate::args::cache::Delete;
use crate::cache::OpenCache;

/// Executes `haypile delete`: deletes entries by key.
pub(crate) fn run(arguments: &Delete) -> anyhow::Result<ExitCode> {
    let keys = arguments.keys.iter().map(|key| arguments.form.read(key));
    let keys = keys.collect::<anyhow::Result<Vec<_>>>()?;
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let cache = OpenCache::open(&arguments.cache)?;
    let deleted = cache.store().delete_many(&keys);
    let any = deleted.iter().any(|deleted| matches!(deleted, Ok(true)));
    cache.end(any)?;
    // The keys after a failed one have been deleted too.
    deleted.into_iter().collect::<haypile::Result<Vec<bool>>>()?;
    Ok(if any { ExitCode::SUCCESS } else { ExitCode::from(NEGATIVE) })
}
