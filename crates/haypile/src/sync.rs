//! The locks and atomics of all state that threads share.
//!
//! Under `--cfg shuttle` they are those of the Shuttle model checker, which runs a test under many
//! interleavings of its threads; see `tests/interleavings.rs`.

#[cfg(not(shuttle))]
pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(not(shuttle))]
pub(crate) use std::sync::atomic;

/// A condition variable, on which threads wait for a notification.
#[cfg(not(shuttle))]
#[derive(Debug, Default)]
pub(crate) struct Condvar(parking_lot::Condvar);

#[cfg(not(shuttle))]
impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(parking_lot::Condvar::new())
    }

    /// Waits for a notification of this condition variable, at most until `end` if that is given; also
    /// returns whether that time has come. It can return earlier.
    pub(crate) fn wait_until<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        end: Option<std::time::Instant>,
    ) -> (MutexGuard<'a, T>, bool) {
        let has_timed_out = match end {
            None => {
                self.0.wait(&mut guard);
                false
            }
            Some(end) => self.0.wait_until(&mut guard, end).timed_out(),
        };
        (guard, has_timed_out)
    }

    #[cfg(test)]
    pub(crate) fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// Numbers that identify the threads of a process.
///
/// [`std::thread::current`] also has one, in a handle that it allocates and that the main thread never
/// frees: leak checkers report it in every program that computes a value.
#[cfg(not(shuttle))]
pub(crate) mod thread_id {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    /// A number that no other thread of this process has or had. A forked child keeps the number of the
    /// thread that forked.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct ThreadId(u64);

    /// The number of a thread that has none yet.
    const NONE: u64 = 0;

    static NEXT: AtomicU64 = AtomicU64::new(NONE + 1);

    thread_local! {
        // Without a destructor, so that destructors of other thread-local values can use it.
        static ID: Cell<u64> = const { Cell::new(NONE) };
    }

    #[inline]
    pub(crate) fn this_thread() -> ThreadId {
        if ID.get() == NONE {
            ID.set(NEXT.fetch_add(1, Relaxed));
        }
        ThreadId(ID.get())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_thread_keeps_an_id_that_no_other_thread_gets() {
            let first = this_thread();
            let other = || std::thread::spawn(this_thread).join().unwrap();
            let others = [other(), other()];
            assert_eq!(first, this_thread());
            assert_ne!(others[0], others[1]);
            assert!(!others.contains(&first));
        }
    }
}

/// A number for each thread, which spreads threads over the parts of a whole that each of them
/// writes.
#[cfg(not(shuttle))]
pub(crate) mod thread_number {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// The number of a thread that has none yet.
    const NONE: usize = usize::MAX;

    static NEXT: AtomicUsize = AtomicUsize::new(0);

    thread_local! {
        // Without a destructor, so that destructors of other thread-local values can use it.
        static NUMBER: Cell<usize> = const { Cell::new(NONE) };
    }

    /// Returns the number of this thread, which other threads can have as well.
    #[inline]
    pub(crate) fn get() -> usize {
        match NUMBER.get() {
            NONE => change(),
            number => number,
        }
    }

    /// Assigns another number to this thread, because it met a thread of the same one, and returns
    /// it.
    #[cold]
    pub(crate) fn change() -> usize {
        let number = NEXT.fetch_add(1, Relaxed) & (NONE >> 1);
        NUMBER.set(number);
        number
    }
}

/// Waits for another thread, which is about to finish, in a loop that has already polled this
/// often.
#[cfg(not(shuttle))]
pub(crate) fn wait(polls: u32) {
    use std::{hint, thread, time};

    match polls {
        0..100 => hint::spin_loop(),
        100..200 => thread::yield_now(),
        // A thread of a lower priority may never run while this one yields only.
        _ => thread::sleep(time::Duration::from_micros(50)),
    }
}

#[cfg(shuttle)]
pub(crate) use model::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::atomic;

#[cfg(shuttle)]
pub(crate) mod thread_id {
    pub(crate) use shuttle::thread::ThreadId;

    pub(crate) fn this_thread() -> ThreadId {
        shuttle::thread::current().id()
    }
}

#[cfg(shuttle)]
pub(crate) mod thread_number {
    pub(crate) fn get() -> usize {
        shuttle::current::me().into()
    }

    pub(crate) fn change() {}
}

#[cfg(shuttle)]
pub(crate) fn wait(_polls: u32) {
    shuttle::thread::yield_now();
}

/// Shuttle's locks with the methods of `parking_lot`: a panic under a lock fails the test anyway.
#[cfg(shuttle)]
mod model {
    use std::time::Instant;

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

    #[derive(Debug)]
    pub(crate) struct Condvar(sync::Condvar);

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self(sync::Condvar::new())
        }

        /// A time that has come ends the wait; one that has not does not come.
        pub(crate) fn wait_until<'a, T>(
            &self,
            guard: MutexGuard<'a, T>,
            end: Option<Instant>,
        ) -> (MutexGuard<'a, T>, bool) {
            if end.is_some_and(|end| end <= Instant::now()) {
                return (guard, true);
            }
            (self.0.wait(guard).expect("no panic under a lock"), false)
        }

        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
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

        pub(crate) fn is_locked(&self) -> bool {
            self.0.try_write().is_err()
        }

        pub(crate) fn is_locked_exclusive(&self) -> bool {
            self.0.try_read().is_err()
        }

        pub(crate) fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
            self.0.try_read().ok()
        }

        pub(crate) fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
            self.0.try_write().ok()
        }

        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect("no panic under a lock")
        }
    }
}
