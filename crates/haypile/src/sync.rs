//! The locks and atomics of everything that threads share.
//!
//! Under `--cfg shuttle` they are those of the Shuttle model checker, which runs a test under many
//! interleavings of its threads; see `tests/interleavings.rs`.

#[cfg(not(shuttle))]
pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(not(shuttle))]
pub(crate) use std::sync::atomic;

#[cfg(shuttle)]
pub(crate) use model::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic;

/// Shuttle's locks with the methods of `parking_lot`: a panic under a lock fails the test anyway.
#[cfg(shuttle)]
mod model {
    use shuttle::sync;

    pub(crate) use sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no panic under a lock")
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct RwLock<T>(sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(sync::RwLock::new(value))
        }

        pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().expect("no panic under a lock")
        }

        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect("no panic under a lock")
        }
    }
}
