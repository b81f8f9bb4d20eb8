//! A value and how sure it is.

use haypile_measure::result::{Sample, Values};
use haypile_measure::statistics::Effect;

/// The quantity measured: a value above 0 of a sample, or `None` where it has none.
pub(crate) type Cost = fn(&Sample) -> Option<f64>;

/// A mean with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// The mean of the logarithms after a fifth is trimmed from each end, as a value again.
    pub(crate) value: f64,
    /// The ends of the interval; `None` for a single value.
    pub(crate) interval: Option<(f64, f64)>,
}

impl Estimate {
    /// A value that is exact, or of which nothing more is known.
    pub(crate) fn exact(value: f64) -> Self {
        Self { value, interval: None }
    }

    /// The estimate of values above 0; `None` without any.
    pub(crate) fn of(values: &Values<'_>) -> Option<Self> {
        // The effect of a value over 1 is the value.
        let pairs: Vec<(f64, f64)> =
            values.to_vec().into_iter().map(|value| (1.0, value)).collect();
        let effect = Effect::paired(&pairs).ok()?;
        let interval = effect.interval().map(|ends| (1.0 + ends.low, 1.0 + ends.high));
        Some(Self { value: effect.ratio(), interval })
    }

    /// The estimate of what is the larger the smaller this is: `per` divided by it.
    pub(crate) fn inverse(self, per: f64) -> Self {
        let interval = self.interval.map(|(low, high)| (per / high, per / low));
        Self { value: per / self.value, interval }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(values: &[f64]) -> Values<'static> {
        values.iter().zip(0..).map(|(&value, block)| (("", block), value)).collect()
    }

    #[test]
    fn one_value_has_no_interval_and_equal_ones_a_narrow_one() {
        assert_eq!(Estimate::of(&values(&[])), None);
        let one = Estimate::of(&values(&[8.0])).unwrap();
        assert!((one.value - 8.0).abs() < 1e-12);
        assert_eq!(one.interval, None);
        let (low, high) = Estimate::of(&values(&[8.0, 8.0, 8.0])).unwrap().interval.unwrap();
        assert!((low - 8.0).abs() < 1e-9 && (high - 8.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_turned_over_keeps_its_interval_around_it() {
        let time = Estimate::of(&values(&[90.0, 100.0, 110.0, 105.0, 95.0])).unwrap();
        let rate = time.inverse(1e9);
        let (low, high) = rate.interval.unwrap();
        assert!(low < rate.value && rate.value < high, "{rate:?}");
        assert!((rate.value - 1e7).abs() < 2e5, "{rate:?}");
    }
}
