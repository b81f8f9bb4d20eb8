//! Errors of charts.

use std::io;
use std::path::PathBuf;

use super::{MAX_CURVES, MAX_WIDTH_PX, MIN_WIDTH_PX};

/// Error of a chart that cannot be drawn or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// The chart is empty.
    #[error("the chart has no curves; add at least one")]
    NoCurves,
    /// More curves than people can distinguish.
    #[error("the chart has {curves} curves; draw at most {MAX_CURVES}")]
    TooManyCurves {
        /// The curves given.
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
        /// The problem with it.
        problem: String,
    },
    /// An image too small to read or too large to draw.
    #[error("invalid width {width_px} (from {MIN_WIDTH_PX} to {MAX_WIDTH_PX} pixels)")]
    Width {
        /// The width asked for, in pixels.
        width_px: u32,
    },
    /// The path has no known extension.
    #[error("cannot write a chart as '{}': unknown ending (known: .svg, .png)", path.display())]
    Extension {
        /// The path given.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("cannot write the chart to '{}': {source}", path.display())]
    Io {
        /// The path given.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A drawing library failed.
    #[error("cannot draw the chart: {reason}")]
    Drawing {
        /// The library's error.
        reason: String,
    },
}

impl PlotError {
    pub(super) fn drawing(error: impl std::fmt::Display) -> Self {
        Self::Drawing { reason: error.to_string() }
    }
}
