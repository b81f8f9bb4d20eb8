//! State that all caches of one store share.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, MutexGuard};

use super::counters::ComputeCounters;
use crate::flight::Flights;
use crate::process::PerProcess;
use crate::store::Store;

/// Computations by the address of their store.
///
/// Only caches hold computations, and each drops them before it drops its store. So while an entry
/// is alive, nothing else has that address.
static BY_STORE: OnceLock<PerProcess<Mutex<ByStore>>> = OnceLock::new();

type ByStore = HashMap<usize, Weak<Computations>>;

fn by_store() -> MutexGuard<'static, ByStore> {
    BY_STORE.get_or_init(PerProcess::new).get().lock()
}

/// The computations that the caches of one store share.
#[derive(Debug)]
pub(crate) struct Computations {
    flights: PerProcess<Arc<Flights>>,
    counters: ComputeCounters,
    address: usize,
}

impl Computations {
    /// Returns those of `store`.
    pub(crate) fn of(store: &Arc<dyn Store>) -> Arc<Self> {
        let address = Arc::as_ptr(store).addr();
        let mut by_store = by_store();
        if let Some(computations) = by_store.get(&address).and_then(Weak::upgrade) {
            return computations;
        }
        let computations = Arc::new(Self {
            flights: PerProcess::new(),
            counters: ComputeCounters::default(),
            address,
        });
        by_store.insert(address, Arc::downgrade(&computations));
        computations
    }

    /// Returns the flights of this process: a forked child does not wait for threads of its parent.
    pub(crate) fn flights(&self) -> &Arc<Flights> {
        self.flights.get()
    }

    pub(crate) fn counters(&self) -> &ComputeCounters {
        &self.counters
    }
}

impl Drop for Computations {
    fn drop(&mut self) {
        let mut by_store = by_store();
        // Another cache of the same store may have inserted new ones already.
        if by_store.get(&self.address).is_some_and(|weak| weak.strong_count() == 0) {
            by_store.remove(&self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ComputeStats, NoneStore};

    fn is_known(address: usize) -> bool {
        by_store().contains_key(&address)
    }

    #[test]
    fn they_are_shared_as_long_as_they_are_there() {
        let store: Arc<dyn Store> = Arc::new(NoneStore::new());
        let other: Arc<dyn Store> = Arc::new(NoneStore::new());
        let address = Arc::as_ptr(&store).addr();
        let computations = Computations::of(&store);
        assert!(Arc::ptr_eq(&computations, &Computations::of(&Arc::clone(&store))));
        assert!(!Arc::ptr_eq(&computations, &Computations::of(&other)));
        assert!(is_known(address));
        drop(computations);
        assert!(!is_known(address));
        assert_eq!(Computations::of(&store).counters().stats(), ComputeStats::default());
    }
}
