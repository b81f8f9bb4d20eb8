//! `moka::sync::Cache`.

use std::hash::BuildHasher;
use std::sync::Arc;

use moka::sync::Cache;

use crate::options::Options;
use crate::shared::{Bytes, SharedCache};

/// moka's cache with values behind an `Arc`, as its documentation advises: `get` clones them.
pub(crate) struct Moka<S>(Cache<Bytes, Arc<[u8]>, S>);

impl<S: BuildHasher + Clone + Send + Sync + 'static> Moka<S> {
    pub(crate) fn new(options: &Options, hasher: S) -> Self {
        let weigh = |key: &Bytes, value: &Arc<[u8]>| {
            u32::try_from(key.len() + value.len()).unwrap_or(u32::MAX)
        };
        let builder = Cache::builder()
            .max_capacity(options.capacity_bytes)
            .initial_capacity(options.entries)
            .weigher(weigh);
        Self(builder.build_with_hasher(hasher))
    }
}

impl<S: BuildHasher + Clone + Send + Sync + 'static> SharedCache for Moka<S> {
    type Scratch = ();

    fn get(&self, (): &mut (), key: &[u8], found: impl FnOnce(&[u8])) -> bool {
        self.0.get(key).map(|value| found(&value)).is_some()
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        self.0.insert(key.into(), value.into());
    }

    fn delete(&self, (): &mut (), key: &[u8]) {
        self.0.invalidate(key);
    }

    fn entries(&self) -> Option<u64> {
        self.0.run_pending_tasks();
        Some(self.0.entry_count())
    }
}
