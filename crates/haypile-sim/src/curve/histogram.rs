//! Histogram of the capacities that reads need.

/// A histogram of reads by the smallest LRU cache size at which each hits: exact, or in steps of less than 0.1 %.
#[derive(Clone, Debug)]
pub(super) enum Histogram {
    /// One count for each capacity.
    Exact(Vec<u64>),
    /// Counts by capacities of three significant digits.
    Rounded(hdrhistogram::Histogram<u64>),
}

impl Histogram {
    pub(super) fn new(exact: bool) -> Self {
        if exact {
            Self::Exact(Vec::new())
        } else {
            Self::Rounded(hdrhistogram::Histogram::new(3).expect("three digits are allowed"))
        }
    }

    /// Counts a read that hits in an LRU cache of at least `capacity`.
    #[inline]
    pub(super) fn add(&mut self, capacity: u64) {
        match self {
            Self::Exact(counts) => {
                let at = usize::try_from(capacity).expect("a count of keys");
                if at >= counts.len() {
                    counts.resize((at + 1).next_power_of_two(), 0);
                }
                counts[at] += 1;
            }
            Self::Rounded(counts) => counts.record(capacity).expect("it grows with its values"),
        }
    }

    /// Returns the number of reads that hit in an LRU cache of size `capacity`.
    pub(super) fn up_to(&self, capacity: u64) -> u64 {
        match self {
            Self::Exact(counts) => {
                let end = usize::try_from(capacity).unwrap_or(usize::MAX).saturating_add(1);
                counts[..end.min(counts.len())].iter().sum()
            }
            Self::Rounded(counts) => counts
                .iter_recorded()
                .take_while(|step| step.value_iterated_to() <= capacity)
                .map(|step| step.count_at_value())
                .sum(),
        }
    }

    /// Returns the largest LRU cache size that any counted read needs for a hit.
    pub(super) fn largest(&self) -> u64 {
        match self {
            Self::Exact(counts) => {
                counts.iter().rposition(|count| *count > 0).map_or(0, |at| at as u64)
            }
            Self::Rounded(counts) => counts.max(),
        }
    }
}
