//! A chart with a bar for each subject and measure, from zero; or a point with a logarithmic axis.

use haypile_measure::figure::Estimate;
use haypile_measure::statistics::Interval;
use haypile_number::Quantity;
use haypile_plot::PlotError;
use haypile_plot::axis::Scale;
use haypile_plot::drawing::canvas::{self, Canvas, Place, Size, Stroke};
use haypile_plot::drawing::marks::{COLOURS, Mark, Marker};
use haypile_plot::drawing::text::{printable, shorten};
use haypile_plot::drawing::{Colour, GRID, HPos, INK, SOFT_INK, WHITE};

use super::legend::{Legend, SIGN_LENGTH_PX};
use super::{
    EDGE_PX, Form, LINE_PX, Picture, SMALL_PX, TEXT_PX, draw_title, normal, readings, small,
    text_px,
};

const BAR_PX: f64 = 12.0;
const BAR_GAP_PX: f64 = 5.0;
/// Between the bars of two subjects.
const GROUP_GAP_PX: f64 = 9.0;
/// Widest label of a bar, as a part of the picture.
const LABEL_PART: f64 = 0.36;
/// Height of a whisker's end.
const WHISKER_PX: f64 = 6.0;
/// Between the lines of a hatched bar.
const HATCH_PX: f64 = 5.0;

/// The axis holds blocks up to this factor of the largest value.
const MOST_BEYOND: f64 = 3.0;
/// Width of the dot of a block, and between the lines of dots.
const DOT_PX: f64 = 2.2;
const DOT_LINE_PX: f64 = 3.6;

/// A bar chart with a row for each cache and a bar for each of its measured values, such as
/// processor and wall time.
#[derive(Clone, Debug)]
pub(crate) struct Bars {
    pub(crate) quantity: Quantity,
    /// The names of the chart's measured quantities, at most three; each bar has a value for each
    /// of them.
    pub(crate) measures: Vec<String>,
    /// The bars of the chart, one for each cache, from the top of the chart down.
    pub(crate) rows: Vec<Bar>,
}

/// The measured values of one cache in a bar chart.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    /// The bar's value of each measured quantity; `None` is drawn as a missing value.
    pub(crate) values: Vec<Option<Estimate>>,
    /// For each measured quantity, the values of single blocks, which are drawn as dots; may be
    /// empty.
    pub(crate) blocks: Vec<Vec<f64>>,
}

impl Bar {
    /// Returns a bar with these values of a chart, without dots for single blocks.
    pub(crate) fn new(label: String, values: Vec<Option<Estimate>>) -> Self {
        Self { label, values, blocks: Vec::new() }
    }
}

/// Where everything lies, in pixels.
struct BarLayout {
    legend: Option<Legend>,
    scale: Scale,
    left: f64,
    right: f64,
    /// Right end of the values, in pixels.
    edge: f64,
    top: f64,
    foot: f64,
    label_px: f64,
    group_px: f64,
    /// Distance from the top of a group to its first bar, in pixels.
    lead_px: f64,
    is_narrow: bool,
}

impl Bars {
    /// Whether the bar chart shows points on a logarithmic axis instead of bars.
    pub(crate) fn is_log(&self) -> bool {
        Scale::fitting(self.quantity, &readings(&self.estimates())).is_log
    }

    /// Returns all that the axis has to hold. A block far beyond all values would leave no room for them.
    fn estimates(&self) -> Vec<Estimate> {
        let mut all: Vec<Estimate> =
            self.rows.iter().flat_map(|bar| bar.values.iter().copied().flatten()).collect();
        let most = all.iter().map(|estimate| estimate.value).fold(0.0, f64::max) * MOST_BEYOND;
        let blocks = self.rows.iter().flat_map(|bar| bar.blocks.iter().flatten().copied());
        all.extend(blocks.filter(|value| *value <= most).map(Estimate::exact));
        all
    }

