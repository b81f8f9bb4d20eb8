//! Caches that any number of threads may use at once.

/// A key or a value as a cache owns it, where it hands out references or guards.
pub(crate) type Bytes = Box<[u8]>;

/// What a rival has to offer to be measured.
///
/// Keys and values are bytes. Who finds a value copies it out, as for every subject.
pub(crate) trait SharedCache: Send + Sync {
    /// What a thread keeps between its calls.
    type Scratch: Default + Send;

    /// Shows the value of `key` to `found`, or says that there is none.
    fn get(&self, scratch: &mut Self::Scratch, key: &[u8], found: impl FnOnce(&[u8])) -> bool;

    /// Stores a copy of `value` under a copy of `key`.
    fn set(&self, key: &[u8], value: &[u8]);

    /// Removes `key`.
    fn delete(&self, scratch: &mut Self::Scratch, key: &[u8]);

    /// How many entries there are, once the cache has done what it puts off.
    fn entries(&self) -> u64;
}
