//! Rewriting the record of purges, so that no level evicts it.
//!
//! Every request reads the record, so that a store keeps it. A lower level does not see these reads:
//! the upper one answers them. It would evict the record, and with it all stored responses would be
//! forgotten by the next process.

use std::sync::atomic::{AtomicU64, Ordering};

/// The record is written again at least once for this many bytes of responses.
const MOST_BYTES: u64 = 16 << 20;
/// And at least this many times while a store is filled once.
const TIMES: u64 = 8;

/// A counter of the bytes written to the store since the record of purges was last rewritten.
#[derive(Debug)]
pub(super) struct Refresh {
    after_bytes: u64,
    written_bytes: AtomicU64,
}

impl Refresh {
    /// Creates a counter of the bytes written to a store of this capacity (`None` if unknown), by which the record of
    /// purges is rewritten.
    pub(super) fn new(capacity_bytes: Option<u64>) -> Self {
        let share = capacity_bytes.map_or(MOST_BYTES, |bytes| bytes / TIMES);
        Self { after_bytes: share.clamp(1, MOST_BYTES), written_bytes: AtomicU64::new(0) }
    }

    /// Counts bytes written to the store, and returns whether the record of purges should be rewritten now, so that the
    /// store does not evict it.
    pub(super) fn is_due_after(&self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        let before = self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
        // One of several writers at the same time sees the boundary.
        before / self.after_bytes != before.wrapping_add(bytes) / self.after_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_due_each_time_that_a_share_of_the_store_was_written() {
        let refresh = Refresh::new(Some(800));
        let due: Vec<bool> =
            [60, 39, 1, 99, 250, 1].map(|bytes| refresh.is_due_after(bytes)).into();
        assert_eq!(due, [false, false, true, false, true, false]);
        // Without a known capacity, and with an odd one.
        assert!(Refresh::new(None).is_due_after(16 << 20));
        assert!(Refresh::new(Some(0)).is_due_after(1));
    }
}
