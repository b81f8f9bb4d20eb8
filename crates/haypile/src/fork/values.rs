//! Values in shared memory that a child of a fork goes on reading.
//!
//! A value that is read in place in a file stays as it is as long as its guard holds it. The guard is the parent's: when
//! the parent lets go, the bytes change under a child that still reads them. So the parent copies the pages of such
//! values before a fork, and the child puts the copies in their place.

#![expect(unsafe_code, reason = "pages of memory are copied and moved")]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;

use parking_lot::Mutex;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap_anonymous, mremap_fixed, munmap};

use crate::mutant;
use crate::process::PerProcess;

static VALUES: OnceLock<PerProcess<Mutex<Values>>> = OnceLock::new();

/// Copies that wait for their fork. Only the thread that forks uses it.
static COPIES: Mutex<Vec<PagesCopy>> = Mutex::new(Vec::new());

#[derive(Debug, Default)]
struct Values {
    /// The addresses of the values' bytes, by the values' numbers.
    by_number: BTreeMap<u64, Range<usize>>,
    next: u64,
}

/// A guard of a value in shared memory whose pages are copied for the child at each fork, until the
/// guard is dropped.
#[derive(Debug)]
pub(crate) struct Kept(u64);

/// Pages, and the place that they are a copy of.
struct PagesCopy {
    pages: *mut c_void,
    of: Range<usize>,
}

// SAFETY: the pages belong to it alone.
unsafe impl Send for PagesCopy {}

fn values() -> &'static Mutex<Values> {
    VALUES.get_or_init(PerProcess::new).get()
}

impl Kept {
    /// Registers a value in shared memory, of which each child process gets a copy of its own at a fork, so that
    /// nothing that a child does changes the parent's.
    pub(crate) fn new(value: &[u8]) -> Self {
        let mut values = values().lock();
        let number = values.next;
        values.next += 1;
        let start = value.as_ptr().addr();
        values.by_number.insert(number, start..start + value.len());
        Self(number)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if !mutant::is_on("values-are-copied-when-they-are-gone") {
            // A child has none of its parent's.
            values().lock().by_number.remove(&self.0);
        }
    }
}

/// Copies the memory pages of all values registered for forked children, in the parent before a
/// fork.
pub(super) fn copy_all() {
    // Another thread that holds a lock here is not behind the gate, and so this does not wait for it.
    let Some(ranges) = VALUES.get().and_then(|values| values.get().try_lock().map(|it| it.pages()))
    else {
        return;
    };
    if ranges.is_empty() || mutant::is_on("child-reads-values-of-its-parent") {
        return;
    }
    if let Some(mut copies) = COPIES.try_lock() {
        copies.extend(ranges.into_iter().filter_map(PagesCopy::new));
    }
}

/// Frees the copied memory pages of values registered for forked children, in the parent after a
/// fork.
pub(super) fn drop_copies() {
    if let Some(mut copies) = COPIES.try_lock() {
        for copy in copies.drain(..) {
            copy.free();
        }
    }
}

/// Maps the copied memory pages of registered values in place of the originals, in the child after
/// a fork. It allocates and frees no memory.
pub(super) fn use_copies() {
    if let Some(mut copies) = COPIES.try_lock() {
        while let Some(copy) = copies.pop() {
            copy.put_in_place();
        }
    }
}

impl Values {
    /// Returns the pages that hold values, as ranges of addresses that do not meet.
    fn pages(&self) -> Vec<Range<usize>> {
        let page = rustix::param::page_size();
        let around =
            |value: &Range<usize>| value.start / page * page..value.end.next_multiple_of(page);
        let mut pages: Vec<_> = self.by_number.values().map(around).collect();
        pages.sort_by_key(|pages| pages.start);
        let mut apart: Vec<Range<usize>> = Vec::new();
        for pages in pages {
            match apart.last_mut() {
                Some(last) if pages.start <= last.end => last.end = last.end.max(pages.end),
                _ => apart.push(pages),
            }
        }
        apart
    }
}

impl PagesCopy {
    /// Copies pages. Returns `None` if there is no memory for them: the child then reads what its parent reads.
    fn new(of: Range<usize>) -> Option<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses where the new pages lie.
        let pages =
            unsafe { mmap_anonymous(ptr::null_mut(), of.len(), protection, MapFlags::PRIVATE) };
        let pages = pages.ok()?;
        // SAFETY: the source is mapped, since values in it are held. Other processes may write next to those: what is
        // copied of that is not used.
        unsafe {
            ptr::with_exposed_provenance::<u8>(of.start)
                .copy_to_nonoverlapping(pages.cast(), of.len());
        }
        Some(Self { pages, of })
    }

    fn free(self) {
        // SAFETY: they are its own.
        let _ = unsafe { munmap(self.pages, self.of.len()) };
    }

    fn put_in_place(self) {
        let bytes = self.of.len();
        let target = ptr::with_exposed_provenance_mut(self.of.start);
        // SAFETY: the pages of the shared memory there are this process's to replace. It reads values in them, which
        // are the same in the copy, and uses nothing else of what its parent had mapped.
        let moved = unsafe { mremap_fixed(self.pages, bytes, bytes, MremapFlags::MAYMOVE, target) };
        debug_assert!(moved.is_ok(), "the target is mapped");
    }
}
