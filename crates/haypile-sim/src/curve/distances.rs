//! Stack distances in objects or bytes.

use crate::reuse::{StackDistances, WeightedStackDistances};

/// A calculator of LRU stack distances: how many distinct other keys (or how many of their bytes) were accessed between
/// two accesses of a key.
pub(super) trait Distances {
    /// Whether distances are small enough numbers to count each of them.
    const COUNTABLE: bool;

    /// Returns the distance of an access; `None` if it is the key's first.
    fn access(&mut self, id: u32, weight: u64) -> Option<u64>;
    /// Removes the key.
    fn remove(&mut self, id: u32);
    /// Returns the weight of the key, if it is there.
    fn weight(&self, id: u32) -> Option<u64>;
}

/// A calculator of LRU stack distances that counts the distinct other keys between two accesses of a key.
#[derive(Default)]
pub(super) struct Objects(StackDistances);

impl Objects {
    pub(super) fn new(keys: u32) -> Self {
        Self(StackDistances::with_keys(keys))
    }
}

impl Distances for Objects {
    const COUNTABLE: bool = true;

    #[inline]
    fn access(&mut self, id: u32, _weight: u64) -> Option<u64> {
        self.0.access(id)
    }

    fn remove(&mut self, id: u32) {
        self.0.remove(id);
    }

    fn weight(&self, _id: u32) -> Option<u64> {
        None // Unused, because objects may always be stored.
    }
}

/// A calculator of LRU stack distances that adds up the bytes of the distinct other keys between two accesses of a key.
#[derive(Default)]
pub(super) struct Bytes(WeightedStackDistances);

impl Bytes {
    pub(super) fn new(keys: u32) -> Self {
        Self(WeightedStackDistances::with_keys(keys))
    }
}

impl Distances for Bytes {
    const COUNTABLE: bool = false;

    #[inline]
    fn access(&mut self, id: u32, weight: u64) -> Option<u64> {
        self.0.access(id, weight)
    }

    fn remove(&mut self, id: u32) {
        self.0.remove(id);
    }

    fn weight(&self, id: u32) -> Option<u64> {
        self.0.weight(id)
    }
}
