//! Operations in progress, by thread: memory that one of them may be using is not freed.
//!
//! A thread marks that it is in an operation by plain stores to a line of its own, without a fence. The
//! one that wants to free something takes it away from those that begin, has the kernel order the
//! memory of all threads (`membarrier`), and then waits until each thread that was in an operation has
//! ended it. The marks lie in pages that a fork wipes: a child does not wait for threads of its parent.

use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use rustix::thread::{MembarrierCommand, membarrier};

use crate::file::process::threads::{self, NUMBERS};
use crate::mutant;
use crate::process::WipedOnFork;

/// The number of operations of a thread of which one has the periodic work.
const PERIOD: u64 = 4096;
const LINE_WORDS: usize = 8;
/// A line for other uses, one for each thread, and one for all threads without a number.
const PAGES: usize = ((NUMBERS + 2) * LINE_WORDS * 8).div_ceil(4096);
/// Of the line for threads without a number: those that are in an operation; above, operations.
const ACTIVE: u64 = 0xFFFF;
/// Of an operation that does not have a mark of its own: one of a thread without a number, or one within
/// another operation.
const WITHOUT_MARK: u64 = 1 << 63;

/// The memory pages in which the threads of a process mark the beginning and the end of their
/// operations on a cache file.
pub(in crate::file) type MarkPages = WipedOnFork<PAGES>;

/// The period after which an operation on a cache file does periodic work (such as checking whether
/// the file was replaced): each operation, or one of 4,096.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum LookPeriod {
    Long,
    EachOperation,
}

impl LookPeriod {
    /// Returns the mask of this period: the operations on a cache file whose numbers have none of
    /// its bits do the periodic work.
    pub(in crate::file) fn mask(self) -> u64 {
        match self {
            Self::Long => 2 * PERIOD - 1,
            Self::EachOperation => 1,
        }
    }
}

/// A guard of one operation of this thread on a cache file, which ends on drop. The open files
/// (sessions) that the operation uses stay open for as long as the guard is borrowed.
///
/// The mark of a thread is twice the number of its operations, and odd within one.
#[derive(Debug)]
pub(in crate::file) struct OperationGuard<'a> {
    mark: &'a AtomicU64,
    operation: OperationId,
}

/// The identity of an operation on a cache file within its thread: the thread's mark (a count)
/// after it began, or [`WITHOUT_MARK`] and twice its number, which is odd for a nested operation.
#[derive(Clone, Copy, Debug)]
pub(in crate::file) struct OperationId(u64);

impl<'a> OperationGuard<'a> {
    #[inline]
    pub(in crate::file) fn begin(page: &'a MarkPages) -> Self {
        let thread = threads::known_number();
        if thread >= NUMBERS {
            return Self::begin_unknown(page);
        }
        let mark = mark_of(page, thread);
        let before = mark.load(Ordering::Relaxed);
        if before % 2 == 1 {
            return Self { mark, operation: OperationId(WITHOUT_MARK | 1) };
        }
        mark.store(before | 1, Ordering::Relaxed);
        // The processor may load before it stores; `membarrier` makes up for that.
        compiler_fence(Ordering::SeqCst);
        Self { mark, operation: OperationId(before + 2) }
    }

    /// Begins an operation (such as a read or write) on a cache file, without assigning the calling
    /// thread an index in the table of operations if it has none.
    pub(in crate::file) fn begin_in_passing(page: &'a MarkPages) -> Self {
        if threads::known_number() < NUMBERS {
            return Self::begin(page);
        }
        Self::begin_numberless(page)
    }

    /// Returns the first operation of a thread, or one of a thread without a number.
    #[cold]
    fn begin_unknown(page: &'a MarkPages) -> Self {
        if threads::number() < NUMBERS {
            return Self::begin(page);
        }
        Self::begin_numberless(page)
    }

    fn begin_numberless(page: &'a MarkPages) -> Self {
        let mark = mark_of(page, NUMBERS);
        let number = mark.fetch_add(ACTIVE + 2, Ordering::SeqCst) / (ACTIVE + 1);
        Self { mark, operation: OperationId(WITHOUT_MARK + 2 * (number + 1)) }
    }

    /// Returns the identity of this operation on a cache file by value, so that it can stay in
    /// registers.
    #[inline]
    pub(in crate::file) fn operation(&self) -> OperationId {
        self.operation
    }

    #[cold]
    fn end_without_mark(&self) {
        if self.operation.0.is_multiple_of(2) {
            self.mark.fetch_sub(1, Ordering::Release);
        }
    }
}

impl OperationId {
    /// Returns whether this operation on a cache file has to do the periodic work of a period with
    /// this mask.
    #[inline]
    pub(in crate::file) fn is_due(self, mask: u64) -> bool {
        self.0 & mask == 0
    }

