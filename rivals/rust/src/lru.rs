//! `lru::LruCache` behind one mutex, as programs share it between threads.

use std::num::NonZeroUsize;

use lru::LruCache;
use parking_lot::Mutex;

use crate::options::Options;
use crate::shared::{Bytes, SharedCache};

/// An LRU cache that counts entries: its bound is the number of entries of mean size that fill the
/// bytes asked for. Values are copied out under the lock, which costs less than an `Arc` that would
/// be cloned there.
pub(crate) struct LockedLru(Mutex<LruCache<Bytes, Bytes>>);

impl LockedLru {
    pub(crate) fn new(options: &Options) -> Self {
        let entries = NonZeroUsize::new(options.entries).unwrap_or(NonZeroUsize::MIN);
        Self(Mutex::new(LruCache::new(entries)))
    }
}

impl SharedCache for LockedLru {
    type Scratch = ();

    fn get(&self, (): &mut (), key: &[u8], found: impl FnOnce(&[u8])) -> bool {
        self.0.lock().get(key).map(|value| found(value)).is_some()
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        let (key, value) = (key.into(), value.into());
        // What is replaced or evicted is freed after the lock.
        let gone = self.0.lock().push(key, value);
        drop(gone);
    }

    fn delete(&self, (): &mut (), key: &[u8]) {
        let gone = self.0.lock().pop_entry(key);
        drop(gone);
    }

    fn entries(&self) -> Option<u64> {
        Some(self.0.lock().len() as u64)
    }
}
