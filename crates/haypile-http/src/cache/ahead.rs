//! Memory for bodies that come faster than anybody reads them.

use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes that all fills of a cache together may be ahead of their readers, beyond what each may be.
const ALL_AHEAD_BYTES: u64 = 32 << 20;
/// The bytes that a fill takes at a time.
const STEP_BYTES: u64 = 256 << 10;

/// The memory that is left for the fills of a cache.
#[derive(Debug)]
pub(super) struct Ahead {
    left: AtomicU64,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { left: AtomicU64::new(ALL_AHEAD_BYTES) }
    }
}

impl Ahead {
    /// Changes what a fill has taken to what it needs, or to less if less is left.
    pub(super) fn adjust(&self, taken: &mut u64, needed: u64) {
        let needed = needed.next_multiple_of(STEP_BYTES);
        if needed <= *taken {
            self.left.fetch_add(*taken - needed, Ordering::Relaxed);
            *taken = needed;
            return;
        }
        let more = needed - *taken;
        let take = |left: u64| left.checked_sub(more);
        if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            *taken = needed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_taken_comes_back() {
        let ahead = Ahead::default();
        let (mut one, mut other) = (0, 0);
        ahead.adjust(&mut one, ALL_AHEAD_BYTES - 1);
        assert_eq!(one, ALL_AHEAD_BYTES);
        ahead.adjust(&mut other, 1);
        assert_eq!(other, 0, "nothing is left");
        ahead.adjust(&mut one, 1);
        ahead.adjust(&mut other, ALL_AHEAD_BYTES - STEP_BYTES);
        assert_eq!((one, other), (STEP_BYTES, ALL_AHEAD_BYTES - STEP_BYTES));
        ahead.adjust(&mut one, 0);
        ahead.adjust(&mut other, 0);
        assert_eq!(ahead.left.into_inner(), ALL_AHEAD_BYTES);
    }
}
