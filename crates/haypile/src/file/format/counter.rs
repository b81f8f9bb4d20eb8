//! The counters of each owner slot.

use crate::stats::Event;

/// The number of statistics counters that each owner slot (a user's entry in the cache file) has.
pub(in crate::file) const COUNTERS: usize = 20;
/// The highest count that is believed. Damage leaves any number; sums of this one do not overflow.
const MOST_COUNTED: u64 = 1 << 56;

/// A statistics counter (such as of hits) that each owner slot, a user's entry in the cache file,
/// has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Counter {
    Event(Event),
    /// The number of records that recycling kept.
    Reinserted,
    /// The number of locks that were taken over from dead processes.
    Recoveries,
    /// The number of entries that left because their bucket had no slot left; they count as
    /// evictions as well.
    Crowded,
    /// The number of writes under a lease that were refused though nothing shows that their keys had changed; they
    /// count as revoked as well.
    Unsure,
}

impl Counter {
    /// Returns the position among the counters of an owner slot, which the format fixes. None for events
    /// that no file counts: it declines nothing and has no server.
    #[inline]
    const fn position(self) -> Option<usize> {
        match self {
            Self::Event(Event::Corrupt) => Some(12),
            Self::Event(Event::Revoked) => Some(16),
            Self::Event(event) if (event as usize) < 12 => Some(event as usize),
            Self::Event(_) => None,
            Self::Reinserted => Some(13),
            Self::Recoveries => Some(14),
            Self::Crowded => Some(15),
            Self::Unsure => Some(17),
        }
    }

    /// Returns the offset of a statistics counter in an owner slot of the cache file: the copy for
    /// one thread if `is_own`, otherwise the copy for all other threads.
    #[inline]
    pub(in crate::file) fn at(self, is_own: bool) -> Option<u64> {
        self.position().map(|position| offset(position, is_own))
    }
}

impl From<Event> for Counter {
    #[inline]
    fn from(event: Event) -> Self {
        Self::Event(event)
    }
}

#[inline]
const fn offset(position: usize, is_own: bool) -> u64 {
    (if is_own { 64 } else { 64 + 8 * COUNTERS as u64 }) + 8 * position as u64
}

/// The values of all statistics counters of one user of the cache file, or their sums over several
/// users.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::file) struct Counted([u64; COUNTERS]);

impl Counted {
    /// Reads the statistics counters of one user of the cache file; `load` reads the word at an offset in the
    /// user's owner slot.
    pub(in crate::file) fn read(load: impl Fn(u64) -> u64) -> Self {
        Self(std::array::from_fn(|position| {
            load(offset(position, true)).wrapping_add(load(offset(position, false)))
        }))
    }

    /// Adds to these sums the amount by which each statistics counter of a user of the cache file
    /// has grown from `before` to `now`.
    pub(in crate::file) fn add(&mut self, now: &Self, before: &Self) {
        for (sum, (now, before)) in self.0.iter_mut().zip(now.0.iter().zip(&before.0)) {
            *sum = sum.wrapping_add(now.wrapping_sub(*before));
        }
    }

    /// Returns the value of one statistics counter, at most 2^56; zero for events that cache files
    /// do not count.
    pub(in crate::file) fn of(&self, counter: impl Into<Counter>) -> u64 {
        counter.into().position().map_or(0, |position| self.0[position].min(MOST_COUNTED))
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn counts_that_damage_left_can_be_added_up() {
        let counted = Counted::read(|_| u64::MAX / 2);
        let sum: u64 = Event::ALL.into_iter().map(|event| counted.of(event)).sum();
        assert_eq!(sum, 14 * MOST_COUNTED);
    }

    #[test]
    fn counters_stand_where_files_have_them() {
        let names = Event::ALL.into_iter().filter_map(|event| {
            Counter::from(event).position().map(|position| (position, event.name()))
        });
        let mut names: Vec<(usize, &str)> = names.collect();
        names.sort_unstable();
        let expected = [
            "hits",
            "misses",
            "sets",
            "unmet",
            "deletes",
            "delete_misses",
            "touches",
            "touch_misses",
            "counts",
            "count_misses",
            "evictions",
            "expired",
            "corrupt",
        ];
        let expected = expected.into_iter().enumerate().chain([(16, "revoked")]);
        assert_eq!(names, expected.collect::<Vec<_>>());
        let own = [Counter::Reinserted, Counter::Recoveries, Counter::Crowded, Counter::Unsure];
        let positions = [13, 14, 15, 17];
        assert_eq!(own.map(|it| it.at(true)), positions.map(|position| Some(64 + 8 * position)));
        assert_eq!(own.map(|it| it.at(false)), positions.map(|position| Some(224 + 8 * position)));
    }
}
