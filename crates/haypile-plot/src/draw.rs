//! Lays a chart out and draws it.

use crate::axis::{CapacityAxis, RatioAxis, capacity, lower, percent, upper};
use crate::curves::{CURVE_PX, Drawn, Frame};
use crate::drawing::canvas::{self, Canvas, Lettering, Size, Stroke};
use crate::drawing::marks::Marks;
use crate::drawing::spread::spread;
use crate::drawing::text::{cut, printable, shorten_apart, width_em};
use crate::drawing::{GRID, HPos, INK, SOFT_INK, VPos};
use crate::series::{Series, check};
use crate::{Chart, PlotError, Point};

const SIZE: Size = Size { width_px: 1280, height_px: 720 };

const LEFT_PX: f64 = 116.0;
const TOP_PX: f64 = 190.0;
const FOOT_PX: f64 = 618.0;
const EDGE_PX: f64 = 28.0;

const TITLE_PX: f64 = 40.0;
const SUBTITLE_PX: f64 = 25.0;
const AXIS_PX: f64 = 25.0;
const NAME_PX: f64 = 27.0;

/// A long title is written this small before it is cut.
const SMALL_TITLE_PX: f64 = 32.0;

/// Widest name.
const MAX_NAME_PX: f64 = 330.0;

/// From the plot to the sample of a line before its name, and from there to the name.
const LEADER_PX: f64 = 30.0;
const SAMPLE_PX: f64 = 54.0;

/// Radius of the ring around a chosen point, and the corners of which it is made.
const RING_PX: f64 = 16.0;
const RING_CORNERS: u32 = 48;

/// Widest name of a chosen point, and the place that the name of the axis takes before it.
const CHOSEN_PX: f64 = 420.0;
const CHOSEN_GAP_PX: f64 = 60.0;

const LEADER_OPACITY: f64 = 0.55;

pub(super) fn svg(chart: &Chart) -> Result<String, PlotError> {
    let series = check(chart)?;
    let points = || series.iter().flat_map(|series| &series.points).copied();
    let capacities = points().map(|point| point.capacity);
    let layout = PlotLayout::new(chart, &series);
    let frame = Frame {
        x: CapacityAxis::new(chart.unit, chart.log_x, capacities),
        y: RatioAxis::new(points().flat_map(|point| [lower(&point), upper(&point)])),
        left: LEFT_PX,
        right: layout.right,
        top: layout.top,
        foot: FOOT_PX,
    };
    let mut marks = Marks::default();
    let drawn: Vec<Drawn<'_>> =
        series.iter().map(|series| Drawn::new(series, &frame, &mut marks)).collect();
    let description = description(chart, &series);
    canvas::document(SIZE, &printable(&chart.title), &description, |canvas| {
        draw_heading(canvas, chart);
        draw_axes(canvas, chart, &frame);
        for curve in &drawn {
            curve.draw_errors(canvas, &frame);
        }
        for curve in &drawn {
            curve.draw(canvas);
        }
        draw_chosen(canvas, chart, &frame, &drawn);
        draw_names(canvas, &frame, &layout, &drawn);
    })
}

/// Returns the text alternative of the picture.
fn description(chart: &Chart, series: &[Series<'_>]) -> String {
    let end = |point: Point| {
        format!("{} at {}", percent(point.miss_ratio), capacity(point.capacity, chart.unit))
    };
    let sentence = |series: &Series<'_>| match series.points.len() {
        1 => format!(" {}: {}.", series.name, end(series.first())),
        _ => format!(" {}: {}, {}.", series.name, end(series.first()), end(series.last())),
    };
    let curves: String = series.iter().map(sentence).collect();
    let chosen = |series: &Series<'_>| {
        let point = series.points[series.chosen()?];
        Some(format!(" To take: {}, {}.", series.name, end(point)))
    };
    let chosen: String = series.iter().filter_map(chosen).collect();
    format!("Miss ratio by {}.{curves}{chosen}", printable(&chart.x_label))
}

/// Layout, which depends on the length and number of the names.
struct PlotLayout {
    /// Names of the curves, shortened to fit.
    names: Vec<String>,
    name_px: f64,
    /// Top of the plot, in pixels from above.
    top: f64,
    /// Right end of the plot, in pixels from the left.
    right: f64,
}

