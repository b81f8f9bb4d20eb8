//! The centre of measurements.

use super::effect::{Effect, Interval};
use super::summary::Summary;

/// The centre (a trimmed geometric mean) of samples above 0, with its interval and the spread of
/// the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Centre {
    /// The centre: the exponential of the mean of the logarithms, after a fifth of the samples is
    /// trimmed from each end. [`Effect`] trims ratios instead, so that it can differ from the ratio
    /// of two centres.
    pub value: f64,
    /// The 95 % confidence interval of the centre; `None` for a single sample.
    pub interval: Option<Interval>,
    /// The median absolute deviation of the samples from their median.
    pub mad: f64,
    /// The arithmetic mean of the samples, which a few large ones change.
    pub mean: f64,
    /// The number of samples that the centre was computed from.
    pub count: usize,
}

impl Centre {
    /// Computes the centre of samples; `None` without samples, or if one is not finite and above 0.
    pub fn of(values: &[f64]) -> Option<Self> {
        // The effect of a value over 1 is the value.
        let pairs: Vec<(f64, f64)> = values.iter().map(|value| (1.0, *value)).collect();
        let effect = Effect::paired(&pairs).ok()?;
        let mad = Summary::of(values)?.mad;
        Some(Self {
            value: effect.ratio(),
            interval: effect.interval().map(Interval::factors),
            mad,
            mean: values.iter().sum::<f64>() / values.len() as f64,
            count: values.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_no_interval_and_equal_ones_a_narrow_one() {
        assert_eq!(Centre::of(&[]), None);
        assert_eq!(Centre::of(&[1.0, 0.0]), None);
        let one = Centre::of(&[8.0]).unwrap();
        assert!((one.value - 8.0).abs() < 1e-12);
        assert_eq!(one.interval, None);
        let ends = Centre::of(&[8.0, 8.0, 8.0]).unwrap().interval.unwrap();
        assert!((ends.low - 8.0).abs() < 1e-9 && (ends.high - 8.0).abs() < 1e-9);
    }

    #[test]
    fn the_ratio_of_two_centres_is_that_of_their_effect_where_the_same_blocks_are_trimmed() {
        // So many that a fifth is trimmed, and the same values are trimmed of both.
        let old = [90.0, 100.0, 110.0, 105.0, 500.0];
        let new = old.map(|value| value * 1.25);
        let pairs: Vec<(f64, f64)> = old.into_iter().zip(new).collect();
        let ratio = Centre::of(&new).unwrap().value / Centre::of(&old).unwrap().value;
        assert!((Effect::paired(&pairs).unwrap().ratio() - ratio).abs() < 1e-9);
    }
}
