//! The schedule of periodic work, which operations do in passing.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::file::process::threads;

/// The number of counts; threads are spread over them.
const COUNTS: usize = 16;
/// The number of operations of which one has the work.
const PERIOD: u64 = 4096;

/// Counts operations, each thread for itself: a count of all would be a line that every operation
/// writes.
#[derive(Debug, Default)]
pub(in crate::file) struct Schedule([Count; COUNTS]);

/// On a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Count(AtomicU64);

impl Schedule {
    /// Counts an operation; returns whether it has the work.
    #[inline]
    pub(in crate::file) fn is_time(&self) -> bool {
        let Count(count) = &self.0[threads::number() % COUNTS];
        // Two threads may count as one. None passes the end of a period without seeing it.
        let before = count.load(Ordering::Relaxed);
        count.store(before.wrapping_add(1), Ordering::Relaxed);
        before % PERIOD == PERIOD - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_operation_of_a_period_has_the_work() {
        let schedule = Schedule::default();
        let timely = (0..3 * PERIOD).filter(|_| schedule.is_time()).count();
        assert_eq!(timely, 3);
    }
}
