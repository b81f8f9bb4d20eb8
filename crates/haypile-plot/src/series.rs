//! Curves of a chart, checked and sorted.

use crate::drawing::text::printable;
use crate::{Chart, Curve, MAX_CURVES, PlotError, Point};

/// A checked curve of a chart, with its points in ascending order of cache size.
pub(super) struct Series<'a> {
    pub(super) curve: &'a Curve,
    pub(super) name: String,
    pub(super) points: Vec<Point>,
}

impl Series<'_> {
    pub(super) fn first(&self) -> Point {
        self.points[0]
    }

    pub(super) fn last(&self) -> Point {
        self.points[self.points.len() - 1]
    }

    /// Returns the index of the curve's highlighted point; `None` if it has none.
    pub(super) fn chosen(&self) -> Option<usize> {
        let capacity = self.curve.chosen?;
        self.points.iter().position(|point| point.capacity == capacity)
    }

    pub(super) fn mean(&self) -> f64 {
        let sum: f64 = self.points.iter().map(|point| point.miss_ratio).sum();
        sum / self.points.len() as f64
    }
}

/// Checks the number of a chart's curves and their points, and returns the curves with their points sorted by cache
/// size.
pub(super) fn check(chart: &Chart) -> Result<Vec<Series<'_>>, PlotError> {
    match chart.curves.len() {
        0 => return Err(PlotError::NoCurves),
        1..=MAX_CURVES => {}
        curves => return Err(PlotError::TooManyCurves { curves }),
    }
    chart.curves.iter().map(|curve| series(curve, chart.log_x)).collect()
}

fn series(curve: &Curve, log_x: bool) -> Result<Series<'_>, PlotError> {
    let name = printable(&curve.name);
    if curve.points.is_empty() {
        return Err(PlotError::NoPoints { curve: name });
    }
    for point in &curve.points {
        if let Some(problem) = problem(*point, log_x) {
            return Err(PlotError::BadPoint { curve: name, capacity: point.capacity, problem });
        }
    }
    if let Some(capacity) = curve.chosen
        && curve.points.iter().all(|point| point.capacity != capacity)
    {
        let problem = "the point to take is one of the curve".to_owned();
        return Err(PlotError::BadPoint { curve: name, capacity, problem });
    }
    let mut points = curve.points.clone();
    points.sort_by_key(|point| point.capacity);
    Ok(Series { curve, name, points })
}

fn problem(Point { capacity, miss_ratio, error }: Point, log_x: bool) -> Option<String> {
    if !(0.0..=1.0).contains(&miss_ratio) {
        return Some(format!("a miss ratio is from 0 to 1, not {miss_ratio}"));
    }
    if !(error.is_finite() && error >= 0.0) {
        return Some(format!("an error is a number from 0 up, not {error}"));
    }
    (log_x && capacity == 0).then(|| "a logarithmic axis has no place for 0".to_owned())
}