    pub(crate) fn svg(&self, figure: &Picture, form: Form) -> Result<String, PlotError> {
        let layout = self.layout(figure, form);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a picture")]
        let height_px = (layout.foot + 24.0).ceil() as u32;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a picture")]
        let size = Size { width_px: form.width_px() as u32, height_px };
        let (title, description) = (printable(&figure.title), printable(&figure.description));
        canvas::document(size, &title, &description, |canvas| {
            draw_title(Some(canvas), figure, form);
            if let Some(legend) = &layout.legend {
                legend.draw(canvas, |measure, (x, y)| draw_sign(canvas, measure, (x, y), &layout));
            }
            draw_axis(canvas, &layout);
            self.rows.iter().zip(0_u32..).for_each(|(bar, at)| {
                self.draw(canvas, &layout, bar, layout.top + f64::from(at) * layout.group_px);
            });
        })
    }

    fn layout(&self, figure: &Picture, form: Form) -> BarLayout {
        let width = form.width_px();
        let mut top = draw_title(None, figure, form);
        let legend = (self.measures.len() > 1)
            .then(|| Legend::new(&self.measures, EDGE_PX, width - EDGE_PX, top));
        top = legend.as_ref().map_or(top, |legend| legend.foot + 6.0);
        let scale = Scale::fitting(self.quantity, &readings(&self.estimates()));
        let is_narrow = form.is_narrow();
        let label_px = if is_narrow {
            width - 2.0 * EDGE_PX
        } else {
            self.rows
                .iter()
                .map(|bar| text_px(&bar.label, TEXT_PX))
                .fold(0.0, f64::max)
                .min(width * LABEL_PART)
        };
        let written = |value: &Option<Estimate>| text_px(&self.write(*value), SMALL_PX);
        let values = self.rows.iter().flat_map(|bar| &bar.values);
        let value_px = values.map(written).fold(0.0, f64::max);
        let lead_px = if is_narrow { LINE_PX } else { 0.0 };
        let (measures, bars) = (self.measures.len().max(1) as f64, self.rows.len() as f64);
        let group_px = lead_px + measures * (BAR_PX + BAR_GAP_PX) - BAR_GAP_PX + GROUP_GAP_PX;
        BarLayout {
            legend,
            scale,
            left: if is_narrow { EDGE_PX + 2.0 } else { EDGE_PX + label_px + 10.0 },
            right: width - EDGE_PX - value_px - 12.0,
            edge: width - EDGE_PX,
            top,
            foot: top + bars * group_px,
            label_px,
            group_px,
            lead_px,
            is_narrow,
        }
    }

    fn write(&self, value: Option<Estimate>) -> String {
        value.map_or_else(|| "none".to_owned(), |estimate| self.quantity.write(estimate.value))
    }

    /// A label and its bars, from `top` down.
    fn draw(&self, canvas: &Canvas, layout: &BarLayout, bar: &Bar, top: f64) {
        let BarLayout { left, right, label_px, scale, .. } = *layout;
        let label = shorten(&bar.label, label_px / TEXT_PX);
        let first = top + layout.lead_px + GROUP_GAP_PX / 2.0;
        if layout.is_narrow {
            canvas.text(&label, (EDGE_PX, top + LINE_PX * 0.62), normal(HPos::Left));
        } else {
            let middle = f64::midpoint(first, top + layout.group_px - GROUP_GAP_PX / 2.0);
            canvas.text(&label, (EDGE_PX + label_px, middle), normal(HPos::Right));
        }
        for ((measure, value), row) in bar.values.iter().enumerate().zip(0_u32..) {
            let y = first + f64::from(row) * (BAR_PX + BAR_GAP_PX) + BAR_PX / 2.0;
            canvas.text(&self.write(*value), (layout.edge, y), small(HPos::Right));
            let Some(estimate) = value else { continue };
            let x = left + scale.at(estimate.value) * (right - left);
            if !scale.is_log {
                draw_bar(canvas, measure, (left, x.max(left + 0.5)), y - BAR_PX / 2.0);
            } else if x > left {
                canvas.line(&[(left, y), (x, y)], Stroke::solid(GRID, 1.0));
            }
            let blocks = bar.blocks.get(measure).map_or(&[][..], Vec::as_slice);
            draw_blocks(canvas, layout, blocks, y);
            if let Some(interval) = estimate.interval {
                draw_whisker(canvas, layout, interval, y);
            }
            if scale.is_log {
                canvas.marker((x, y), mark(measure), 5.0);
            }
        }
    }
}

