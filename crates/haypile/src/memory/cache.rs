//! [`MemoryCache`], a cache whose store is always in the process.

use std::ops::Deref;

use crate::cache::Cache;
use crate::stats::Stats;

/// A [`Cache`] in the process. What only a server or a file could fail to answer needs no `?` here:
/// [`len`](Self::len), [`is_empty`](Self::is_empty) and [`stats`](Self::stats). It is a [`Cache`] everywhere else, by
/// dereference or by [`into`](Into::into).
///
/// ```
/// use haypile::memory::MemoryBuilder;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cache = MemoryBuilder::new(16 << 20).open()?;
/// cache.set("user:7", "Ada")?;
/// assert_eq!((cache.len(), cache.stats().hits), (1, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MemoryCache(Cache);

impl MemoryCache {
    pub(super) fn new(cache: Cache) -> Self {
        Self(cache)
    }

    /// Returns the number of entries; zero after [`close`](Cache::close). It may include entries that have expired but
    /// are not removed yet.
    pub fn len(&self) -> u64 {
        self.0.len().unwrap_or(0)
    }

    /// Whether [`len`](Self::len) is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the counts since the cache was opened, even if it has been closed, and those of computations.
    pub fn stats(&self) -> Stats {
        self.0.stats().unwrap_or_default()
    }
}

impl Deref for MemoryCache {
    type Target = Cache;

    fn deref(&self) -> &Cache {
        &self.0
    }
}

impl From<MemoryCache> for Cache {
    fn from(cache: MemoryCache) -> Self {
        cache.0
    }
}
