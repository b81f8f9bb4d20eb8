//! A chart of lines by size or by percentile, with labels at places between them.

use haypile_measure::figure::Estimate;
use haypile_measure::statistics::Interval;
use haypile_number::Quantity;
use haypile_plot::PlotError;
use haypile_plot::Unit;
use haypile_plot::axis::{CapacityAxis, Scale, Tick};
use haypile_plot::drawing::canvas::{self, Canvas, Place, Size, Stroke};
use haypile_plot::drawing::marks::{Mark, Marks};
use haypile_plot::drawing::spread::spread;
use haypile_plot::drawing::text::{printable, shorten};
use haypile_plot::drawing::{GRID, HPos, INK, SOFT_INK};

use super::legend::{Legend, SIGN_LENGTH_PX};
use super::{
    EDGE_PX, Form, LINE_PX, Picture, SMALL_PX, TEXT_PX, centred_within, draw_title, normal,
    readings, small, text_px,
};

const LINE_WIDTH_PX: f64 = 2.2;
const MARKER_PX: f64 = 4.6;
/// Points on a line closer than this have one marker, in pixels.
const MARKER_GAP_PX: f64 = 12.0;
/// Widest name at the end of a line, as a part of the picture.
const NAME_PART: f64 = 0.34;
/// From the end of the plot to the sign before a name, and from there to the name.
const LEADER_PX: f64 = 14.0;
const SIGN_PX: f64 = SIGN_LENGTH_PX + 6.0;
/// The ratio of a plot's height to its width.
const PROPORTION: f64 = 0.62;
const PROPORTION_NARROW: f64 = 0.8;
/// Dashes are given for charts that are twice as large.
const DASH_PART: f64 = 0.55;

/// A line chart over a numeric axis.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    /// The label of the chart's horizontal axis, such as `size of an entry`.
    pub(crate) x_label: String,
    pub(crate) ticks: Ticks,
    /// The label of the chart's vertical axis, such as `processor time of a hit`.
    pub(crate) y_label: String,
    pub(crate) quantity: Quantity,
    /// The lines of the chart, at most [`haypile_plot::MAX_CURVES`].
    pub(crate) series: Vec<Series>,
    /// Labelled positions on the chart's horizontal axis, such as crossovers.
    pub(crate) spots: Vec<Spot>,
}

/// The kind of tick marks on a chart's horizontal axis: at round amounts, or at named ones.
#[derive(Clone, Debug)]
pub(crate) enum Ticks {
    /// Marks at round amounts.
    Round(Unit),
    /// Marks at these amounts, with other names; they have room next to each other in every form of
    /// the chart.
    Named(Vec<(u64, String)>),
}

/// One line of a line chart.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// The points of the line, by ascending position. Positions and values are above 0; values that
    /// are shares may be 0.
    pub(crate) points: Vec<(u64, Estimate)>,
    /// Whether the line belongs to an eviction policy that knows the future, which has a different
    /// mark.
    pub(crate) knows_future: bool,
    /// The line's number among all lines of a section, by which it has the same colour and marker
    /// in each chart.
    pub(crate) place: usize,
}

/// A labelled position on a chart's horizontal axis, such as a crossover.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spot {
    pub(crate) at: u64,
    /// The two positions between which the true position of the label certainly lies.
    pub(crate) interval: Option<(u64, u64)>,
    pub(crate) label: String,
}

struct LineLayout {
    x: CapacityAxis,
    y: Scale,
    left: f64,
    right: f64,
    top: f64,
    foot: f64,
    /// Right end of the picture, in pixels.
    edge: f64,
    legend: Option<Legend>,
}

/// A line in its place.
struct Drawn<'a> {
    series: &'a Series,
    mark: Mark,
    places: Vec<Place>,
}

impl Lines {
    pub(crate) fn svg(&self, figure: &Picture, form: Form) -> Result<String, PlotError> {
        let layout = self.layout(figure, form);
        let foot = layout.legend.as_ref().map_or(layout.foot + 46.0, |legend| legend.foot);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a picture")]
        let size =
            Size { width_px: form.width_px() as u32, height_px: (foot + EDGE_PX).ceil() as u32 };
        let drawn: Vec<Drawn<'_>> = self
            .series
            .iter()
            .map(|series| Drawn {
                series,
                mark: Marks::from_place(series.place).next(series.knows_future, true),
                places: series
                    .points
                    .iter()
                    .map(|(amount, estimate)| layout.place(*amount, estimate.value))
                    .collect(),
            })
            .collect();
        let (title, description) = (printable(&figure.title), printable(&figure.description));
        canvas::document(size, &title, &description, |canvas| {
            draw_title(Some(canvas), figure, form);
            self.draw_axes(canvas, &layout);
            self.draw_spots(canvas, &layout);
            for line in &drawn {
                line.draw_intervals(canvas, &layout);
            }
            for line in &drawn {
                line.draw(canvas);
            }
            match &layout.legend {
                Some(legend) => legend.draw(canvas, |at, place| drawn[at].draw_sign(canvas, place)),
                None => draw_names(canvas, &layout, &drawn),
            }
        })
    }

