//! [`MemoryCache`], a cache whose store is always in the process.

use std::ops::Deref;

use crate::cache::Cache;
use crate::stats::Stats;

/// A [`Cache`] in the memory of this process. Methods that can fail only for a server or a file
/// return their values without a `Result` here: [`len`](Self::len), [`is_empty`](Self::is_empty)
/// and [`stats`](Self::stats). It is a [`Cache`] everywhere else, by dereference or by
/// [`into`](Into::into).
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

    /// Returns the number of entries in the cache; zero after [`close`](Cache::close). It may include entries that
    /// have expired but are not removed yet.
    pub fn len(&self) -> u64 {
        self.0.len().unwrap_or(0)
    }

    /// Whether the cache has no entries, expired ones included.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the counts of reads, writes and computations since the cache was opened, even after
    /// it was closed.
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
