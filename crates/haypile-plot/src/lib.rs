//! Charts as SVG documents: miss-ratio curves for a talk or a report, and the axes and pieces that the laboratory's
//! charts are drawn with as well.
//!
//! The names stand at the ends of the lines, in the order of the lines, so that a chart needs no
//! legend. Colours are those of Okabe and Ito ("Color Universal Design", 2008) that have
//! enough contrast on white, and every curve differs from the others by its marker or its dashes
//! too, so that neither colour vision nor a colour printer is needed. The same chart has the same
//! bytes on every machine; its letters have the font of the machine that shows it.
//!
//! ```
//! use haypile_plot::{Chart, Curve, Point, Style, Unit};
//!
//! let point = |capacity, miss_ratio| Point { capacity, miss_ratio, error: 0.0 };
//! let sieve = Curve {
//!     name: "sieve".to_owned(),
//!     points: vec![point(1 << 20, 0.52), point(8 << 20, 0.31), point(64 << 20, 0.12)],
//!     style: Style::LineAndMarkers,
//!     optimum: false,
//!     chosen: Some(8 << 20),
//! };
//! let chart = Chart {
//!     title: "Where the knee is".to_owned(),
//!     subtitle: None,
//!     x_label: "cache size".to_owned(),
//!     unit: Unit::Bytes,
//!     curves: vec![sieve],
//!     log_x: true,
//! };
//! assert!(chart.svg()?.contains("8\u{a0}MiB"));
//! # Ok::<(), haypile_plot::PlotError>(())
//! ```

pub mod axis;
mod curves;
mod draw;
pub mod drawing;
mod error;
mod series;

use std::path::Path;

pub use error::PlotError;

/// The largest number of curves in one chart, which people can still distinguish.
pub const MAX_CURVES: usize = 24;

/// A chart of miss ratios over cache sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The title of the chart, in a few words; shortened if it is wider than the picture.
    pub title: String,
    /// A smaller line under the chart's title: the trace, its length, and what was sampled.
    pub subtitle: Option<String>,
    /// The label of the chart's horizontal axis, such as "cache size".
    pub x_label: String,
    /// The unit of the cache sizes in the chart: bytes or objects.
    pub unit: Unit,
    /// The curves of the chart; their number is from 1 to [`MAX_CURVES`].
    pub curves: Vec<Curve>,
    /// Whether the horizontal axis of the chart is logarithmic, so that it cannot show a cache size of 0.
    pub log_x: bool,
}

/// The unit of the cache sizes in a chart, which determines their notation on the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Entries, written 1,000, 5,000, 2M.
    Objects,
    /// Bytes, written in powers of two: 64 KiB, 1 MiB.
    Bytes,
}

/// One curve of a chart of miss ratios over cache sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The name of the curve, drawn at the end of its line; shortened in its middle if it is long.
    pub name: String,
    /// The points of the curve: at least one, in any order.
    pub points: Vec<Point>,
    /// The style in which the points of the curve are drawn.
    pub style: Style,
    /// Whether this curve is the offline optimum that no policy can beat. It is drawn dashed and without colour,
    /// because no real cache attains it.
    pub optimum: bool,
    /// The cache size of the curve's recommended point, one of [`points`](Self::points), which the chart highlights
    /// with a ring, a line to the axis, and its size above the plot.
    pub chosen: Option<u64>,
}

/// A point of a curve: the miss ratio at one cache size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The cache size at this point, in the chart's [`Unit`].
    pub capacity: u64,
    /// The miss ratio at this cache size: misses divided by reads, from 0 to 1.
    pub miss_ratio: f64,
    /// Half the width of the error interval of the miss ratio; 0 if it is exact. Drawn as a band around a line, or as a
    /// bar through a marker that has no line.
    pub error: f64,
}

/// A style in which the points of a curve are drawn: as a line, as markers, or both.
///
/// A curve of one point is a marker in every style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A line, for a curve with too many points to mark.
    Line,
    /// Markers alone: measured sizes between which nothing is known.
    Markers,
    /// Markers on a line: measured sizes. Where they would touch, some markers are left out.
    LineAndMarkers,
    /// A level line from each point to the capacity of the next.
    Step,
}

impl Chart {
    /// Returns the chart as an SVG document of 1280 by 720 pixels, with a text alternative, without
    /// scripts and without external files.
    ///
    /// # Errors
    /// [`PlotError::NoCurves`], [`PlotError::TooManyCurves`], [`PlotError::NoPoints`] and
    /// [`PlotError::BadPoint`] if there is nothing to draw, too much of it, or a point that has no
    /// place.
    pub fn svg(&self) -> Result<String, PlotError> {
        draw::svg(self)
    }
}

/// Checks that the extension of `path` is `svg`, the format of all charts.
///
/// # Errors
/// [`PlotError::Png`] for the extension `png`, and [`PlotError::Extension`] for another or none.
pub fn check_path(path: &Path) -> Result<(), PlotError> {
    let extension = path.extension().unwrap_or_default();
    if extension.eq_ignore_ascii_case("svg") {
        Ok(())
    } else if extension.eq_ignore_ascii_case("png") {
        Err(PlotError::Png { path: path.to_path_buf() })
    } else {
        Err(PlotError::Extension { path: path.to_path_buf() })
    }
}
