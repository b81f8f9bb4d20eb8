//! `stretto::Cache`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use stretto::{
    Cache, CacheBuilder, CacheCallback, DefaultCoster, DefaultKeyBuilder, DefaultUpdateValidator,
    Item,
};

use crate::options::Options;
use crate::shared::{Bytes, SharedCache};

/// Counters of access for each entry that fits, as its documentation advises.
const COUNTERS_PER_ENTRY: usize = 10;

/// Counts the values that the cache was given and does not keep. With its own metrics, each read would
/// pay as well.
struct Rejected(Arc<AtomicU64>);

impl CacheCallback for Rejected {
    type Value = Bytes;

    fn on_exit(&self, _value: Option<Bytes>) {}

    fn on_reject(&self, _item: Item<Bytes>) {
        self.0.fetch_add(1, Relaxed);
    }
}

type Key = Vec<u8>;

/// stretto's cache: `get` returns a guard of the shard, so that values need no `Arc`.
pub(crate) struct Stretto {
    cache: Cache<
        Key,
        Bytes,
        DefaultKeyBuilder<Key>,
        DefaultCoster<Bytes>,
        DefaultUpdateValidator<Bytes>,
        Rejected,
    >,
    rejected: Arc<AtomicU64>,
    /// Number of sets that the cache dropped because its own thread was behind.
    dropped: AtomicU64,
}

impl Stretto {
    pub(crate) fn new(options: &Options) -> Result<Self, String> {
        let max_cost = i64::try_from(options.capacity_bytes)
            .map_err(|_| format!("stretto cannot hold {} bytes", options.capacity_bytes))?;
        let counters = options.entries.saturating_mul(COUNTERS_PER_ENTRY);
        let rejected = Arc::new(AtomicU64::new(0));
        let cache = CacheBuilder::new(counters, max_cost)
            .set_callback(Rejected(Arc::clone(&rejected)))
            .finalize()
            .map_err(|error| format!("stretto refuses: {error}"))?;
        Ok(Self { cache, rejected, dropped: AtomicU64::new(0) })
    }
}

impl SharedCache for Stretto {
    /// A key of its own type: it removes no slice.
    type Scratch = Key;

    fn get(&self, _: &mut Key, key: &[u8], found: impl FnOnce(&[u8])) -> bool {
        self.cache.get(key).map(|value| found(value.value())).is_some()
    }

    /// Waits until the value is admitted or rejected: before that, the cache holds more than its bound.
    fn set(&self, key: &[u8], value: &[u8]) {
        let cost = i64::try_from(key.len() + value.len()).unwrap_or(i64::MAX).max(1);
        if !self.cache.insert(key.to_vec(), value.into(), cost) {
            self.dropped.fetch_add(1, Relaxed);
        }
        self.cache.wait().expect("its thread runs as long as the cache");
    }

    fn delete(&self, owned: &mut Key, key: &[u8]) {
        key.clone_into(owned);
        self.cache.remove(owned);
    }

    fn entries(&self) -> Option<u64> {
        self.cache.wait().expect("its thread runs as long as the cache");
        Some(self.cache.len() as u64)
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let [rejected, dropped] =
            [&*self.rejected, &self.dropped].map(|number| number.load(Relaxed));
        vec![("sets_rejected", rejected), ("sets_dropped", dropped)]
    }
}
