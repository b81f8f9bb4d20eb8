//! Why a chart cannot be drawn.

use std::io;
use std::path::PathBuf;

use super::{MAX_CURVES, MAX_WIDTH_PX, MIN_WIDTH_PX};

/// A chart that cannot be drawn or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// The chart is empty.
    #[error("the chart has no curves; give at least one")]
    NoCurves,
    /// More curves than anybody can tell apart.
    #[error("the chart has {curves} curves, and {MAX_CURVES} at most can be told apart")]
    TooManyCurves {
        /// The curves given.
        curves: usize,
    },
    /// A curve is empty.
    #[error("the curve '{curve}' has no points; give at least one, or leave the curve out")]
    NoPoints {
        /// The name of the curve.
        curve: String,
    },
    /// A point has no place on the chart.
    #[error("the curve '{curve}' cannot be drawn at capacity {capacity}: {problem}")]
    BadPoint {
        /// The name of the curve.
        curve: String,
        /// The capacity of the point.
        capacity: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// An image too small to read or too large to draw.
    #[error("an image cannot be {width_px} pixels wide; from {MIN_WIDTH_PX} to {MAX_WIDTH_PX} can")]
    Width {
        /// The width asked for, in pixels.
        width_px: u32,
    },
    /// The path does not say what to write.
    #[error("a chart cannot be written as '{}': its name must end in .svg or .png", path.display())]
    Extension {
        /// The path given.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("cannot write the chart to '{}': {source}", path.display())]
    Io {
        /// The path given.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A drawing library failed.
    #[error("the chart cannot be drawn: {reason}")]
    Drawing {
        /// What the library said.
        reason: String,
    },
}

impl PlotError {
    pub(super) fn drawing(error: impl std::fmt::Display) -> Self {
        Self::Drawing { reason: error.to_string() }
    }
}
