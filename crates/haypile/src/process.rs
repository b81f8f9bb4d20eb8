//! State that belongs to one process, and that its forked children do not inherit.
//!
//! A forked child has one thread, and a copy of all memory as it was at that instant: locks that
//! other threads held stay locked in it, and operations of these threads never finish. So it starts
//! with state of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, MutexGuard};

/// A value that exists once per process: a forked child sees a new one.
#[derive(Debug)]
pub(crate) struct PerProcess<T> {
    first: ListNode<T>,
}

/// The value of one process, linked to those of its descendants down to this one.
#[derive(Debug)]
struct ListNode<T> {
    generation: u64,
    value: T,
    next: OnceLock<Box<ListNode<T>>>,
}

impl<T: Default> PerProcess<T> {
    pub(crate) fn new() -> Self {
        Self { first: ListNode::new() }
    }

    /// Returns the value that belongs to this process; the first call in a process creates it.
    pub(crate) fn get(&self) -> &T {
        let generation = generation();
        let mut node = &self.first;
        while node.generation != generation {
            node = node.next.get_or_init(|| Box::new(ListNode::new()));
        }
        &node.value
    }
}

impl<T: Default> ListNode<T> {
    fn new() -> Self {
        Self { generation: generation(), value: T::default(), next: OnceLock::new() }
    }
}

/// A map of values, such as the computations of one store, that several objects of one process
/// share by a key; each value lives while one of them holds it.
///
/// The values are in a [`BTreeMap`], whose nodes are referred to by their addresses. A `HashMap` in a static
/// refers to the middle of its table, which leak checkers report as possibly lost.
#[derive(Debug)]
pub(crate) struct SharedValues<K, V>(OnceLock<PerProcess<Mutex<WeakValues<K, V>>>>);

type WeakValues<K, V> = BTreeMap<K, Weak<V>>;

impl<K: Ord, V> SharedValues<K, V> {
    pub(crate) const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Returns the value under a key, which other objects of this process may hold as well; if none
    /// does, `create` creates it.
    pub(crate) fn get_or_create(&self, key: K, create: impl FnOnce() -> V) -> Arc<V> {
        let mut values = self.lock();
        if let Some(value) = values.get(&key).and_then(Weak::upgrade) {
            return value;
        }
        let value = Arc::new(create());
        values.insert(key, Arc::downgrade(&value));
        value
    }

    /// Removes a key and its value from the map if no object of this process holds the value any
    /// more. Each value has to call this when it is dropped.
    pub(crate) fn forget(&self, key: &K) {
        let mut values = self.lock();
        // Another caller may have created the next one already.
        if values.get(key).is_some_and(|weak| weak.strong_count() == 0) {
            values.remove(key);
        }
        if values.is_empty() {
            // Frees the last node, which `remove` keeps.
            values.clear();
        }
    }

    #[cfg(test)]
    pub(crate) fn contains(&self, key: &K) -> bool {
        self.lock().contains_key(key)
    }

    fn lock(&self) -> MutexGuard<'_, WeakValues<K, V>> {
        self.0.get_or_init(PerProcess::new).get().lock()
    }
}

#[cfg(target_os = "linux")]
pub(crate) use page::{WipedOnFork, generation};

/// Returns the fork generation of this process: a number that distinguishes it from its ancestors.
#[cfg(not(target_os = "linux"))]
pub(crate) fn generation() -> u64 {
    std::process::id().into()
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "a page that a fork sets to zero")]
mod page {
    use std::ffi::c_void;
    use std::io;
    use std::ptr::{self, NonNull};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[cfg(not(miri))]
    use rustix::mm::Advice;
    use rustix::mm::{self, MapFlags, ProtFlags};

    use crate::call::Call;

    const PAGE_BYTES: usize = 4096;

    /// Pages of memory that the kernel fills with zeros in a forked child.
    #[derive(Debug)]
    pub(crate) struct WipedOnFork<const PAGES: usize = 1>(NonNull<c_void>);

    // SAFETY: the pages belong to no thread, and are only used through atomic words.
    unsafe impl<const PAGES: usize> Send for WipedOnFork<PAGES> {}
    // SAFETY: as above.
    unsafe impl<const PAGES: usize> Sync for WipedOnFork<PAGES> {}

