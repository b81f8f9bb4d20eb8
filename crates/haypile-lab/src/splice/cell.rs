//! The cell of a table.

use std::ops::Neg;

use haypile_measure::compare::Metric;
use haypile_measure::figure;
use haypile_measure::result::Samples;
use haypile_measure::statistics::Effect;
use haypile_number::Quantity;

use super::marker::{Figure, Marker};

/// The mark of a cell where nothing was measured.
const NOTHING: &str = "-";

/// The samples behind a cell of a document's table, and those of the baseline (the cache that the
/// others are compared with).
#[derive(Clone, Debug, Default)]
pub(super) struct Cell<'a> {
    pub(super) samples: Samples<'a>,
    pub(super) baseline: Samples<'a>,
}

impl Cell<'_> {
    /// Returns a figure (such as processor time) of the table cell's samples, as text.
    pub(super) fn figure(&self, figure: &Figure, marker: &Marker) -> String {
        if let Figure::Count(name) = figure {
            let count = figure::count(&self.samples, name);
            let write = |count| figure::quantity_of_count(name).write(count as f64);
            return count.map_or_else(|| NOTHING.to_owned(), write);
        }
        let errors = self.samples.iter().filter(|sample| sample.error.is_some()).count();
        if errors > 0 && errors == self.samples.len() {
            return "error".to_owned();
        }
        match figure {
            Figure::Times => self.times(marker.metric),
            Figure::Of(figure) => self.written(figure),
            Figure::MeanByteHitRatio => ratio(self.byte_hit_ratio()),
            Figure::Samples if errors > 0 => {
                format!("{}, {errors} of them errors", self.samples.len())
            }
            Figure::Samples => self.samples.len().to_string(),
            Figure::Count(_) => unreachable!("it was shown above"),
        }
    }

    /// Returns the number (such as processor time) by which a table's cell is sorted among others,
    /// the lowest first; cells without results come last.
    pub(super) fn rank(&self, figure: &Figure, marker: &Marker) -> f64 {
        let value = |figure: &figure::Figure| figure.of(&self.samples).map(|found| found.value);
        let rank = match figure {
            // The best first, as with costs.
            Figure::Of(figure) if figure.quantity == Quantity::HitRatio => {
                value(figure).map(Neg::neg)
            }
            Figure::Of(figure) => value(figure),
            Figure::Times => value(marker.metric.figure()),
            Figure::MeanByteHitRatio => self.byte_hit_ratio().map(Neg::neg),
            Figure::Count(name) => figure::count(&self.samples, name).map(|count| count as f64),
            Figure::Samples => None,
        };
        rank.unwrap_or(f64::INFINITY)
    }

    fn written(&self, figure: &figure::Figure) -> String {
        let Some(found) = figure.of(&self.samples) else { return NOTHING.to_owned() };
        match figure.write_spread(&found) {
            // Memory is what it is in every block.
            Some(spread) if figure.quantity == Quantity::Time => {
                format!("{} ({spread})", figure.write(&found))
            }
            _ => figure.write(&found),
        }
    }

    fn times(&self, metric: Metric) -> String {
        let [old, new] = [&self.baseline, &self.samples].map(|it| metric.figure().values(it));
        let Ok(effect) = Effect::paired(&old.paired(&new)) else { return NOTHING.to_owned() };
        let ratio = Quantity::Factor.write(effect.ratio());
        match effect.interval() {
            Some(ends) if self.samples != self.baseline => {
                format!("{ratio} ({})", figure::write_factors(ends))
            }
            _ => ratio,
        }
    }

    pub(super) fn byte_hit_ratio(&self) -> Option<f64> {
        figure::BYTE_HIT_RATIO.of(&self.samples).map(|found| found.value)
    }
}

/// Returns a hit ratio as text, or a dash for `None`.
pub(super) fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or(NOTHING.to_owned(), |ratio| Quantity::HitRatio.write(ratio))
}
