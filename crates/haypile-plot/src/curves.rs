//! Draws lines, markers and the bands of their errors.

use crate::axis::{CapacityAxis, RatioAxis, lower, upper};
use crate::drawing::canvas::{Canvas, Place, Stroke};
use crate::drawing::marks::{Mark, Marks};
use crate::series::Series;
use crate::{Point, Style};

/// Width of the line of a curve in a chart, in pixels.
pub(super) const CURVE_PX: f64 = 4.5;

const MARKER_PX: f64 = 8.0;

/// Least distance between two markers on a line, in pixels.
const MARKER_GAP_PX: f64 = 26.0;

/// Markers closer than this cannot be told apart, in pixels.
const MARKER_STEP_PX: f64 = 1.0;

/// Length of the line in a sample, in pixels.
const SAMPLE_LINE_PX: f64 = 44.0;

const BAND_OPACITY: f64 = 0.18;

/// The rectangle in a picture in which curves are drawn, in pixels, with its axes.
pub(super) struct Frame {
    pub(super) x: CapacityAxis,
    pub(super) y: RatioAxis,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) foot: f64,
}

impl Frame {
    fn at(&self, capacity: u64, ratio: f64) -> Place {
        let x = self.left + self.x.at(capacity) * (self.right - self.left);
        let y = self.foot - self.y.at(ratio) * (self.foot - self.top);
        (x, y)
    }
}

/// The corners of a line through the points, as its style goes.
fn path(style: Style, points: &[Place]) -> Vec<Place> {
    let mut path: Vec<Place> = Vec::with_capacity(points.len());
    for &place in points {
        if let (Style::Step, Some(&(_, y))) = (style, path.last()) {
            path.push((place.0, y));
        }
        path.push(place);
    }
    path
}

/// A curve of a chart, ready to be drawn: its points as pixel positions in the picture, and its colour, marker and
/// dashes.
pub(super) struct Drawn<'a> {
    pub(super) series: &'a Series<'a>,
    pub(super) mark: Mark,
    style: Style,
    places: Vec<Place>,
}

impl<'a> Drawn<'a> {
    pub(super) fn new(series: &'a Series<'a>, frame: &Frame, marks: &mut Marks) -> Self {
        let place = |point: &Point| frame.at(point.capacity, point.miss_ratio);
        let places: Vec<Place> = series.points.iter().map(place).collect();
        // A line that short cannot be seen.
        let is_dot = places.iter().all(|&place| distance(place, places[0]) < CURVE_PX);
        let style = if is_dot { Style::Markers } else { series.curve.style };
        let mark = marks.next(series.curve.optimum, shows_markers(style));
        Self { series, mark, style, places }
    }

    /// Returns the position in the picture of the curve's highlighted point and its cache size; `None` if no point is
    /// highlighted.
    pub(super) fn chosen(&self) -> Option<(Place, u64)> {
        let at = self.series.chosen()?;
        Some((self.places[at], self.series.points[at].capacity))
    }

    /// Returns the position in the picture of the curve's last point.
    pub(super) fn end(&self) -> Place {
        self.places[self.places.len() - 1]
    }

    pub(super) fn draw_errors(&self, canvas: &Canvas, frame: &Frame) {
        let points = &self.series.points;
        if points.iter().all(|point| point.error == 0.0) {
            return;
        }
        let edge = |of: fn(&Point) -> f64| -> Vec<Place> {
            points.iter().map(|point| frame.at(point.capacity, of(point))).collect()
        };
        let (above, below) = (edge(upper), edge(lower));
        if self.style == Style::Markers {
            let colour = self.mark.colour.into();
            let bar = Stroke { colour, width_px: CURVE_PX / 2.0, dashes: None };
            let bars = above.into_iter().zip(below);
            return bars.for_each(|(above, below)| canvas.line(&[above, below], bar));
        }
        let mut outline = path(self.style, &above);
        outline.extend(path(self.style, &below).into_iter().rev());
        canvas.polygon(&outline, self.mark.colour.at(BAND_OPACITY));
    }

    pub(super) fn draw(&self, canvas: &Canvas) {
        if self.style != Style::Markers {
            canvas.line(&path(self.style, &self.places), self.stroke());
        }
        if !shows_markers(self.style) {
            return;
        }
        let gap_px = if self.style == Style::Markers { MARKER_STEP_PX } else { MARKER_GAP_PX };
        let mut last: Option<Place> = None;
        for &place in &self.places {
            if last.is_none_or(|last| distance(last, place) >= gap_px) {
                canvas.marker(place, self.mark, MARKER_PX);
                last = Some(place);
            }
        }
    }

    /// Draws a short piece of the curve's line that begins at `start`, for a legend or a label.
    pub(super) fn draw_sample(&self, canvas: &Canvas, start: Place) {
        let (x, y) = start;
        if self.style != Style::Markers {
            canvas.line(&[start, (x + SAMPLE_LINE_PX, y)], self.stroke());
        }
        if shows_markers(self.style) {
            canvas.marker((x + SAMPLE_LINE_PX / 2.0, y), self.mark, MARKER_PX);
        }
    }

    fn stroke(&self) -> Stroke {
        let Mark { colour, dashes, .. } = self.mark;
        Stroke { colour: colour.into(), width_px: CURVE_PX, dashes }
    }
}

fn shows_markers(style: Style) -> bool {
    matches!(style, Style::Markers | Style::LineAndMarkers)
}

fn distance(a: Place, b: Place) -> f64 {
    (a.0 - b.0).hypot(a.1 - b.1)
}
