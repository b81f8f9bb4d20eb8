//! Stack distances in objects or bytes.

use crate::reuse::{StackDistances, WeightedStackDistances};

/// LRU stack distances between two accesses of the same key, counted in keys or in bytes.
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

/// LRU stack distances as numbers of the distinct keys between two accesses of a key.
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

/// LRU stack distances as sums of the bytes of the distinct keys between two accesses of a key.
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
