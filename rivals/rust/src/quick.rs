//! `quick_cache::sync::Cache`.

use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use crate::options::Options;
use crate::shared::{Bytes, SharedCache};

/// Bytes of key and value.
#[derive(Clone)]
struct Weight;

impl Weighter<Bytes, Arc<[u8]>> for Weight {
    fn weight(&self, key: &Bytes, value: &Arc<[u8]>) -> u64 {
        (key.len() + value.len()) as u64
    }
}

/// `quick_cache`'s cache with values behind an `Arc`, as its documentation advises: `get` clones
/// them.
pub(crate) struct Quick(Cache<Bytes, Arc<[u8]>, Weight>);

impl Quick {
    pub(crate) fn new(options: &Options) -> Result<Self, String> {
        let mut builder = OptionsBuilder::new();
        builder.weight_capacity(options.capacity_bytes);
        builder.estimated_items_capacity(options.entries);
        if let Some(shards) = options.shards() {
            builder.shards(shards);
        }
        let built = builder.build().map_err(|error| format!("quick_cache refuses: {error:?}"))?;
        let hasher = DefaultHashBuilder::default();
        Ok(Self(Cache::with_options(built, Weight, hasher, DefaultLifecycle::default())))
    }
}

impl SharedCache for Quick {
    type Scratch = ();

    fn get(&self, (): &mut (), key: &[u8], found: impl FnOnce(&[u8])) -> bool {
        self.0.get(key).map(|value| found(&value)).is_some()
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        self.0.insert(key.into(), value.into());
    }

    fn delete(&self, (): &mut (), key: &[u8]) {
        self.0.remove(key);
    }

    fn entries(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}
