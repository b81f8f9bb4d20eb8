//! One cell of a table.

use std::ops::Neg;

use haypile_measure::compare::Metric;
use haypile_measure::result::Samples;
use haypile_measure::statistics::{Effect, Summary};
use haypile_number::grouped;

use super::marker::{Figure, Marker};

/// The mark of a cell where nothing was measured.
const NOTHING: &str = "-";

/// The samples of a cell, and those of the baseline in its place.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell<'a> {
    pub(super) samples: Samples<'a>,
    pub(super) baseline: Samples<'a>,
}

impl Cell<'_> {
    /// A figure of the cell for people.
    pub(super) fn figure(&self, figure: &Figure, marker: &Marker) -> String {
        if let Figure::Count(name) = figure {
            return self.count(name).map_or_else(|| NOTHING.to_owned(), |count| shown(name, count));
        }
        let errors = self.samples.iter().filter(|sample| sample.error.is_some()).count();
        if errors > 0 && errors == self.samples.len() {
            return "error".to_owned();
        }
        match figure {
            Figure::Cost(metric) => self.cost(*metric),
            Figure::Times => self.times(marker.metric),
            Figure::HitRatio => ratio(self.samples.hit_ratio()),
            Figure::ByteHitRatio | Figure::MeanByteHitRatio => ratio(self.byte_hit_ratio()),
            Figure::Samples if errors > 0 => {
                format!("{}, {errors} of them errors", self.samples.len())
            }
            Figure::Samples => self.samples.len().to_string(),
            Figure::Count(_) => unreachable!("it was shown above"),
        }
    }

    /// The number by which a figure sorts; what was not measured comes last.
    pub(super) fn rank(&self, figure: &Figure, marker: &Marker) -> f64 {
        let summary = |metric| self.summary(metric).map(|summary| summary.median);
        let rank = match figure {
            Figure::Cost(metric) => summary(*metric),
            Figure::Times => summary(marker.metric),
            // The best first, as with costs.
            Figure::HitRatio => self.samples.hit_ratio().map(Neg::neg),
            Figure::ByteHitRatio | Figure::MeanByteHitRatio => self.byte_hit_ratio().map(Neg::neg),
            Figure::Count(name) => self.count(name).map(|count| count as f64),
            Figure::Samples => None,
        };
        rank.unwrap_or(f64::INFINITY)
    }

    /// Counts of wrong results are valid as well.
    fn count(&self, name: &str) -> Option<u64> {
        let counts = self.samples.iter().filter_map(|sample| sample.counts.get(name).copied());
        counts.reduce(|a, b| if is_time(name) { a.max(b) } else { a.saturating_add(b) })
    }

    fn summary(&self, metric: Metric) -> Option<Summary> {
        let costs: Vec<f64> = self.samples.iter().filter_map(|it| metric.of(it)).collect();
        Summary::of(&costs)
    }

    fn cost(&self, metric: Metric) -> String {
        match self.summary(metric) {
            None => NOTHING.to_owned(),
            Some(summary) if metric == Metric::Memory => metric.figure(summary.median),
            Some(summary) => {
                format!("{} ({})", metric.figure(summary.median), metric.figure(summary.mad))
            }
        }
    }

    fn times(&self, metric: Metric) -> String {
        let pairs = self.baseline.paired(&self.samples, |sample| metric.of(sample));
        let Ok(effect) = Effect::paired(&pairs) else { return NOTHING.to_owned() };
        let ratio = format!("{:.2}", effect.ratio());
        match effect.interval() {
            Some(ends) if self.samples != self.baseline => {
                format!("{ratio} ({:.2}-{:.2})", ends.low + 1.0, ends.high + 1.0)
            }
            _ => ratio,
        }
    }

    pub(super) fn byte_hit_ratio(&self) -> Option<f64> {
        self.samples.byte_hit_ratio()
    }
}

/// Whether a count is a time in nanoseconds.
pub(super) fn is_time(count: &str) -> bool {
    count.ends_with("_ns")
}

/// A count for people, a time in milliseconds.
fn shown(name: &str, count: u64) -> String {
    if is_time(name) { format!("{:.1}", count as f64 / 1e6) } else { grouped(count) }
}

/// A ratio for people.
pub(super) fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or(NOTHING.to_owned(), |ratio| format!("{ratio:.3}"))
}
