//! TTLs as C passes them.

use std::time::Duration;

use engine::Ttl;

use crate::call::Failure;

/// For a TTL: what the cache's URL says with `ttl=`; where it says nothing, the entry never
/// expires.
pub const HAYPILE_TTL_OF_CACHE: i64 = -1;

/// For a TTL: the entry never expires. It may still be evicted.
pub const HAYPILE_TTL_NEVER: i64 = -2;

/// The engine's TTL, which refuses zero with a text of its own.
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
