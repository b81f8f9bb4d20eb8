//! The memory for parts of bodies that fills hold because no reader has read them yet.

use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes that all fills of a cache together may be ahead of their readers, beyond what each may be.
const ALL_AHEAD_BYTES: u64 = 32 << 20;
/// The most that one fill takes of them.
const MOST_OF_ONE_BYTES: u64 = ALL_AHEAD_BYTES / 4;
/// The bytes that a fill takes at a time.
const STEP_BYTES: u64 = 256 << 10;

/// The memory budget that all response bodies in transit share, for bytes that their readers have not taken yet.
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
    /// Changes the number of bytes that a response body in transit has reserved from the shared budget (`taken`) to
    /// `needed`, or to fewer if the budget lacks them.
    pub(super) fn adjust(&self, taken: &mut u64, needed: u64) {
        let needed = needed.min(MOST_OF_ONE_BYTES).next_multiple_of(STEP_BYTES);
        if needed < *taken {
            self.left.fetch_add(*taken - needed, Ordering::Relaxed);
            *taken = needed;
        } else if needed > *taken {
            let more = needed - *taken;
            let take = |left: u64| left.checked_sub(more);
            if self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                *taken = needed;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_taken_comes_back() {
        let ahead = Ahead::default();
        let mut taken = [0; 5];
        for (number, taken) in taken.iter_mut().enumerate() {
            ahead.adjust(taken, u64::MAX / 2);
            let expected = if number < 4 { MOST_OF_ONE_BYTES } else { 0 };
            assert_eq!(*taken, expected, "nothing is left for the fifth");
        }
        ahead.adjust(&mut taken[0], 1);
        ahead.adjust(&mut taken[4], STEP_BYTES + 1);
        assert_eq!((taken[0], taken[4]), (STEP_BYTES, 2 * STEP_BYTES));
        for taken in &mut taken {
            ahead.adjust(taken, 0);
        }
        assert_eq!(ahead.left.into_inner(), ALL_AHEAD_BYTES);
    }
}