fn draw_axis(canvas: &Canvas, layout: &BarLayout) {
    let BarLayout { left, right, top, foot, .. } = *layout;
    let ticks = layout.scale.ticks_along((right - left) / SMALL_PX);
    for tick in &ticks {
        let x = left + tick.at * (right - left);
        canvas.line(&[(x, top), (x, foot)], Stroke::solid(GRID, 1.0));
        let ends = (1.0, right + (right - left) * 0.2);
        super::centred_within(canvas, &tick.name, (x, foot + 13.0), ends);
    }
    canvas.line(&[(left, foot), (right, foot)], Stroke::solid(SOFT_INK, 1.0));
}

fn draw_sign(canvas: &Canvas, measure: usize, (x, y): Place, layout: &BarLayout) {
    if layout.scale.is_log {
        return canvas.marker((x + SIGN_LENGTH_PX / 2.0, y), mark(measure), 6.0);
    }
    draw_bar(canvas, measure, (x, x + SIGN_LENGTH_PX), y - BAR_PX / 2.0);
}

/// The sign of a measure, where signs are points.
fn mark(measure: usize) -> Mark {
    let marker = [Marker::Circle, Marker::Square, Marker::Triangle][measure % 3];
    Mark { colour: colour(measure), marker, dashes: None }
}

fn colour(measure: usize) -> Colour {
    COLOURS[measure % 3]
}

/// A bar: full, hatched, or empty.
fn draw_bar(canvas: &Canvas, measure: usize, (from, to): (f64, f64), top: f64) {
    let foot = top + BAR_PX;
    let corners = [(from, top), (to, top), (to, foot), (from, foot)];
    if measure == 0 {
        return canvas.polygon(&corners, colour(measure));
    }
    let stroke = Stroke::solid(colour(measure), 1.3);
    let mut outline = corners.to_vec();
    outline.push(corners[0]);
    canvas.line(&outline, stroke);
    if measure == 1 {
        let mut x = from + HATCH_PX;
        while x < to + BAR_PX {
            // From the foot at x - height to the top at x, cut at both ends of the bar.
            let (start, end) = ((x - BAR_PX).max(from), x.min(to));
            let y = |at: f64| foot - (at - (x - BAR_PX));
            canvas.line(&[(start, y(start)), (end, y(end))], stroke);
            x += HATCH_PX;
        }
    }
}

/// Draws a dot for each block, in three lines so that equal ones are seen; those beyond the axis lie at its end.
fn draw_blocks(canvas: &Canvas, layout: &BarLayout, blocks: &[f64], y: f64) {
    let place = |(at, value): (u32, &f64)| {
        let x = layout.left + layout.scale.at(*value) * (layout.right - layout.left);
        (x, y + (f64::from(at % 3) - 1.0) * DOT_LINE_PX)
    };
    let places: Vec<Place> = (0..).zip(blocks).map(place).collect();
    if !places.is_empty() {
        // On bars as on paper.
        canvas.dots(&places, WHITE, DOT_PX + 1.6);
        canvas.dots(&places, INK, DOT_PX);
    }
}

/// The interval of a value; an end that is beyond the axis has no cap.
fn draw_whisker(canvas: &Canvas, layout: &BarLayout, Interval { low, high }: Interval, y: f64) {
    let x = |value| layout.left + layout.scale.at(value) * (layout.right - layout.left);
    let (from, to) = (x(low), x(high));
    let stroke = Stroke::solid(INK, 1.4);
    canvas.line(&[(from, y), (to, y)], stroke);
    for (value, x) in [(low, from), (high, to)] {
        if layout.scale.holds(value) {
            canvas.line(&[(x, y - WHISKER_PX / 2.0), (x, y + WHISKER_PX / 2.0)], stroke);
        }
    }
}
