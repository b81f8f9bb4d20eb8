//! A store that calls the test before and after its operations, and fails on demand.

use std::fmt;
use std::sync::{Arc, Mutex};

use haypile::{
    Cursor, Durability, Error, Hit, Limits, Page, Reservation, Result, SetOptions, Stats, Store,
    Ttl, Version, Written,
};

/// An operation that begins or has been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Before(&'static str),
    After(&'static str),
}

type Hook = Arc<dyn Fn(When) -> Result<()> + Send + Sync>;

pub(crate) struct Hooked {
    inner: Arc<dyn Store>,
    hook: Mutex<Hook>,
}

/// Returns the error of a level that is out of order.
pub(crate) fn failure() -> Error {
    let (operation, store) = ("reach it", "remote://".to_owned());
    Error::Backend { operation, store, source: "connection refused".into() }
}

impl Hooked {
    pub(crate) fn new(inner: &Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self { inner: Arc::clone(inner), hook: Mutex::new(Arc::new(|_| Ok(()))) })
    }

    pub(crate) fn hook(&self, hook: impl Fn(When) -> Result<()> + Send + Sync + 'static) {
        *self.hook.lock().unwrap() = Arc::new(hook);
    }

    /// Calls the hook once, at this moment.
    pub(crate) fn once(&self, when: When, hook: impl Fn() + Send + Sync + 'static) {
        let done = Mutex::new(false);
        self.hook(move |at| {
            // The hook may get here again.
            if at == when && !std::mem::replace(&mut *done.lock().unwrap(), true) {
                hook();
            }
            Ok(())
        });
    }

    /// Fails all operations from here on, or none.
    pub(crate) fn fails(&self, fails: bool) {
        self.hook(move |_| if fails { Err(failure()) } else { Ok(()) });
    }

    fn perform<T>(
        &self,
        operation: &'static str,
        perform: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let hook = Arc::clone(&self.hook.lock().unwrap());
        hook(When::Before(operation))?;
        let result = perform()?;
        hook(When::After(operation))?;
        Ok(result)
    }
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
        self.perform("get", || self.inner.get_into(key, buffer))
    }

    fn get_versioned_into(&self, key: &[u8], buffer: &mut Vec<u8>) -> Result<Option<Hit>> {
        self.perform("get", || self.inner.get_versioned_into(key, buffer))
    }

    fn set(&self, key: &[u8], value: &[u8], options: &SetOptions) -> Result<Written> {
        self.perform("set", || self.inner.set(key, value, options))
    }

    fn reserve(
        &self,
        key: &[u8],
        value_bytes: usize,
        options: &SetOptions,
    ) -> Result<Box<dyn Reservation + '_>> {
        self.perform("reserve", || self.inner.reserve(key, value_bytes, options))
    }

    fn delete(&self, key: &[u8]) -> Result<bool> {
        self.perform("delete", || self.inner.delete(key))
    }

    fn delete_version(&self, key: &[u8], version: Version) -> Result<bool> {
        self.perform("delete_version", || self.inner.delete_version(key, version))
    }

    fn compare_and_delete(&self, key: &[u8], expected: &[u8]) -> Result<bool> {
        self.perform("compare_and_delete", || self.inner.compare_and_delete(key, expected))
    }

    fn touch(&self, key: &[u8], ttl: Ttl) -> Result<bool> {
        self.perform("touch", || self.inner.touch(key, ttl))
    }

    fn incr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.perform("incr", || self.inner.incr(key, delta))
    }

    fn decr(&self, key: &[u8], delta: u64) -> Result<Option<u64>> {
        self.perform("decr", || self.inner.decr(key, delta))
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        self.perform("contains", || self.inner.contains(key))
    }

    fn clear(&self) -> Result<()> {
        self.perform("clear", || self.inner.clear())
    }

    fn keys(&self, from: Cursor, limit: usize) -> Result<Page> {
        self.perform("keys", || self.inner.keys(from, limit))
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
