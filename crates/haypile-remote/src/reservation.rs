//! Writes that stay in memory until they are committed.

use haypile::{Error, Reservation, Result, SetOptions, Store, Written};

/// A reserved write to a remote store: its value is collected in memory, and sent to the server on commit.
pub(crate) struct Buffered<'a> {
    store: &'a dyn Store,
    key: Box<[u8]>,
    options: SetOptions,
    value: Vec<u8>,
}

impl<'a> Buffered<'a> {
    /// Creates a write whose buffer has room for a value of `value_bytes` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`].
    pub(crate) fn new(
        store: &'a dyn Store,
        key: &[u8],
        value_bytes: usize,
        options: SetOptions,
    ) -> Result<Self> {
        let mut value = Vec::new();
        if value.try_reserve_exact(value_bytes).is_err() {
            return Err(Error::OutOfMemory { bytes: value_bytes, store: store.describe() });
        }
        value.resize(value_bytes, 0);
        Ok(Self { store, key: key.into(), options, value })
    }
}

impl Reservation for Buffered<'_> {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.value
    }

    fn commit(self: Box<Self>) -> Result<Written> {
        self.store.set(&self.key, &self.value, &self.options)
    }
}
