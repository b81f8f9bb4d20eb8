//! Reservations: writes to a file that wait for their bytes.

use crate::error::Result;
use crate::file::store::FileStore;
use crate::write::{Reservation, SetOptions, Written};

/// A write whose value is collected in private memory until it is committed: memory of the cache
/// file cannot be lent to a program, because other processes write to it.
pub(in crate::file) struct FileReservation<'a> {
    store: &'a FileStore,
    key: Box<[u8]>,
    options: SetOptions,
    buffer: Vec<u8>,
}

impl<'a> FileReservation<'a> {
    pub(in crate::file) fn new(
        store: &'a FileStore,
        key: &[u8],
        options: SetOptions,
        buffer: Vec<u8>,
    ) -> Self {
        Self { store, key: key.into(), options, buffer }
    }
}

impl Reservation for FileReservation<'_> {
    fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    fn commit(self: Box<Self>) -> Result<Written> {
        self.store.write(&self.key, &self.buffer, &self.options, &[])
    }
}