impl PlotLayout {
    fn new(chart: &Chart, series: &[Series<'_>]) -> Self {
        let top = if chart.subtitle.is_some() { TOP_PX } else { TOP_PX - SUBTITLE_PX };
        let line_px = (FOOT_PX - top) / series.len() as f64;
        let name_px = NAME_PX.min(line_px / 1.1);
        let names: Vec<&str> = series.iter().map(|series| &*series.name).collect();
        let names = shorten_apart(&names, MAX_NAME_PX / name_px);
        let widest_em = names.iter().map(|name| width_em(name)).fold(0.0, f64::max);
        let right =
            f64::from(SIZE.width_px) - EDGE_PX - widest_em * name_px - SAMPLE_PX - LEADER_PX;
        Self { names, name_px, top, right }
    }
}

fn draw_heading(canvas: &Canvas, chart: &Chart) {
    let room_px = f64::from(SIZE.width_px) - 2.0 * EDGE_PX;
    let title = printable(&chart.title);
    let fitting_px = room_px / width_em(&title).max(1.0);
    let title_px = TITLE_PX.min(fitting_px.max(SMALL_TITLE_PX));
    let write = |text: &str, y, size_px, colour| {
        let anchor = (HPos::Left, VPos::Top);
        let text = cut(text, room_px / size_px);
        canvas.text(&text, (EDGE_PX, y), Lettering { size_px, colour, anchor });
    };
    write(&title, 28.0, title_px, INK);
    if let Some(subtitle) = &chart.subtitle {
        write(&printable(subtitle), 80.0, SUBTITLE_PX, SOFT_INK);
    }
}

fn draw_axes(canvas: &Canvas, chart: &Chart, frame: &Frame) {
    let lettering = |anchor| Lettering { size_px: AXIS_PX, colour: SOFT_INK, anchor };
    for (n, tick) in frame.y.ticks().iter().enumerate() {
        let y = frame.foot - tick.at * (frame.foot - frame.top);
        if n > 0 {
            canvas.line(&[(frame.left, y), (frame.right, y)], Stroke::solid(GRID, 1.5));
        }
        canvas.text(&tick.name, (frame.left - 14.0, y), lettering((HPos::Right, VPos::Center)));
    }
    let anchor = (HPos::Left, VPos::Center);
    canvas.text("miss ratio", (EDGE_PX, frame.top - 36.0), lettering(anchor));

    let width = frame.right - frame.left;
    for tick in frame.x.ticks(width / AXIS_PX) {
        let x = frame.left + tick.at * width;
        canvas.line(&[(x, frame.foot), (x, frame.foot + 9.0)], Stroke::solid(SOFT_INK, 2.0));
        let below = (x, frame.foot + 18.0);
        canvas.text(&tick.name, below, lettering((HPos::Center, VPos::Top)));
    }
    canvas
        .line(&[(frame.left, frame.foot), (frame.right, frame.foot)], Stroke::solid(SOFT_INK, 2.0));
    let label = cut(&printable(&chart.x_label), width / AXIS_PX);
    let below = (frame.left + width / 2.0, frame.foot + 58.0);
    canvas.text(&label, below, lettering((HPos::Center, VPos::Top)));
}

/// A ring around each chosen point, a line from there to the axis, and its name above the plot.
fn draw_chosen(canvas: &Canvas, chart: &Chart, frame: &Frame, curves: &[Drawn<'_>]) {
    for (curve, ((x, y), size)) in curves.iter().filter_map(|curve| Some((curve, curve.chosen()?)))
    {
        let dots = Stroke { colour: INK.into(), width_px: 2.0, dashes: Some((3.0, 6.0)) };
        canvas.line(&[(x, frame.top), (x, frame.foot)], dots);
        let corner = |n: u32| {
            let angle = f64::from(n) / f64::from(RING_CORNERS) * std::f64::consts::TAU;
            (x + RING_PX * angle.cos(), y + RING_PX * angle.sin())
        };
        let ring: Vec<(f64, f64)> = (0..=RING_CORNERS).map(corner).collect();
        canvas.line(&ring, Stroke::solid(INK, 3.0));
        let name = format!("{}, {}", curve.series.name, capacity(size, chart.unit));
        let name = cut(&name, CHOSEN_PX / AXIS_PX);
        // It stays behind the name of the axis, and before the end of the picture.
        let half_px = width_em(&name) * AXIS_PX / 2.0;
        let middle = x.clamp(
            (frame.left + CHOSEN_GAP_PX + half_px).min(frame.right - half_px),
            frame.right - half_px,
        );
        let anchor = (HPos::Center, VPos::Center);
        let lettering = Lettering { size_px: AXIS_PX, colour: INK, anchor };
        canvas.text(&name, (middle, frame.top - 36.0), lettering);
    }
}

/// The names in the order in which the lines end, each after a sample of its line.
fn draw_names(canvas: &Canvas, frame: &Frame, layout: &PlotLayout, curves: &[Drawn<'_>]) {
    let mut order: Vec<(&Drawn<'_>, &String)> = curves.iter().zip(&layout.names).collect();
    // Lines that end in one place keep the order in which they came there.
    order.sort_by(|(a, _), (b, _)| {
        let (a_mean, b_mean) = (a.series.mean(), b.series.mean());
        a.end().1.total_cmp(&b.end().1).then_with(|| b_mean.total_cmp(&a_mean))
    });
    let wanted: Vec<f64> = order.iter().map(|(curve, _)| curve.end().1).collect();
    let heights = spread(&wanted, layout.name_px * 1.16, frame.top, frame.foot);
    let sample = frame.right + LEADER_PX;
    for ((curve, name), y) in order.into_iter().zip(heights) {
        let (end_x, end_y) = curve.end();
        let bend = (frame.right, end_y);
        let colour = curve.mark.colour.at(LEADER_OPACITY);
        let leader = |dashes| Stroke { colour, width_px: 1.6, dashes };
        // Dots, for within the plot a line would look like more of the curve.
        canvas.line(&[(end_x + CURVE_PX, end_y), bend], leader(Some((2.0, 5.0))));
        canvas.line(&[bend, (sample, y)], leader(None));
        curve.draw_sample(canvas, (sample, y));
        let anchor = (HPos::Left, VPos::Center);
        let lettering = Lettering { size_px: layout.name_px, colour: INK, anchor };
        canvas.text(name, (sample + SAMPLE_PX, y), lettering);
    }
}
