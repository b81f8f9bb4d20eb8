//! Draws lines, markers and the bands of their errors.

use plotters::style::{Color, WHITE};

use super::axis::{CapacityAxis, RatioAxis, lower, upper};
use super::canvas::{Canvas, Place, Stroke};
use super::marks::{Mark, Marker};
use super::series::Series;
use super::{PlotError, Point, Style};

/// Width of a line, in pixels.
pub(super) const CURVE_PX: f64 = 4.5;

const MARKER_PX: f64 = 8.0;

/// A rim of white keeps markers on crossing lines apart.
const RIM_PX: f64 = 1.8;

/// Least distance between two markers on a line, in pixels.
const MARKER_GAP_PX: f64 = 26.0;

/// Length of the line in a sample, in pixels.
const SAMPLE_LINE_PX: f64 = 36.0;

const BAND_OPACITY: f64 = 0.18;

/// Where the plot lies on the picture, in pixels, and what its sides mean.
pub(super) struct Frame {
    pub(super) x: CapacityAxis,
    pub(super) y: RatioAxis,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) foot: f64,
}

impl Frame {
    pub(super) fn place(&self, point: Point) -> Place {
        self.at(point.capacity, point.miss_ratio)
    }

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

pub(super) fn draw_band(
    canvas: &Canvas<'_>,
    frame: &Frame,
    series: &Series<'_>,
    mark: Mark,
) -> Result<(), PlotError> {
    let (style, points) = (series.curve.style, &series.points);
    if points.iter().all(|point| point.error == 0.0) {
        return Ok(());
    }
    let edge = |of: fn(&Point) -> f64| -> Vec<Place> {
        points.iter().map(|point| frame.at(point.capacity, of(point))).collect()
    };
    let (above, below) = (edge(upper), edge(lower));
    if style == Style::Markers || points.len() == 1 {
        let bar = Stroke { colour: mark.colour.to_rgba(), width_px: CURVE_PX / 2.0, dashes: None };
        return above
            .into_iter()
            .zip(below)
            .try_for_each(|ends| canvas.line(&[ends.0, ends.1], bar));
    }
    let mut outline = path(style, &above);
    outline.extend(path(style, &below).into_iter().rev());
    canvas.polygon(&outline, mark.colour.mix(BAND_OPACITY))
}

pub(super) fn draw_curve(
    canvas: &Canvas<'_>,
    frame: &Frame,
    series: &Series<'_>,
    mark: Mark,
) -> Result<(), PlotError> {
    let style = series.curve.style;
    let places: Vec<Place> = series.points.iter().map(|&point| frame.place(point)).collect();
    if style != Style::Markers {
        canvas.line(&path(style, &places), stroke(mark))?;
    }
    let mut last: Option<Place> = None;
    for &place in &places {
        let shown = match style {
            Style::Markers => true,
            Style::LineAndMarkers => last.is_none_or(|last| distance(last, place) >= MARKER_GAP_PX),
            // A line without length cannot be seen.
            Style::Line | Style::Step => places.iter().all(|&other| other == place),
        };
        if shown && last != Some(place) {
            draw_marker(canvas, place, mark)?;
            last = Some(place);
        }
    }
    Ok(())
}

/// A short piece of the line that starts at `start`.
pub(super) fn draw_sample(
    canvas: &Canvas<'_>,
    start: Place,
    style: Style,
    mark: Mark,
) -> Result<(), PlotError> {
    let (x, y) = start;
    if style != Style::Markers {
        canvas.line(&[start, (x + SAMPLE_LINE_PX, y)], stroke(mark))?;
    }
    if matches!(style, Style::Markers | Style::LineAndMarkers) {
        draw_marker(canvas, (x + SAMPLE_LINE_PX / 2.0, y), mark)?;
    }
    Ok(())
}

fn stroke(mark: Mark) -> Stroke {
    Stroke { colour: mark.colour.to_rgba(), width_px: CURVE_PX, dashes: mark.dashes }
}

fn draw_marker(canvas: &Canvas<'_>, centre: Place, mark: Mark) -> Result<(), PlotError> {
    for (colour, size_px) in [(WHITE, MARKER_PX + RIM_PX), (mark.colour, MARKER_PX)] {
        if mark.marker == Marker::Circle {
            canvas.circle(centre, size_px, colour)?;
            continue;
        }
        let corner = |&(x, y): &Place| (centre.0 + x * size_px, centre.1 + y * size_px);
        let corners: Vec<Place> = mark.marker.corners().iter().map(corner).collect();
        canvas.polygon(&corners, colour.to_rgba())?;
    }
    Ok(())
}

fn distance(a: Place, b: Place) -> f64 {
    (a.0 - b.0).hypot(a.1 - b.1)
}
