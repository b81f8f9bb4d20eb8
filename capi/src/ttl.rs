//! TTLs as C passes them.

use std::time::Duration;

use engine::Ttl;

use crate::call::Failure;

/// A TTL that means the `ttl=` of the cache's URL; without one, the entry never expires.
pub const HAYPILE_TTL_OF_CACHE: i64 = -1;

/// A TTL that means that the entry never expires. It may still be evicted.
pub const HAYPILE_TTL_NEVER: i64 = -2;

/// Returns the engine's TTL for a number of milliseconds, or one of the special TTLs; zero is an error.
pub(crate) fn ttl_of(ttl_ms: i64) -> Result<Ttl, Failure> {
    match ttl_ms {
        HAYPILE_TTL_OF_CACHE => Ok(Ttl::Default),
        HAYPILE_TTL_NEVER => Ok(Ttl::Never),
        _ => u64::try_from(ttl_ms).map(|ms| Ttl::After(Duration::from_millis(ms))).map_err(|_| {
            Failure::Argument(format!(
                "a TTL of {ttl_ms} ms is refused: it is more than zero, HAYPILE_TTL_OF_CACHE or \
                 HAYPILE_TTL_NEVER"
            ))
        }),
    }
}