    fn layout(&self, figure: &Picture, form: Form) -> LineLayout {
        let width = form.width_px();
        let spots = self.spots.iter().map(|spot| spot.at);
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x =
            CapacityAxis::new(self.unit(), true, points().map(|(amount, _)| *amount).chain(spots));
        let estimates: Vec<Estimate> = points().map(|(_, estimate)| *estimate).collect();
        let values = readings(&estimates);
        let y = match self.quantity {
            Quantity::Time | Quantity::Rate => Scale::log(self.quantity, &values),
            quantity => Scale::fitting(quantity, &values),
        };
        let top = draw_title(None, figure, form) + LINE_PX * (1.3 + self.spots.len() as f64);
        let edge = width - EDGE_PX;
        let proportion = if form.is_narrow() { PROPORTION_NARROW } else { PROPORTION };
        let height = (width * proportion - 60.0).max(120.0);
        let ticks = y.ticks_up(height / SMALL_PX);
        let tick_px = ticks.iter().map(|tick| text_px(&tick.name, SMALL_PX)).fold(0.0, f64::max);
        let left = EDGE_PX + tick_px + 8.0;
        let names: Vec<String> = self.series.iter().map(|series| series.name.clone()).collect();
        let widest = names.iter().map(|name| text_px(name, TEXT_PX)).fold(0.0, f64::max);
        let name_px = widest.min(width * NAME_PART);
        let right =
            if form.is_narrow() { edge - 10.0 } else { edge - name_px - SIGN_PX - LEADER_PX };
        let height = if form.is_narrow() { height } else { height.max(names.len() as f64 * 16.0) };
        let foot = top + height;
        let legend =
            form.is_narrow().then(|| Legend::new(&names, EDGE_PX, edge, foot + 3.0 * LINE_PX));
        LineLayout { x, y, left, right, top, foot, edge, legend }
    }

    fn draw_axes(&self, canvas: &Canvas, layout: &LineLayout) {
        let LineLayout { left, right, top, foot, edge, .. } = *layout;
        for tick in layout.y.ticks_up((foot - top) / SMALL_PX) {
            let y = foot - tick.at * (foot - top);
            canvas.line(&[(left, y), (right, y)], Stroke::solid(GRID, 1.0));
            canvas.text(&tick.name, (left - 6.0, y), small(HPos::Right));
        }
        let label = shorten(&printable(&self.y_label), (edge - EDGE_PX) / SMALL_PX);
        let above = top - LINE_PX * 0.8 - LINE_PX * self.spots_height();
        canvas.text(&label, (EDGE_PX, above), small(HPos::Left));
        for tick in self.ticks(&layout.x, right - left) {
            let x = left + tick.at * (right - left);
            canvas.line(&[(x, foot), (x, foot + 5.0)], Stroke::solid(SOFT_INK, 1.0));
            centred_within(canvas, &tick.name, (x, foot + 15.0), (0.0, edge + EDGE_PX));
        }
        canvas.line(&[(left, foot), (right, foot)], Stroke::solid(SOFT_INK, 1.0));
        let middle = (f64::midpoint(left, right), foot + 35.0);
        centred_within(canvas, &printable(&self.x_label), middle, (0.0, edge));
    }

    fn unit(&self) -> Unit {
        match self.ticks {
            Ticks::Round(unit) => unit,
            Ticks::Named(_) => Unit::Objects,
        }
    }

    /// The named amounts on an axis of this length.
    fn ticks(&self, axis: &CapacityAxis, length_px: f64) -> Vec<Tick> {
        match &self.ticks {
            Ticks::Round(_) => axis.ticks(length_px / SMALL_PX),
            Ticks::Named(names) => names
                .iter()
                .map(|(amount, name)| Tick { at: axis.at(*amount), name: name.clone() })
                .filter(|tick| (0.0..=1.0).contains(&tick.at))
                .collect(),
        }
    }

