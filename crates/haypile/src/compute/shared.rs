//! State that all caches of one store share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, MutexGuard};

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
    unstored: AtomicU64,
    unread: AtomicU64,
    unrefreshed: AtomicU64,
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
            unstored: AtomicU64::new(0),
            unread: AtomicU64::new(0),
            unrefreshed: AtomicU64::new(0),
            address,
        });
        by_store.insert(address, Arc::downgrade(&computations));
        computations
    }

    /// Returns the flights of this process: a forked child does not wait for threads of its parent.
    pub(crate) fn flights(&self) -> &Arc<Flights> {
        self.flights.get()
    }

    pub(crate) fn count_unstored(&self) {
        self.unstored.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn unstored(&self) -> u64 {
        self.unstored.load(Ordering::Relaxed)
    }

    pub(crate) fn count_unread(&self) {
        self.unread.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn unread(&self) -> u64 {
        self.unread.load(Ordering::Relaxed)
    }

    pub(crate) fn count_unrefreshed(&self) {
        self.unrefreshed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn unrefreshed(&self) -> u64 {
        self.unrefreshed.load(Ordering::Relaxed)
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
    use crate::NoneStore;

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
        assert_eq!(Computations::of(&store).unread(), 0);
    }
}
