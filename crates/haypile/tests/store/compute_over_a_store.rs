//! Computing over a store that fails to read, or whose value lands between two lookups.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use haypile::{
    Cache, Cursor, Durability, Error, Hit, Limits, Page, Registry, Reservation, Result, SetOptions,
    Stats, Store, Ttl, Written,
};

type Hook = Box<dyn FnMut() -> Result<()> + Send>;

/// A store that runs a hook after each read, and cannot tell whether it contains a key.
struct Hooked {
    inner: Arc<dyn Store>,
    after_get: Mutex<Hook>,
}

fn hooked(hook: impl FnMut() -> Result<()> + Send + 'static) -> Arc<Hooked> {
    let inner = Registry::new().open("memory:").unwrap();
    Arc::new(Hooked { inner, after_get: Mutex::new(Box::new(hook)) })
}

impl fmt::Debug for Hooked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooked")
    }
}

impl Store for Hooked {
    fn url(&self) -> haypile::url::CacheUrl {
        self.inner.url()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn get_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        let hit = self.inner.get_into(key, buffer)?;
        // The hook is removed while it runs, because it may read as well.
        let mut hook = std::mem::replace(&mut *self.after_get.lock().unwrap(), Box::new(|| Ok(())));
        hook()?;
        *self.after_get.lock().unwrap() = hook;
        Ok(hit)
    }

    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
        self.inner.set(key, value, options)
    }

    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> Result<Box<dyn Reservation + '_>> {
        self.inner.reserve(key, value_bytes, options)
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        self.inner.delete(key)
    }

    fn touch(&self, key: &[u8], ttl: Ttl) -> Result<bool> {
        self.inner.touch(key, ttl)
    }

    fn incr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.inner.incr(key, delta)
    }

    fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.inner.decr(key, delta)
    }

    fn contains(&self, _key: &[u8]) -> Result<bool> {
        Err(Error::Unsupported { operation: "contains", store: self.describe() })
    }

    fn clear(&self) -> Result<()> {
        self.inner.clear()
    }

    fn keys(&self, from: Cursor, limit: usize) -> Result<Page> {
        self.inner.keys(from, limit)
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn bytes(&self) -> Result<u64> {
        self.inner.bytes()
    }

    fn stats(&self) -> Result<Stats> {
        self.inner.stats()
    }

    fn flush(&self, durability: Durability) -> Result<()> {
        self.inner.flush(durability)
    }

    fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

#[test]
fn a_store_that_cannot_be_read_is_a_miss_that_is_counted() {
    let failing = hooked(|| {
        let (operation, store) = ("get", "remote://".to_owned());
        Err(Error::Backend { operation, store, source: "connection refused".into() })
    });
    let cache = Cache::new(failing);
    assert_eq!(cache.get_or_compute("key", None, || b"value".to_vec()).unwrap(), b"value");
    let stats = cache.clone().compute_stats();
    assert_eq!((stats.failed_reads, stats.refused_values), (1, 0));
    assert_eq!(cache.stats().unwrap().failed_reads, 1);
    let warnings = cache.warnings().join(" ");
    assert!(warnings.contains("1 reads before computations failed"), "{warnings}");
    assert!(warnings.contains("connection refused"), "{warnings}");
}

#[test]
fn a_store_that_cannot_tell_what_it_contains_is_looked_at_once() {
    let looks = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&looks);
    let cache = Cache::new(hooked(move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }));
    assert_eq!(cache.get_or_compute("key", None, || b"value".to_vec()).unwrap(), b"value");
    assert_eq!(looks.load(Ordering::Relaxed), 1);
    assert_eq!(cache.store().stats().unwrap().misses, 1);
}

#[test]
fn a_value_that_landed_after_the_look_is_found_by_another() {
    let store = hooked(|| Ok(()));
    let cache = Cache::new(store.clone());
    let other = cache.clone();
    *store.after_get.lock().unwrap() =
        Box::new(move || other.get_or_compute("key", None, || b"landed".to_vec()).map(drop));
    let value = cache.get_or_compute("key", None, || panic!("computed once more"));
    assert_eq!(value.unwrap(), b"landed");
}
