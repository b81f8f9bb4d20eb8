//! Means and their errors.

/// Which part of the samples is left out at each end: the usual one, which keeps most of the power
/// under normal noise and bears a fifth of disturbed samples on either side.
const TRIM_PERCENT: usize = 20;

/// The mean of a set of samples with its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mean {
    /// The mean of the samples, or the logarithm of their mean.
    pub(super) value: f64,
    /// The square of the mean's standard error; `None` for a single sample.
    pub(super) squared_error: Option<f64>,
    /// The degrees of freedom of the mean's standard error.
    pub(super) freedom: f64,
}

impl Mean {
    /// Returns the mean of finite samples after a fifth is trimmed from each end; `None` without
    /// samples.
    pub(super) fn trimmed(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let count = sorted.len();
        let cut = count * TRIM_PERCENT / 100;
        let kept = sorted.get(cut..count - cut).filter(|kept| !kept.is_empty())?;
        let (low, high) = (kept[0], kept[kept.len() - 1]);
        let mean = mean(kept);
        let freedom = as_float(kept.len() - 1);
        // Winsorised: what would be cut off is moved to where the cut is.
        let winsorised: Vec<f64> = sorted.iter().map(|sample| sample.clamp(low, high)).collect();
        let center = self::mean(&winsorised);
        let squares: f64 = winsorised.iter().map(|sample| (sample - center).powi(2)).sum();
        // Yuen's form: for one set the same as Tukey and McLaughlin's but for a factor close to 1,
        // which makes it exactly Student's where nothing is cut.
        let kept = as_float(kept.len());
        let squared_error = (count > 1).then(|| squares / (kept * (kept - 1.0)));
        Some(Self { value: mean, squared_error, freedom })
    }

    /// Returns the logarithm of the mean of all samples, which are above 0, with its error by the
    /// delta method; `None` without samples, or if their sum is not finite.
    pub(super) fn log_of_all(samples: &[f64]) -> Option<Self> {
        let count = as_float(samples.len());
        let all = mean(samples);
        let squares: f64 = samples.iter().map(|sample| (sample / all - 1.0).powi(2)).sum();
        let squared_error = (samples.len() > 1).then(|| squares / (count * (count - 1.0)));
        all.is_finite().then(|| Self { value: all.ln(), squared_error, freedom: count - 1.0 })
    }
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / as_float(samples.len())
}

fn as_float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "these figures are exact")]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_is_cut_from_each_end() {
        let samples = [1000.0, 1.0, 2.0, 3.0, -1000.0];
        let trimmed = Mean::trimmed(&samples).unwrap();
        assert_eq!(trimmed.value, 2.0);
        assert_eq!(trimmed.freedom, 2.0);
        // Winsorised to 1 1 2 3 3: the squares are 4, over 3 * 2.
        assert_eq!(trimmed.squared_error, Some(4.0 / 6.0));
    }

    #[test]
    fn few_samples_are_not_cut() {
        assert_eq!(Mean::trimmed(&[]), None);
        let one = Mean::trimmed(&[5.0]).unwrap();
        assert_eq!((one.value, one.squared_error), (5.0, None));
        let four = Mean::trimmed(&[1.0, 2.0, 3.0, 6.0]).unwrap();
        assert_eq!((four.value, four.freedom), (3.0, 3.0));
        // The variance of the mean: 14 / 3 / 4.
        assert_eq!(four.squared_error, Some(14.0 / 12.0));
    }
}
