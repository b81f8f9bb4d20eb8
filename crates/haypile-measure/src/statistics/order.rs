//! The median and its exact interval.

use super::effect::Interval;
use super::summary::middle;

/// The share of intervals that may miss the median.
const MISSED: f64 = 0.05;

/// The median of samples (such as differences of pairs), with its confidence interval from order
/// statistics.
///
/// The interval holds whatever the distribution of the differences is: the number of samples below
/// the median has a binomial distribution (Thompson 1936). It covers the median with at least 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct MedianInterval {
    /// The number of samples that the median was computed from.
    pub count: usize,
    /// The median of the samples, in their unit.
    pub median: f64,
    /// Both ends of the median's 95 % confidence interval, in the unit of the samples; `None` for
    /// fewer than six samples.
    pub interval: Option<(f64, f64)>,
}

impl MedianInterval {
    /// The smallest number of samples for which the median has a 95 % interval: 2 x 0.5^6 is 3 %.
    pub const FEWEST: usize = 6;

    /// Computes the median of samples in any order, with its confidence interval; `None` without
    /// samples, or if one is not finite.
    pub fn of(samples: &[f64]) -> Option<Self> {
        if samples.is_empty() || !samples.iter().all(|sample| sample.is_finite()) {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let count = sorted.len();
        let interval = outside(count).map(|outside| (sorted[outside], sorted[count - 1 - outside]));
        Some(Self { count, median: middle(&sorted), interval })
    }

    /// Returns the median's 95 % confidence interval; `None` for fewer than six samples.
    pub fn ends(&self) -> Option<Interval> {
        self.interval.map(|(low, high)| Interval { low, high })
    }

    /// Whether the median differs significantly from 0: its interval excludes 0. `None` without an
    /// interval.
    pub fn is_significant(&self) -> Option<bool> {
        self.interval.map(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// Returns how many samples may lie outside of the interval at each end; `None` if not even the
/// whole range covers the median often enough.
fn outside(count: usize) -> Option<usize> {
    // The probability that at most `at` of the samples are below the median, by logarithms: for
    // thousands of samples, 0.5^n is no number.
    let trials = u32::try_from(count).ok()?;
    let mut log_chance = -f64::from(trials) * 2.0_f64.ln();
    let mut below = 0.0;
    let mut found = None;
    for at in 0..trials {
        below += log_chance.exp();
        if 2.0 * below > MISSED {
            break;
        }
        found = Some(at as usize);
        log_chance += f64::from(trials - at).ln() - f64::from(at + 1).ln();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks of the ends, counted from 1, as tables of nonparametric intervals have them (Conover,
    /// Practical Nonparametric Statistics, table A3 and the sign test).
    #[test]
    fn ends_are_those_of_published_tables() {
        let published =
            [(6, 1), (8, 1), (9, 2), (10, 2), (12, 3), (15, 4), (20, 6), (25, 8), (40, 14)];
        for (count, rank) in published {
            assert_eq!(outside(count), Some(rank - 1), "{count} samples");
        }
        // The normal approximation is good for thousands: n/2 - 0.98 sqrt(n).
        let found = outside(10_000).unwrap();
        assert!((4_898..=4_903).contains(&found), "{found}");
    }

    #[test]
    fn below_six_samples_there_is_no_interval() {
        for count in 1..6 {
            let samples = vec![1.0; count];
            let found = MedianInterval::of(&samples).unwrap();
            assert_eq!((found.median, found.interval, found.is_significant()), (1.0, None, None));
        }
        assert_eq!(MedianInterval::of(&[]), None);
        assert_eq!(MedianInterval::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn significance_is_an_interval_without_zero() {
        let with = |samples: &[f64]| MedianInterval::of(samples).unwrap();
        let all = with(&[3.0, 1.0, 2.0, 6.0, 5.0, 4.0]);
        assert_eq!((all.median, all.interval), (3.5, Some((1.0, 6.0))));
        assert_eq!(all.is_significant(), Some(true));
        assert_eq!(with(&[-1.0, 1.0, 2.0, 3.0, 4.0, 5.0]).is_significant(), Some(false));
        assert_eq!(with(&[-1.0, -1.0, -2.0, -3.0, -4.0, -5.0]).is_significant(), Some(true));
    }
}