    impl<const PAGES: usize> WipedOnFork<PAGES> {
        const BYTES: usize = PAGES * PAGE_BYTES;
        const WORDS: usize = Self::BYTES / 8;

        pub(crate) fn new() -> io::Result<Self> {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: the kernel chooses the address.
            let start = unsafe {
                mm::mmap_anonymous(ptr::null_mut(), Self::BYTES, protection, MapFlags::PRIVATE)
                    .call("mmap")?
            };
            let pages = Self(NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?);
            // Miri knows no such advice, and no forks.
            #[cfg(not(miri))]
            // SAFETY: the pages are this mapping's.
            unsafe {
                mm::madvise(start, Self::BYTES, Advice::LinuxWipeOnFork).call(
                    "madvise(MADV_WIPEONFORK), without which a forked child would use its parent's \
                     place,",
                )?;
            }
            Ok(pages)
        }

        /// Returns a reference to one of the words of these pages, which a fork sets to zero in the
        /// child.
        #[inline]
        pub(crate) fn word(&self, number: usize) -> &AtomicU64 {
            assert!(number < Self::WORDS, "word {number} of {}", Self::WORDS);
            // SAFETY: the word lies within the pages, which live as long as `self`, and is aligned.
            unsafe { AtomicU64::from_ptr(self.0.as_ptr().cast::<u64>().add(number)) }
        }
    }

    impl<const PAGES: usize> Drop for WipedOnFork<PAGES> {
        fn drop(&mut self) {
            // SAFETY: this is the range that was mapped, and nobody borrows `self` any longer.
            let _ = unsafe { mm::munmap(self.0.as_ptr(), Self::BYTES) };
        }
    }

    /// Returns the fork generation of this process: a number that distinguishes it from its
    /// ancestors. The process id does not, because an ancestor may have had it.
    pub(crate) fn generation() -> u64 {
        static PAGE: OnceLock<Option<WipedOnFork<1>>> = OnceLock::new();
        static LATEST: AtomicU64 = AtomicU64::new(0);

        // Kernels before 4.14 have no such pages.
        let Some(page) = PAGE.get_or_init(|| WipedOnFork::new().ok()) else {
            return std::process::id().into();
        };
        let word = page.word(0);
        match word.load(Ordering::Acquire) {
            0 => {
                let next = LATEST.fetch_add(1, Ordering::Relaxed) + 1;
                let found = word.compare_exchange(0, next, Ordering::AcqRel, Ordering::Acquire);
                found.map_or_else(|found| found, |_| next)
            }
            generation => generation,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn a_process_keeps_its_value() {
        let number = PerProcess::<AtomicU64>::new();
        number.get().store(7, Ordering::Relaxed);
        assert_eq!(number.get().load(Ordering::Relaxed), 7);
        assert_eq!(generation(), generation());
    }

    #[cfg(target_os = "linux")]
    #[test]
    #[expect(unsafe_code, reason = "forks as programs in C and Python do")]
    fn a_forked_child_starts_with_its_own_and_so_does_its_child() {
        let number = PerProcess::<AtomicU64>::new();
        number.get().store(7, Ordering::Relaxed);
        // Does only what is safe in a forked child of a threaded process: atomic operations, and an
        // allocation, which glibc allows.
        let fork_and = |then: &dyn Fn() -> bool| {
            // SAFETY: the child only runs `then` and exits.
            match unsafe { libc::fork() } {
                // SAFETY: exits the child without the parent's exit handlers.
                0 => unsafe { libc::_exit(i32::from(!then())) },
                child => {
                    let mut status = 0;
                    // SAFETY: the child belongs to this process, and the status is a valid pointer.
                    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
                    status == 0
                }
            }
        };
        assert!(fork_and(&|| {
            let was_new = number.get().swap(8, Ordering::Relaxed) == 0;
            let is_new_again = fork_and(&|| number.get().load(Ordering::Relaxed) == 0);
            was_new && is_new_again && number.get().load(Ordering::Relaxed) == 8
        }));
        assert_eq!(number.get().load(Ordering::Relaxed), 7);
    }
}
