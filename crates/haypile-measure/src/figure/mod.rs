//! Figures: quantities computed from samples, each defined once.
//!
//! A [`Figure`] is data: a name, a unit, a rounding, the rows that count and the estimator that pools
//! them. Tables, charts, sentences and JSON are layouts over figures, and compute nothing of their own.
//! The rows that count are those of one subject in one case, without errors; of several rows of a block,
//! which depend on each other, the median counts once.

mod findings;
mod known;
mod notes;
mod operations;

use haypile_number::{NBSP, Quantity};

use crate::result::{Sample, Samples, Values};
use crate::statistics::{Centre, Interval, Summary};

pub use findings::{Finding, Findings};
pub use known::*;
pub use notes::CaseNotes;
pub use operations::{Operations, PERCENTILES, Percentile};

/// A figure: a quantity that is computed from benchmark samples, such as processor time per operation.
#[derive(Debug)]
pub struct Figure {
    /// The name of the figure in results and in the comments of tables: `cpu`.
    pub name: &'static str,
    /// The title of the figure's column in a table, or of its bars in a chart.
    pub title: &'static str,
    /// The figure's name within a sentence: `processor time per operation`.
    pub what: &'static str,
    /// The quantity of the figure's values (time, bytes and so on), which decides the unit and the rounding.
    pub quantity: Quantity,
    estimator: Estimator,
}

impl PartialEq for Figure {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// A function that computes a number, such as the processor time per operation, from a benchmark sample; `None` if the
/// sample lacks that number.
pub type OfSample = fn(&Sample) -> Option<f64>;

/// The way in which the values of samples become one.
#[derive(Clone, Copy, Debug)]
enum Estimator {
    /// The [`Centre`] of costs above 0 over blocks.
    Centre(OfSample),
    /// The [`Centre`] of costs, unless a sample has a count that tells of a doubt: then there is none, for the samples
    /// without it would be the larger part of the costs.
    CentreUnless(&'static str, OfSample),
    /// A number divided by the centre of costs.
    PerCentre(f64, OfSample),
    /// The median over blocks, of counts that may be 0.
    Median(OfSample),
    /// The sum of parts divided by the sum of wholes.
    Ratio(fn(&Sample) -> Option<(f64, f64)>),
}

/// An estimate of a figure's value (such as processor time per operation), with its 95 % interval and the spread
/// between blocks (rounds).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// The estimated value, in the unit of its quantity: nanoseconds, bytes, or a part of 1.
    pub value: f64,
    /// The 95 % interval of the estimated value; `None` if it is unknown.
    pub interval: Option<Interval>,
    /// The median absolute deviation of the values of all blocks (rounds of a measurement); `None` for a single block.
    pub mad: Option<f64>,
    /// The arithmetic mean of the values of all blocks (rounds); `None` if the estimate is not a centre of blocks.
    pub mean: Option<f64>,
}

impl Figure {
    /// Creates a figure whose value is the median, over all blocks (rounds), of a number that `of` computes from each
    /// sample.
    pub const fn median(
        name: &'static str,
        title: &'static str,
        what: &'static str,
        quantity: Quantity,
        of: OfSample,
    ) -> Self {
        Self { name, title, what, quantity, estimator: Estimator::Median(of) }
    }

    /// Returns the estimate of the figure from samples of one subject in one case; `None` if they lack the number that
    /// it needs.
    pub fn of(&self, samples: &Samples<'_>) -> Option<Estimate> {
        match self.estimator {
            Estimator::Centre(_) | Estimator::CentreUnless(..) => {
                Some(Centre::of(&self.values(samples).to_vec())?.into())
            }
            Estimator::PerCentre(number, _) => {
                let cost: Estimate = Centre::of(&self.values(samples).to_vec())?.into();
                Some(cost.inverse(number))
            }
            Estimator::Median(of) => {
                let summary = Summary::of(&good(samples).values(of).to_vec())?;
                let mad = (summary.count > 1).then_some(summary.mad);
                Some(Estimate { mad, ..Estimate::exact(summary.median) })
            }
            Estimator::Ratio(of) => {
                let samples = good(samples);
                let parts = samples.iter().filter_map(|sample| of(sample));
                let (part, whole) =
                    parts.fold((0.0, 0.0), |sum: (f64, f64), one| (sum.0 + one.0, sum.1 + one.1));
                (whole > 0.0).then(|| Estimate::exact(part / whole))
            }
        }
    }

    /// Returns the value of this figure in one sample, if the figure is a cost such as a time; `None` if the value is
    /// not above 0, or the figure is not a cost.
    pub fn of_sample(&self, sample: &Sample) -> Option<f64> {
        let (Estimator::Centre(of) | Estimator::CentreUnless(_, of) | Estimator::PerCentre(_, of)) =
            self.estimator
        else {
            return None;
        };
        let cost = of_good(sample, of)?;
        (cost.is_finite() && cost > 0.0).then_some(cost)
    }

    /// Returns the figure's value in one sample without an error, which may be 0; `None` if the sample has none, or the
    /// figure is a ratio of sums.
    pub fn in_sample(&self, sample: &Sample) -> Option<f64> {
        match self.estimator {
            Estimator::Centre(_) | Estimator::CentreUnless(..) | Estimator::PerCentre(..) => {
                self.of_sample(sample)
            }
            Estimator::Median(of) => of_good(sample, of),
            Estimator::Ratio(_) => None,
        }
    }

