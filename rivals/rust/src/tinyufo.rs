//! `TinyUfo`, the cache of pingora's `pingora-memory-cache`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ahash::RandomState;
use tinyufo::TinyUfo as Cache;

use crate::options::Options;
use crate::shared::SharedCache;

/// Units of weight that an entry of mean size has at least. The largest weight is 64 times that.
const UNITS_OF_MEAN: u64 = 1_000;

/// `TinyUFO`, which keeps hashes of keys, and no keys. As `pingora-memory-cache` does, ours hashes the key's bytes and
/// hands over the hash, which it hashes again: its own keys would have to be owned, and so allocated for each look-up.
/// Values are behind an `Arc`: `get` clones them, and so does an eviction.
pub(crate) struct TinyUfo {
    cache: Cache<u64, Arc<[u8]>>,
    hasher: RandomState,
    /// Number of bytes that one unit of weight stands for.
    unit_bytes: u64,
    /// Number of sets of entries that are heavier than the largest weight.
    too_heavy: AtomicU64,
}

impl TinyUfo {
    pub(crate) fn new(options: &Options) -> Result<Self, String> {
        let mean_bytes = options.capacity_bytes / options.entries as u64;
        let unit_bytes = (mean_bytes / UNITS_OF_MEAN).max(1);
        let units = usize::try_from(options.capacity_bytes / unit_bytes)
            .map_err(|_| format!("TinyUFO cannot hold {} bytes", options.capacity_bytes))?;
        let cache = if options.value("mode") == Some("compact") {
            Cache::new_compact(units, options.entries)
        } else {
            Cache::new(units, options.entries)
        };
        Ok(Self { cache, hasher: RandomState::new(), unit_bytes, too_heavy: AtomicU64::new(0) })
    }
}

impl SharedCache for TinyUfo {
    type Scratch = ();

    fn get(&self, (): &mut (), key: &[u8], found: impl FnOnce(&[u8])) -> bool {
        self.cache.get(&self.hasher.hash_one(key)).map(|value| found(&value)).is_some()
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        let hash = self.hasher.hash_one(key);
        let units = ((key.len() + value.len()) as u64).div_ceil(self.unit_bytes).max(1);
        if let Ok(weight) = u16::try_from(units) {
            self.cache.put(hash, value.into(), weight);
        } else {
            self.too_heavy.fetch_add(1, Relaxed);
            // An earlier value would be a wrong answer.
            self.cache.remove(&hash);
        }
    }

    fn delete(&self, (): &mut (), key: &[u8]) {
        self.cache.remove(&self.hasher.hash_one(key));
    }

    /// It does not know.
    fn entries(&self) -> Option<u64> {
        None
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        vec![("weight_unit_bytes", self.unit_bytes), ("too_heavy", self.too_heavy.load(Relaxed))]
    }
}

#[cfg(test)]
mod tests {
    use haypile_measure::subject::Room;

    use super::*;

    fn cache(capacity_bytes: u64, entries: u64) -> TinyUfo {
        let spec = "tinyufo".parse().expect("a name");
        let options = Options::parse(&spec, &Room::new(capacity_bytes, entries), &[]);
        TinyUfo::new(&options.expect("no options")).expect("it fits")
    }

    #[test]
    fn weights_are_a_thousandth_of_the_mean() {
        for (mean_bytes, unit_bytes) in [(100, 1), (2_000, 2), (1 << 20, 1_048)] {
            assert_eq!(cache(mean_bytes * 100, 100).unit_bytes, unit_bytes);
        }
    }

    #[test]
    fn a_value_that_is_too_heavy_removes_the_earlier_one() {
        let cache = cache(1 << 20, 1 << 13);
        let is_there = |value: &[u8]| cache.get(&mut (), b"key", |found| assert_eq!(found, value));
        cache.set(b"key", b"value");
        assert!(is_there(b"value"));
        cache.set(b"key", &vec![0; 1 << 16]);
        assert!(!is_there(b""));
        assert_eq!(cache.counts(), [("weight_unit_bytes", 1), ("too_heavy", 1)]);
    }
}
