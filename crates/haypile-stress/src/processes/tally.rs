//! Counts of operations, of one process and of all processes.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// Makes the counts and their sums of one list.
macro_rules! counts {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// Counts of the cache operations of all processes of a stress test, by their outcomes.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub(crate) struct Tally {
            $($(#[doc = $doc])+ pub(crate) $name: u64,)+
            /// The time of the longest operation, in microseconds.
            pub(crate) longest_us: u64,
        }

        impl Tally {
            /// Adds the counts of another process to these.
            pub(super) fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)+
                self.longest_us = self.longest_us.max(other.longest_us);
            }
        }

        /// The counters of one process of the stress test, which its threads increment.
        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $name: AtomicU64,)+
            pub(super) longest_us: AtomicU64,
        }

        impl Counters {
            pub(super) fn tally(&self) -> Tally {
                Tally {
                    $($name: self.$name.load(Ordering::Relaxed),)+
                    longest_us: self.longest_us.load(Ordering::Relaxed),
                }
            }
        }
    };
}

counts! {
    /// The number of operations that ended.
    operations,
    /// The number of values that were stored.
    sets,
    /// The number of reads.
    gets,
    /// The number of reads of keys that should have a value.
    expected_hits,
    /// The number of reads that found the expected value.
    hits,
    /// The number of comparisons of values that were kept in place.
    pins_compared,
    /// The number of operations that were refused because another process was in the way.
    busy,
    /// The number of operations that were refused because there was no room.
    full,
    /// The number of operations that failed for another reason.
    failed,
    /// The number of wrong answers.
    wrong,
    /// The number of entries that were missing although all entries fit.
    lost,
}

/// Adds one to a counter of operations.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