    /// Returns whether this operation on a cache file may have begun within another operation of
    /// the same thread.
    pub(in crate::file) fn may_be_nested(self) -> bool {
        self.0 >= WITHOUT_MARK
    }
}

impl Drop for OperationGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.operation.0 >= WITHOUT_MARK {
            return self.end_without_mark();
        }
        self.mark.store(self.operation.0, Ordering::Release);
    }
}

#[inline]
fn mark_of(page: &MarkPages, thread: usize) -> &AtomicU64 {
    page.word(LINE_WORDS * (1 + thread))
}

/// The operations of this process's threads on cache files that were in progress at one moment.
#[derive(Debug)]
pub(in crate::file) struct PendingOperations {
    /// The threads with operations in progress, and their marks.
    marks: Vec<(usize, u64)>,
    is_shared: bool,
}

impl PendingOperations {
    /// Returns the running operations of this process's threads that may have begun before the calling thread's last
    /// writes to memory; `None` if the kernel does not support the needed barrier.
    pub(in crate::file) fn of(page: &MarkPages) -> Option<Self> {
        if !order_all_threads() {
            return None;
        }
        let mark = |thread| (thread, mark_of(page, thread).load(Ordering::Acquire));
        let marks = (0..NUMBERS).map(mark).filter(|(_, mark)| mark % 2 == 1).collect();
        Some(Self { marks, is_shared: true })
    }

    /// Returns whether all of these operations on cache files, which were in progress at one
    /// moment, have ended.
    pub(in crate::file) fn are_over(&mut self, page: &MarkPages) -> bool {
        self.marks.retain(|(thread, mark)| mark_of(page, *thread).load(Ordering::Acquire) == *mark);
        self.is_shared &= mark_of(page, NUMBERS).load(Ordering::Acquire) & ACTIVE > 0;
        self.marks.is_empty() && !self.is_shared || mutant::is_on("operations-in-progress-ignored")
    }
}

/// Has the kernel put a full fence into every running thread of this process. Others had one when they
/// left their processor.
fn order_all_threads() -> bool {
    let expedited = || membarrier(MembarrierCommand::PrivateExpedited);
    let register = || membarrier(MembarrierCommand::RegisterPrivateExpedited);
    expedited().or_else(|_| register().and_then(|()| expedited())).is_ok()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn one_operation_of_a_period_has_the_work_and_none_within_it() {
        let page = MarkPages::new().expect("pages");
        let count = |often: LookPeriod| {
            let mut due = 0;
            for _ in 0..3 * PERIOD {
                let using = OperationGuard::begin(&page);
                due += u64::from(using.operation.is_due(often.mask()));
                assert!(
                    !OperationGuard::begin(&page).operation.is_due(often.mask()),
                    "it is within another"
                );
            }
            due
        };
        assert_eq!(count(LookPeriod::Long), 3);
        assert_eq!(count(LookPeriod::EachOperation), 3 * PERIOD);
    }

    #[test]
    fn only_operations_that_had_begun_are_waited_for() {
        let page = MarkPages::new().expect("pages");
        let (step, steps) = channel();
        let (next, is_next) = channel();
        std::thread::scope(|scope| {
            let page = &page;
            scope.spawn(move || {
                let await_next = || {
                    step.send(()).expect("it waits for that");
                    let _ = is_next.recv();
                };
                drop(OperationGuard::begin(page));
                let other = OperationGuard::begin(page);
                let within = OperationGuard::begin(page);
                await_next();
                drop(within);
                await_next();
                drop(other);
                let _another = OperationGuard::begin(page);
                await_next();
            });
            let await_step = || steps.recv().expect("no panic");
            await_step();
            let own = OperationGuard::begin(page);
            let mut in_progress = PendingOperations::of(page).expect("the kernel can tell");
            drop(own);
            assert!(!in_progress.are_over(page));
            next.send(()).expect("it waits for that");
            await_step();
            assert!(!in_progress.are_over(page), "only the one within it has ended");
            next.send(()).expect("it waits for that");
            await_step();
            let _own = OperationGuard::begin(page);
            assert!(in_progress.are_over(page), "the next one had not begun");
            drop(next);
        });
    }

    #[test]
    fn threads_without_a_number_are_waited_for_as_well() {
        let page = MarkPages::new().expect("pages");
        let other = OperationGuard::begin_numberless(&page);
        let mut in_progress = PendingOperations::of(&page).expect("the kernel can tell");
        assert!(!in_progress.are_over(&page));
        drop(other);
        assert!(in_progress.are_over(&page));
        let _later = OperationGuard::begin_numberless(&page);
        assert!(in_progress.are_over(&page));
        let is_due = |using: &OperationGuard<'_>| using.operation.is_due(LookPeriod::Long.mask());
        let due = (0..2 * PERIOD).filter(|_| is_due(&OperationGuard::begin_numberless(&page)));
        assert_eq!(due.count(), 2);
    }
}
