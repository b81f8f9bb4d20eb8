//! Prefix sums of a sequence that changes.

/// A binary indexed tree for prefix sums: Fenwick, "A new data structure for cumulative frequency
/// tables" (1994).
#[derive(Clone, Debug, Default)]
pub(super) struct Fenwick {
    /// Element `n` (from 1) sums the entries of `n`'s lowest set bit up to `n`.
    sums: Vec<u64>,
}

impl Fenwick {
    /// Creates a Fenwick tree of `entries` zeros.
    pub(super) fn zeros(entries: usize) -> Self {
        Self { sums: vec![0; entries + 1] }
    }

    /// Adds `amount` to the entry number `entry` of the tree.
    pub(super) fn add(&mut self, entry: usize, amount: u64) {
        self.change(entry, |sum| *sum += amount);
    }

    /// Subtracts `amount` from the entry number `entry` of the tree.
    pub(super) fn subtract(&mut self, entry: usize, amount: u64) {
        self.change(entry, |sum| *sum -= amount);
    }

    fn change(&mut self, entry: usize, change: impl Fn(&mut u64)) {
        let mut n = entry + 1;
        while let Some(sum) = self.sums.get_mut(n) {
            change(sum);
            n += n & n.wrapping_neg();
        }
    }

    /// Returns the sum of the first `entries` entries of the tree.
    pub(super) fn sum_of_first(&self, entries: usize) -> u64 {
        let mut n = entries;
        let mut sum = 0;
        while n > 0 {
            sum += self.sums[n];
            n &= n - 1;
        }
        sum
    }
}
