//! Properties of entries that were found.

use std::time::Duration;

use crate::pointer::Growing;
use crate::ttl::HAYPILE_TTL_NEVER;

/// Properties of an entry when it was read. Later versions append fields.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Hit {
    /// The version for haypile_cas(), if `has_version` is not zero.
    pub version: u64,
    /// The remaining life in milliseconds, rounded down; HAYPILE_TTL_NEVER if the entry never
    /// expires, or if the cache cannot tell.
    pub expires_in_ms: i64,
    /// 1 if the cache has returned a version, otherwise 0. haypile_get_versioned() also asks caches
    /// for which that is more work, such as those of several levels.
    pub has_version: u32,
    /// The level that had the entry: of "A -> B", 0 is A. A cache of one level always returns 0.
    pub level: u32,
}

impl Growing for Hit {
    const FIRST_BYTES: usize = 24;
}

impl From<engine::Hit> for Hit {
    fn from(hit: engine::Hit) -> Self {
        let milliseconds =
            |left: Duration| i64::try_from(left.as_millis()).unwrap_or(HAYPILE_TTL_NEVER);
        Self {
            version: hit.version.map_or(0, engine::Version::raw),
            expires_in_ms: hit.expires_in.map_or(HAYPILE_TTL_NEVER, milliseconds),
            has_version: hit.version.is_some().into(),
            level: hit.level.into(),
        }
    }
}
