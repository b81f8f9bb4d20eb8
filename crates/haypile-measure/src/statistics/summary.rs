//! The summary of one set of samples.

/// The summary of a set of samples: count, median, deviation and extremes. Its figures have the
/// unit of the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// The number of samples in the summary; at least one.
    pub count: usize,
    /// The median of the samples; of an even number of them, the mean of the two in the middle.
    pub median: f64,
    /// The median absolute deviation: the median of the samples' distances from their median, not
    /// scaled to be comparable with a standard deviation.
    pub mad: f64,
    /// The smallest sample.
    pub min: f64,
    /// The largest sample.
    pub max: f64,
}

impl Summary {
    /// Computes the summary of samples in any order; `None` without samples, or if one is not
    /// finite.
    pub fn of(samples: &[f64]) -> Option<Self> {
        if !samples.iter().all(|sample| sample.is_finite()) {
            return None;
        }
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let median = middle(&sorted);
        for sample in &mut sorted {
            *sample = (*sample - median).abs();
        }
        sorted.sort_unstable_by(f64::total_cmp);
        Some(Self { count: samples.len(), median, mad: middle(&sorted), min, max })
    }

    /// Returns the samples' median absolute deviation as a part of their median; 0 where both are
    /// 0.
    pub fn spread(&self) -> f64 {
        if self.mad == 0.0 { 0.0 } else { self.mad / self.median.abs() }
    }
}

/// Returns the median of values that are sorted and not empty.
pub(super) fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these figures are exact")]
mod tests {
    use super::*;

    #[test]
    fn figures_of_odd_and_even_numbers_of_samples() {
        let odd = Summary::of(&[9.0, 1.0, 2.0]).unwrap();
        assert_eq!(odd, Summary { count: 3, median: 2.0, mad: 1.0, min: 1.0, max: 9.0 });
        let even = Summary::of(&[4.0, 1.0, 3.0, 100.0]).unwrap();
        assert_eq!(even, Summary { count: 4, median: 3.5, mad: 1.5, min: 1.0, max: 100.0 });
        assert_eq!(Summary::of(&[7.0]).unwrap().spread(), 0.0);
        assert_eq!(Summary::of(&[0.0, 0.0]).unwrap().spread(), 0.0);
        assert_eq!(odd.spread(), 0.5);
    }

    #[test]
    fn nothing_is_said_of_nothing_or_of_what_is_no_number() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(Summary::of(&[1.0, f64::NAN]), None);
        assert_eq!(Summary::of(&[1.0, f64::INFINITY]), None);
    }
}
