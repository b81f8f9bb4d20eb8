//! foyer's cache in memory: the crate `foyer-memory`, which `foyer` exports as `foyer::Cache`.

use foyer_memory::{Cache, CacheBuilder, CacheProperties, EvictionConfig};

use crate::options::Options;
use crate::shared::{Bytes, SharedCache};

/// foyer's cache: `get` returns a guard of the entry, so that values need no `Arc` of their own.
pub(crate) struct Foyer(Cache<Bytes, Bytes>);

impl Foyer {
    pub(crate) fn new(
        options: &Options,
        eviction: impl Into<EvictionConfig>,
    ) -> Result<Self, String> {
        let capacity = usize::try_from(options.capacity_bytes)
            .map_err(|_| format!("foyer cannot hold {} bytes", options.capacity_bytes))?;
        let mut builder = CacheBuilder::new(capacity)
            .with_eviction_config(eviction)
            .with_weighter(|key: &Bytes, value: &Bytes| key.len() + value.len());
        if let Some(shards) = options.shards() {
            builder = builder.with_shards(shards);
        }
        Ok(Self(builder.build::<CacheProperties>()))
    }
}

impl SharedCache for Foyer {
    type Scratch = ();

    fn get(&self, (): &mut (), key: &[u8], found: impl FnOnce(&[u8])) -> bool {
        self.0.get(key).map(|entry| found(entry.value())).is_some()
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        self.0.insert(key.into(), value.into());
    }

    fn delete(&self, (): &mut (), key: &[u8]) {
        self.0.remove(key);
    }

    fn entries(&self) -> Option<u64> {
        Some(self.0.entries() as u64)
    }
}
