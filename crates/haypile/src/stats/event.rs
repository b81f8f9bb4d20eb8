//! The list of events, from which everything that counts, adds up or shows events is made.

use std::ops::{Index, IndexMut};

use super::Loading;
use super::prometheus::{EventMetric, alone, operation};

/// Makes [`Event`] and the fields of [`Stats`] of one list, so that neither can lack what the other has.
macro_rules! events {
    ($($(#[doc = $doc:literal])+ $event:ident $field:ident $metric:expr;)+) => {
        /// An event in the statistics of a store, such as a hit or an eviction; [`Stats`] has a
        /// field with the count of each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Event {
            $($(#[doc = $doc])+ $event,)+
        }

        impl Event {
            /// All events, in an order that never changes: new ones are appended. The positions of
            /// counters in files and of fields in the C interface follow from it.
            pub const ALL: [Self; [$(stringify!($field)),+].len()] = [$(Self::$event),+];

            /// Returns the name of the event's field in [`Stats`].
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$event => stringify!($field),)+
                }
            }

            pub(super) const fn metric(self) -> EventMetric {
                match self {
                    $(Self::$event => $metric,)+
                }
            }
        }

        /// The statistics of a store: counts of events since it was opened, and the sizes of its
        /// current contents.
        ///
        /// A store that cannot know a number leaves it at zero and says so in its own documentation.
        /// Other crates start from the default and fill in what they know. An operation that ends in
        /// an error is counted nowhere. An [`Event`] as index reads or changes its count.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[doc = $doc])+ pub $field: u64,)+
            /// The number of entries in the store now. It may include some that have expired and
            /// have not been read since.
            pub entries: u64,
            /// The total size of keys, values and metadata of the store's entries, in bytes.
            pub bytes: u64,
            /// The store's bound on [`bytes`](Self::bytes) now; `None` if there is none or the
            /// store cannot know it.
            pub capacity_bytes: Option<u64>,
            /// The times that loading the store's snapshot took, once it has ended; `None` without
            /// a snapshot to load.
            pub loading: Option<Loading>,
        }

        impl Index<Event> for Stats {
            type Output = u64;

            fn index(&self, event: Event) -> &u64 {
                match event {
                    $(Event::$event => &self.$field,)+
                }
            }
        }

        impl IndexMut<Event> for Stats {
            fn index_mut(&mut self, event: Event) -> &mut u64 {
                match event {
                    $(Event::$event => &mut self.$field,)+
                }
            }
        }
    };
}

/// Calls a macro with the list of events: for each its documentation, its name, the name of its field in
/// [`Stats`] and its metric. Bindings make their own statistics of it, so that they lack no event.
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_event {
    ($define:ident) => {
        $define! {
            /// Reads that found a value. `contains` is not a read.
            Hit hits operation("get", "hit");
            /// Reads that found none, or an expired one, or one that is `corrupt`.
            Miss misses operation("get", "miss");
            /// Writes that were accepted, whether or not the entry was retained: `set`, and `add`,
            /// `replace` and `cas` where their condition held, and what `counts` counts.
            Set sets operation("set", "stored");
            /// Writes by `add`, `replace` and `cas` whose condition did not hold.
            Unmet unmet operation("set", "unmet");
            /// Deletions of an entry that was there. `clear` counts none.
            Delete deletes operation("delete", "hit");
            /// Deletions that found no entry, or an entry that `delete_version` or `compare_and_delete`
            /// left.
            DeleteMiss delete_misses operation("delete", "miss");
            /// New TTLs, by `touch`, for an entry that was there.
            Touch touches operation("touch", "hit");
            /// Calls of `touch` that found no entry.
            TouchMiss touch_misses operation("touch", "miss");
            /// Calls of `incr` and `decr` that found a counter. Each is also one of `sets`.
            Count counts operation("count", "hit");
            /// Calls of `incr` and `decr` that found no entry.
            CountMiss count_misses operation("count", "miss");
            /// Entries that left because room was needed.
            Eviction evictions
                alone("haypile_evictions_total", "Entries that left because room was needed.");
            /// Entries that left because their TTL had passed.
            Expired expired
                alone("haypile_expirations_total", "Entries that left because their TTL had passed.");
            /// New entries that were accepted and not retained, because the policy preferred to keep
            /// what it had.
            Declined declined
                alone("haypile_declined_total", "New entries that the policy did not retain.");
            /// Values that were found and could not be read back, because their bytes were damaged.
            /// Each was a miss to the caller.
            Corrupt corrupt
                alone("haypile_corrupt_total", "Values that were found damaged and taken for a miss.");
            /// Operations on entries that a remote store answered by itself, as an empty cache would,
            /// because its server did not, or may still do an earlier write of that key. Each is also
            /// counted as what it returned.
            Unreachable unreachable
                alone(
                    "haypile_unreachable_total",
                    "Operations that were answered without the server, which could not be reached.",
                );
            /// Connections to a server that were lost while entries were to change, and of which the
            /// server did not confirm that it had read them to their end. An older value can come back.
            Unfenced unfenced
                alone(
                    "haypile_unfenced_total",
                    "Lost connections on which the server may still change entries late.",
                );
            /// Reads before computations that failed, and counted as misses. The cache counts them, and
            /// the two that follow; a store leaves them at zero.
            FailedRead failed_reads
                alone(
                    "haypile_failed_reads_total",
                    "Reads before computations that failed, and were misses.",
                );
            /// Computed values that the store refused, for example because they are too large. The
            /// callers got them, and the next call computes again.
            RefusedValue refused_values
                alone(
                    "haypile_refused_values_total",
                    "Computed values that the store refused, so that they are computed again.",
                );
            /// Refreshes that failed while there was a value to serve.
            FailedRefresh failed_refreshes
                alone(
                    "haypile_failed_refreshes_total",
                    "Refreshes that failed while there was a value to serve.",
                );
            /// Writes under a lease that were refused, because the key had changed since or may have. Nothing
            /// has changed by them.
            Revoked revoked
                alone(
                    "haypile_revoked_total",
                    "Writes under a lease that were refused, because the key may have changed since.",
                );
        }
    };
}

for_each_event!(events);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_the_field_of_its_name() {
        let mut stats = Stats::default();
        for (count, event) in (1..).zip(Event::ALL) {
            stats[event] = count;
        }
        let text = format!("{stats:?}");
        for (count, event) in (1..).zip(Event::ALL) {
            assert!(text.contains(&format!(" {}: {count},", event.name())), "{text}");
            assert_eq!(stats[event], count);
            assert_eq!(event as u64, count - 1);
        }
    }
}