    fn spots_height(&self) -> f64 {
        self.spots.len() as f64
    }

    /// Dashed lines down from their labels, each label on a line of its own above the plot.
    fn draw_spots(&self, canvas: &Canvas, layout: &LineLayout) {
        let LineLayout { left, right, top, foot, .. } = *layout;
        let x = |amount| left + layout.x.at(amount).clamp(0.0, 1.0) * (right - left);
        for (spot, row) in self.spots.iter().zip(0_u32..) {
            let at = x(spot.at);
            let y = top - LINE_PX * (f64::from(row) + 0.7);
            if let Some((low, high)) = spot.interval {
                let (from, to) = (x(low), x(high).max(x(low) + 1.0));
                let corners = [(from, top), (to, top), (to, foot), (from, foot)];
                canvas.polygon(&corners, SOFT_INK.at(0.16));
            }
            let dashes = Some((5.0, 4.0));
            let stroke = Stroke { colour: INK.into(), width_px: 1.2, dashes };
            canvas.line(&[(at, y + LINE_PX / 2.0), (at, foot)], stroke);
            let label = shorten(&printable(&spot.label), layout.edge / SMALL_PX);
            centred_within(canvas, &label, (at, y), (0.0, layout.edge));
        }
    }
}

impl LineLayout {
    fn place(&self, amount: u64, value: f64) -> Place {
        let x = self.left + self.x.at(amount) * (self.right - self.left);
        (x, self.foot - self.y.at(value) * (self.foot - self.top))
    }
}

impl Drawn<'_> {
    fn stroke(&self) -> Stroke {
        let dashes = self.mark.dashes.map(|(dash, gap)| (dash * DASH_PART, gap * DASH_PART));
        Stroke { colour: self.mark.colour.into(), width_px: LINE_WIDTH_PX, dashes }
    }

    fn draw(&self, canvas: &Canvas) {
        if self.places.len() > 1 {
            canvas.line(&self.places, self.stroke());
        }
        let mut last: Option<Place> = None;
        for &(x, y) in &self.places {
            if last.is_none_or(|last| (x - last.0).hypot(y - last.1) >= MARKER_GAP_PX) {
                canvas.marker((x, y), self.mark, MARKER_PX);
                last = Some((x, y));
            }
        }
    }

    fn draw_intervals(&self, canvas: &Canvas, layout: &LineLayout) {
        for (amount, estimate) in &self.series.points {
            if let Some(Interval { low, high }) = estimate.interval {
                let ends = [layout.place(*amount, low), layout.place(*amount, high)];
                canvas.line(&ends, Stroke::solid(self.mark.colour, 1.4));
            }
        }
    }

    fn draw_sign(&self, canvas: &Canvas, (x, y): Place) {
        canvas.line(&[(x, y), (x + SIGN_LENGTH_PX, y)], self.stroke());
        canvas.marker((x + SIGN_LENGTH_PX / 2.0, y), self.mark, MARKER_PX);
    }
}

/// The names at the ends of the lines, in their order.
fn draw_names(canvas: &Canvas, layout: &LineLayout, lines: &[Drawn<'_>]) {
    let mut order: Vec<(&Drawn<'_>, Place)> =
        lines.iter().filter_map(|line| Some((line, *line.places.last()?))).collect();
    order.sort_by(|(_, a), (_, b)| a.1.total_cmp(&b.1));
    let wanted: Vec<f64> = order.iter().map(|(_, end)| end.1).collect();
    let heights = spread(&wanted, TEXT_PX * 1.25, layout.top, layout.foot);
    let sign = layout.right + LEADER_PX;
    for ((line, (end_x, end_y)), y) in order.into_iter().zip(heights) {
        let stroke = |dashes| Stroke { colour: SOFT_INK.at(0.5), width_px: 1.0, dashes };
        // Dots, for within the plot a line would look like more of the curve.
        if end_x + LINE_WIDTH_PX < layout.right {
            let dots = stroke(Some((1.5, 3.0)));
            canvas.line(&[(end_x + LINE_WIDTH_PX, end_y), (layout.right, end_y)], dots);
        }
        canvas.line(&[(layout.right, end_y), (sign, y)], stroke(None));
        line.draw_sign(canvas, (sign, y));
        let name_px = layout.edge - sign - SIGN_PX;
        // The room is that of the longest name: rounding must not cut it.
        let name = shorten(&line.series.name, (name_px + 0.5) / TEXT_PX);
        canvas.text(&name, (sign + SIGN_PX, y), normal(HPos::Left));
    }
}
