//! Errors of charts.

use std::path::PathBuf;

use crate::MAX_CURVES;

/// The error of a chart that cannot be drawn, or of a path for it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// The chart is empty.
    #[error("the chart has no curves; add at least one")]
    NoCurves,
    /// More curves than people can distinguish.
    #[error("the chart has {curves} curves; draw at most {MAX_CURVES}")]
    TooManyCurves {
        /// The number of curves given.
        curves: usize,
    },
    /// A curve is empty.
    #[error("the curve '{curve}' has no points; add at least one, or omit the curve")]
    NoPoints {
        /// The name of the curve.
        curve: String,
    },
    /// A point has no place on the chart.
    #[error("cannot draw the curve '{curve}' at capacity {capacity}: {problem}")]
    BadPoint {
        /// The name of the curve.
        curve: String,
        /// The capacity of the point.
        capacity: u64,
        /// The reason why the point has no place.
        problem: String,
    },
    /// The path has the extension of a PNG image, which other programs make of the SVG document.
    #[error(
        "cannot write a chart as PNG: write '{svg}' and convert it, for example by 'rsvg-convert {svg} -o {png}'",
        svg = path.with_extension("svg").display(),
        png = path.display()
    )]
    Png {
        /// The path given.
        path: PathBuf,
    },
    /// The path has no known extension.
    #[error("cannot write a chart as '{}': unknown ending (known: .svg)", path.display())]
    Extension {
        /// The path given.
        path: PathBuf,
    },
    /// The picture has no size that can be drawn.
    #[error("cannot draw the chart: {reason}")]
    Drawing {
        /// The size asked for, and the limit.
        reason: String,
    },
}