    /// Returns this figure's cost in each block (round) of the samples, which
    /// [`Difference`](crate::compare::Difference) compares; none for a ratio or a median.
    pub fn values<'a>(&self, samples: &Samples<'a>) -> Values<'a> {
        if let Estimator::CentreUnless(count, _) = self.estimator
            && samples.iter().any(|sample| sample.counts.contains_key(count))
        {
            return Values::default();
        }
        samples.values(|sample| self.of_sample(sample))
    }

    /// Returns the figure's value in each block (round) of the samples, in the order of the blocks. A figure that is a
    /// ratio or a median has none.
    pub fn in_blocks(&self, samples: &Samples<'_>) -> Vec<f64> {
        let costs = self.values(samples).to_vec();
        match self.estimator {
            Estimator::PerCentre(number, _) => costs.iter().map(|cost| number / cost).collect(),
            _ => costs,
        }
    }

    /// Returns the estimated value of a figure as text, with its unit.
    pub fn write(&self, estimate: &Estimate) -> String {
        self.quantity.write(estimate.value)
    }

    /// Returns the estimated value of a figure with its interval as text, such as `97.0 ns (93.0 to 101)`, in one unit.
    pub fn write_within(&self, estimate: &Estimate) -> String {
        let value = self.write(estimate);
        let Some(ends) = estimate.interval else { return value };
        let [low, high] = [ends.low, ends.high].map(|end| self.quantity.write(end));
        let unit = value.rfind(NBSP).map_or("", |at| &value[at..]);
        let short = low.strip_suffix(unit).zip(high.strip_suffix(unit));
        let (low, high) = short.unwrap_or((&low, &high));
        format!("{value} ({low} to {high})")
    }

    /// Returns the arithmetic mean of a figure's values in all blocks (rounds of a measurement) as text; `None` if it
    /// is unknown.
    pub fn write_mean(&self, estimate: &Estimate) -> Option<String> {
        estimate.mean.map(|mean| self.quantity.write(mean))
    }

    /// Returns the median absolute deviation of a figure between the blocks (rounds) of a measurement as text, as a
    /// share of the estimate; `None` if it is not known.
    pub fn write_spread(&self, estimate: &Estimate) -> Option<String> {
        let share = estimate.mad? / estimate.value.abs().max(f64::MIN_POSITIVE);
        Some(Quantity::Share.write(share))
    }
}

impl Estimate {
    /// Creates an estimate without interval or spread, for a value that is exact.
    pub fn exact(value: f64) -> Self {
        Self { value, interval: None, mad: None, mean: None }
    }

    /// Returns the estimate with another 95 % interval, `interval`, or without one.
    #[must_use]
    pub fn within(self, interval: impl Into<Option<Interval>>) -> Self {
        Self { interval: interval.into(), ..self }
    }

    /// Returns `number` divided by the estimate, which turns the estimate of a time into that of a rate.
    #[must_use]
    pub fn inverse(self, number: f64) -> Self {
        let turned = |ends: Interval| Interval { low: number / ends.high, high: number / ends.low };
        // The deviation is the same part of the value.
        let mad = self.mad.map(|mad| number / self.value * (mad / self.value));
        // The rate of a mean cost: all operations over all time.
        let mean = self.mean.map(|mean| number / mean);
        Self { value: number / self.value, interval: self.interval.map(turned), mad, mean }
    }
}

impl From<Centre> for Estimate {
    fn from(centre: Centre) -> Self {
        Self {
            value: centre.value,
            interval: centre.interval,
            mad: (centre.count > 1).then_some(centre.mad),
            mean: Some(centre.mean),
        }
    }
}

/// Returns the ends of an interval of relative changes as text, in the form of factors: `0.98 to 1.02`.
pub fn write_factors(ends: Interval) -> String {
    let Interval { low, high } = ends.factors();
    Quantity::Factor.write_range(low, high)
}

/// Returns the value of a count that the runner reported by this name, over all samples, including errors: the sum, or
/// for times (`_ns`) the longest. Returns `None` if no sample has the count.
pub fn count(samples: &Samples<'_>, name: &str) -> Option<u64> {
    let counts = samples.iter().filter_map(|sample| sample.counts.get(name).copied());
    counts.reduce(|a, b| if is_time(name) { a.max(b) } else { a.saturating_add(b) })
}

/// Returns the quantity of a runner's count by the count's name: a time (`_ns`) or a number.
pub fn quantity_of_count(name: &str) -> Quantity {
    if is_time(name) { Quantity::Time } else { Quantity::Number }
}

fn is_time(count: &str) -> bool {
    count.ends_with("_ns")
}

/// Returns the quantity of a sample; `None` of an error.
fn of_good(sample: &Sample, of: OfSample) -> Option<f64> {
    if sample.error.is_none() { of(sample) } else { None }
}

/// Returns the samples that were measured.
fn good<'a>(samples: &Samples<'a>) -> Samples<'a> {
    samples.iter().copied().filter(|sample| sample.error.is_none()).collect()
}

#[cfg(test)]
mod tests;
