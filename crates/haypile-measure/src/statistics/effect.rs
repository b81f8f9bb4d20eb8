//! The difference between new samples and old ones.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::mean::Mean;
use super::verdict::Rule;

/// Where the upper end of a two-sided 95 % interval lies.
const UPPER: f64 = 0.975;
/// Above this Student's t is the normal distribution, to six digits; the library's inverse loses
/// digits where there are more degrees of freedom.
const MOST_FREEDOM: f64 = 1e5;

/// The error of old and new samples that cannot be compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EffectError {
    /// One side has no samples.
    #[error(
        "a comparison needs samples on both sides; the old results have {old}, and the new ones \
         {new}"
    )]
    Empty {
        /// Number of old samples.
        old: usize,
        /// Number of new samples.
        new: usize,
    },
    /// A ratio needs numbers above zero.
    #[error(
        "a sample of {sample} cannot be compared as a ratio; samples have to be finite and above 0"
    )]
    NotPositive {
        /// The sample.
        sample: f64,
    },
}

/// A confidence interval of a relative change, from low to high.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end of the interval, as a part of 1: -0.02 is 2 % less.
    pub low: f64,
    /// The upper end of the interval, as a part of 1: 0.05 is 5 % more.
    pub high: f64,
}

impl Interval {
    /// Returns the interval with its ends as factors: 0.98 is 2 % less.
    #[must_use]
    pub fn factors(self) -> Self {
        Self { low: 1.0 + self.low, high: 1.0 + self.high }
    }
}

/// The ratio of new to old costs (such as times), as an estimate with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// The logarithm of the ratio of new to old.
    log_ratio: f64,
    /// The error of the estimate; `None` if there are too few samples to say.
    error: Option<LogError>,
    /// The number of pairs, or of the samples of the side that has fewer.
    samples: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct LogError {
    /// Half of the 95 % interval of the logarithm.
    margin: f64,
    /// Half of the interval of the logarithm at the significance of a [`Rule`].
    significant: f64,
    p_value: f64,
}

impl Effect {
    /// Compares costs of samples that were measured side by side: each pair has an old and a new cost.
    ///
    /// The order of the pairs makes no difference. All samples have to be finite and above 0.
    pub fn paired(pairs: &[(f64, f64)]) -> Result<Self, EffectError> {
        let mut ratios = Vec::with_capacity(pairs.len());
        for &(old, new) in pairs {
            ratios.push(logarithm(new)? - logarithm(old)?);
        }
        let empty = EffectError::Empty { old: pairs.len(), new: pairs.len() };
        let ratio = Mean::trimmed(&ratios).ok_or(empty)?;
        Ok(Self::new(ratio.value, ratio.squared_error, ratio.freedom, pairs.len()))
    }

    /// Compares costs of old and new samples that were measured separately, so that anything else that changed in
    /// between is part of the effect.
    ///
    /// All samples have to be finite and above 0.
    pub fn unpaired(old: &[f64], new: &[f64]) -> Result<Self, EffectError> {
        let both = [logarithms(old)?, logarithms(new)?].map(|logs| Mean::trimmed(&logs));
        Self::between(both, (old.len(), new.len()))
    }

    /// Compares the means of old and new samples that were measured separately, without trimming, so that slow samples
    /// count fully. The error is that of the logarithms of both means (Welch, by the delta method).
    ///
    /// All samples have to be finite and above 0.
    pub fn of_means(old: &[f64], new: &[f64]) -> Result<Self, EffectError> {
        for &sample in old.iter().chain(new) {
            logarithm(sample)?;
        }
        Self::between([old, new].map(Mean::log_of_all), (old.len(), new.len()))
    }

    /// Returns the effect between two means of logarithms, from these numbers of samples.
    fn between(
        means: [Option<Mean>; 2],
        (old_count, new_count): (usize, usize),
    ) -> Result<Self, EffectError> {
        let [Some(old), Some(new)] = means else {
            return Err(EffectError::Empty { old: old_count, new: new_count });
        };
        let squared_error = old.squared_error.zip(new.squared_error).map(|(old, new)| old + new);
        let freedom = shared_freedom(&old, &new);
        Ok(Self::new(new.value - old.value, squared_error, freedom, old_count.min(new_count)))
    }

