//! `mini_moka::sync::Cache`.

use std::hash::BuildHasher;
use std::sync::Arc;

use mini_moka::sync::{Cache, ConcurrentCacheExt};

use crate::options::Options;
use crate::shared::SharedCache;

/// mini-moka's cache with values behind an `Arc`, as its documentation advises: `get` clones them.
pub(crate) struct MiniMoka<S>(Cache<Vec<u8>, Arc<[u8]>, S>);

impl<S: BuildHasher + Clone + Send + Sync + 'static> MiniMoka<S> {
    pub(crate) fn new(options: &Options, hasher: S) -> Self {
        let weigh = |key: &Vec<u8>, value: &Arc<[u8]>| {
            u32::try_from(key.len() + value.len()).unwrap_or(u32::MAX)
        };
        let builder = Cache::builder()
            .max_capacity(options.capacity_bytes)
            .initial_capacity(options.entries)
            .weigher(weigh);
        Self(builder.build_with_hasher(hasher))
    }
}

impl<S: BuildHasher + Clone + Send + Sync + 'static> SharedCache for MiniMoka<S> {
    /// A key of its own type: it cannot look up a slice. Copying the bytes into a vector that stays
    /// is the cheapest there is.
    type Scratch = Vec<u8>;

    fn get(&self, owned: &mut Vec<u8>, key: &[u8], found: impl FnOnce(&[u8])) -> bool {
        key.clone_into(owned);
        self.0.get(owned).map(|value| found(&value)).is_some()
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        self.0.insert(key.into(), value.into());
    }

    fn delete(&self, owned: &mut Vec<u8>, key: &[u8]) {
        key.clone_into(owned);
        self.0.invalidate(owned);
    }

    fn entries(&self) -> Option<u64> {
        self.0.sync();
        Some(self.0.entry_count())
    }
}
