//! Counters, with an initial number and both directions.

use engine::{Cache, Error, Result, SetOptions, Ttl};

/// Writes and removals by others between two attempts that are tolerated.
const ATTEMPTS: usize = 1000;

/// Adds to a counter, or subtracts from it down to zero. A missing one is created where there is an
/// `initial` number, which counts first.
pub(crate) fn count(
    cache: &Cache,
    key: &[u8],
    delta: i128,
    initial: Option<i128>,
    ttl: Ttl,
) -> Result<Option<u64>> {
    // A larger step is refused before.
    let step = u64::try_from(delta.unsigned_abs()).unwrap_or(u64::MAX);
    for _ in 0..ATTEMPTS {
        let counted = if delta < 0 { cache.decr(key, step) } else { cache.incr(key, step) }?;
        let (None, Some(initial)) = (counted, initial) else { return Ok(counted) };
        let number = u64::try_from(initial.saturating_add(delta).max(0)).unwrap_or(u64::MAX);
        let options = SetOptions::add().with_ttl(ttl);
        if cache.write(key, number.to_string(), options)?.is_stored() {
            return Ok(Some(number));
        }
    }
    Err(Error::Busy { store: cache.store().describe(), process: None })
}
