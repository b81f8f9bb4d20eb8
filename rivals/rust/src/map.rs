//! `std::collections::HashMap`: no lock, no bound, one thread. Not a cache, but the lower limit of
//! what a cache costs.

use std::collections::HashMap;
use std::hash::BuildHasher;

use crate::options::Options;
use crate::shared::Bytes;

/// A map of bytes to bytes.
pub(crate) struct PlainMap<S>(HashMap<Bytes, Bytes, S>);

impl<S: BuildHasher> PlainMap<S> {
    pub(crate) fn new(options: &Options, hasher: S) -> Self {
        Self(HashMap::with_capacity_and_hasher(options.entries, hasher))
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.0.get(key).map(AsRef::as_ref)
    }

    pub(crate) fn set(&mut self, key: &[u8], value: &[u8]) {
        self.0.insert(key.into(), value.into());
    }

    pub(crate) fn delete(&mut self, key: &[u8]) -> bool {
        self.0.remove(key).is_some()
    }

    pub(crate) fn entries(&self) -> u64 {
        self.0.len() as u64
    }
}
