//! One user of a store of the engine.

use std::convert::Infallible;
use std::time::Duration;

use haypile::{Cache, ComputeError, Error, SetOptions, Store};

use super::super::Worker;
use super::super::error::Cause;

/// The life of an entry that is to expire.
const SHORT: Duration = Duration::from_secs(1);

pub(super) struct StoreWorker<'a> {
    pub(super) store: &'a dyn Store,
    /// The cache around the store, which lets one caller compute a value for all others (single
    /// flight).
    pub(super) cache: &'a Cache,
    pub(super) options: SetOptions,
}

impl Worker for StoreWorker<'_> {
    fn get_into(&mut self, key: &[u8], buffer: &mut Vec<u8>) -> Result<bool, Cause> {
        Ok(self.store.get_into(key, buffer)?.is_some())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        match self.store.set(key, value, &self.options) {
            // Others leave out without a word what is too large for them; here that is not a
            // failure.
            Ok(_) | Err(Error::ValueTooLarge { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn set_expiring(&mut self, key: &[u8], value: &[u8]) -> Result<(), Cause> {
        let _ = self.store.set(key, value, &self.options.with_ttl(Some(SHORT)))?;
        Ok(())
    }

    fn compute(
        &mut self,
        key: &[u8],
        buffer: &mut Vec<u8>,
        compute: &mut dyn FnMut(&mut Vec<u8>),
    ) -> Result<(), Cause> {
        let computed = self.cache.get_or_try_compute(key, None, || {
            let mut value = Vec::new();
            compute(&mut value);
            Ok::<_, Infallible>(value)
        });
        match computed {
            Ok(value) => *buffer = value,
            Err(ComputeError::Cache(error)) => return Err(error.into()),
            Err(error) => return Err(error.to_string().into()),
        }
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool, Cause> {
        Ok(self.store.delete(key)?)
    }

    fn get_many(
        &mut self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), Cause> {
        for (position, value) in self.store.get_many(keys)?.iter().enumerate() {
            found(position, value.as_ref().map(|(value, _)| value.as_slice()));
        }
        Ok(())
    }
}
