//! The state of computations, which all caches of one store share.

use std::sync::Arc;

use super::counters::ComputeCounters;
use crate::flight::Flights;
use crate::process::{PerProcess, SharedValues};
use crate::store::Store;

/// Computations by the address of their store.
///
/// Only caches hold computations, and each drops them before it drops its store. So while an entry
/// is alive, nothing else has that address.
static BY_STORE: SharedValues<usize, Computations> = SharedValues::new();

/// The computations of keys' values that are in progress for all caches on one store, and the
/// counts of failures around them.
#[derive(Debug)]
pub(crate) struct Computations {
    flights: PerProcess<Arc<Flights>>,
    counters: ComputeCounters,
    address: usize,
}

impl Computations {
    /// Returns the computations of keys' values that are in progress for any cache on `store`; all
    /// these caches share them, so that each value is computed once.
    pub(crate) fn of(store: &Arc<dyn Store>) -> Arc<Self> {
        let address = Arc::as_ptr(store).addr();
        BY_STORE.get_or_create(address, || Self {
            flights: PerProcess::new(),
            counters: ComputeCounters::default(),
            address,
        })
    }

    /// Returns the computations of keys' values (flights) that this process has in progress, which
    /// its threads wait for; a forked child starts without any.
    pub(crate) fn flights(&self) -> &Arc<Flights> {
        self.flights.get()
    }

    pub(crate) fn counters(&self) -> &ComputeCounters {
        &self.counters
    }
}

impl Drop for Computations {
    fn drop(&mut self) {
        BY_STORE.forget(&self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ComputeStats, NoneStore};

    #[test]
    fn they_are_shared_as_long_as_they_are_there() {
        let store: Arc<dyn Store> = Arc::new(NoneStore::new());
        let other: Arc<dyn Store> = Arc::new(NoneStore::new());
        let address = Arc::as_ptr(&store).addr();
        let computations = Computations::of(&store);
        assert!(Arc::ptr_eq(&computations, &Computations::of(&Arc::clone(&store))));
        assert!(!Arc::ptr_eq(&computations, &Computations::of(&other)));
        assert!(BY_STORE.contains(&address));
        drop(computations);
        assert!(!BY_STORE.contains(&address));
        assert_eq!(Computations::of(&store).counters().stats(), ComputeStats::default());
    }
}