    /// Creates the estimate of a ratio of costs from its logarithm, the squared error of that logarithm, the degrees of
    /// freedom of that error, and the number of samples.
    pub(super) fn new(
        log_ratio: f64,
        squared_error: Option<f64>,
        freedom: f64,
        samples: usize,
    ) -> Self {
        let error = squared_error.map(|square| LogError::new(log_ratio, square.sqrt(), freedom));
        Self { log_ratio, error, samples }
    }

    /// Returns the number of compared pairs of samples, or the smaller of the numbers of old and new samples.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Returns the ratio of new to old costs.
    pub fn ratio(&self) -> f64 {
        self.log_ratio.exp()
    }

    /// Returns the relative change of the cost: 0.03 is 3 % more, -0.5 is half.
    pub fn change(&self) -> f64 {
        self.log_ratio.exp_m1()
    }

    /// Returns the 95 % confidence interval of the cost's relative change; `None` with a single old or new sample. The
    /// upper end can be infinite with very few samples.
    pub fn interval(&self) -> Option<Interval> {
        self.error.map(|error| Interval {
            low: (self.log_ratio - error.margin).exp_m1(),
            high: (self.log_ratio + error.margin).exp_m1(),
        })
    }

    /// Returns the 99 % confidence interval of the cost's change, the level at which a [`Rule`] decides: a difference
    /// is significant if 0 is outside. `None` with a single sample on a side; the upper end can be infinite with very
    /// few.
    pub fn deciding_interval(&self) -> Option<Interval> {
        self.error.map(|error| Interval {
            low: (self.log_ratio - error.significant).exp_m1(),
            high: (self.log_ratio + error.significant).exp_m1(),
        })
    }

    /// Returns the probability that a difference of costs at least this clear comes from noise alone, from 0 to 1; 1
    /// without an interval.
    pub fn p_value(&self) -> f64 {
        self.error.map_or(1.0, |error| error.p_value)
    }

    /// Returns the smallest logarithm of a cost ratio that would have been significant by a [`Rule`] with these
    /// samples; `None` without an interval.
    pub(super) fn least_significant(&self) -> Option<f64> {
        self.error.map(|error| error.significant)
    }

    /// Returns the logarithm of the ratio of new to old costs, which is symmetric where the relative change is not.
    pub(super) fn log_ratio(&self) -> f64 {
        self.log_ratio
    }
}

impl LogError {
    fn new(log_ratio: f64, standard_error: f64, freedom: f64) -> Self {
        if standard_error == 0.0 {
            // Exact figures, such as those of a fake clock.
            let p_value = if log_ratio == 0.0 { 1.0 } else { 0.0 };
            return Self { margin: 0.0, significant: 0.0, p_value };
        }
        let freedom = freedom.min(MOST_FREEDOM);
        let student =
            StudentsT::new(0.0, 1.0, freedom).expect("the degrees of freedom are above 0");
        let p_value = 2.0 * student.cdf(-(log_ratio / standard_error).abs());
        let within = |part: f64| student.inverse_cdf(part) * standard_error;
        let significant = within(1.0 - Rule::SIGNIFICANCE / 2.0);
        Self { margin: within(UPPER), significant, p_value }
    }
}

/// Returns the degrees of freedom of a difference between two means (Welch).
fn shared_freedom(old: &Mean, new: &Mean) -> f64 {
    match (old.squared_error, new.squared_error) {
        (Some(a), Some(b)) if a + b > 0.0 => {
            // As parts of their sum: the squares of tiny numbers are zero.
            let part = a / (a + b);
            1.0 / (part.powi(2) / old.freedom + (1.0 - part).powi(2) / new.freedom)
        }
        _ => 1.0,
    }
}

/// Returns the logarithm of a sample's cost; an error unless the cost is finite and above 0.
pub(super) fn logarithm(sample: f64) -> Result<f64, EffectError> {
    if sample.is_finite() && sample > 0.0 {
        Ok(sample.ln())
    } else {
        Err(EffectError::NotPositive { sample })
    }
}

fn logarithms(samples: &[f64]) -> Result<Vec<f64>, EffectError> {
    samples.iter().copied().map(logarithm).collect()
}
