//! Caches that any number of threads may use at once.

/// A key or a value as a cache owns it, where it hands out references or guards.
pub(crate) type Bytes = Box<[u8]>;

/// Operations that a rival has to offer to be measured.
///
/// Keys and values are bytes. The runner copies a value that it finds, as for every subject.
pub(crate) trait SharedCache: Send + Sync {
    /// State that a thread keeps between its calls.
    type Scratch: Default + Send;

    /// Passes the value of `key` to `found`; returns whether there is one.
    fn get(&self, scratch: &mut Self::Scratch, key: &[u8], found: impl FnOnce(&[u8])) -> bool;

    /// Stores a copy of `value` under a copy of `key`.
    fn set(&self, key: &[u8], value: &[u8]);

    /// Removes `key`.
    fn delete(&self, scratch: &mut Self::Scratch, key: &[u8]);

    /// Returns the number of entries, after the cache has done its deferred work; nothing if it does
    /// not know.
    fn entries(&self) -> Option<u64>;

    /// Returns numbers for the row of results.
    fn counts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
