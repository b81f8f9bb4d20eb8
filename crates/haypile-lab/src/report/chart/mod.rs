//! The charts of the report: bars, or points on a logarithmic axis where bars would be a line
//! high, and lines.
//!
//! They are drawn with the pieces of [`haypile_plot::drawing`], so that they look like the
//! miss-ratio charts. Nothing is told apart by colour alone. A chart is laid out for where it
//! stands: text that shrinks with its picture cannot be read on a telephone.

mod bars;
mod legend;
mod lines;
mod theme;
mod timelines;

use haypile_measure::figure::Estimate;
use haypile_plot::PlotError;
use haypile_plot::axis::Reading;
use haypile_plot::drawing::canvas::{Canvas, Lettering, Place};
use haypile_plot::drawing::text::{cut, printable, width_em};
use haypile_plot::drawing::{Colour, HPos, INK, SOFT_INK, VPos};

pub(crate) use bars::{Bar, Bars};
pub(crate) use lines::{Lines, Series, Spot, Ticks};
pub(crate) use theme::themed;
pub(crate) use timelines::{Course, Timelines};

/// The size of letters, in pixels.
const TEXT_PX: f64 = 13.0;
/// That of numbers at axes.
const SMALL_PX: f64 = 12.0;
/// Those of the title of a picture that stands alone.
const TITLE_PX: f64 = 17.0;
/// Height of a line of text.
const LINE_PX: f64 = 19.0;
/// The margin at the edges.
const EDGE_PX: f64 = 8.0;

/// The form of a chart for a medium: as wide as a page, for a narrow screen, or a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The chart is in the page, as wide as its text.
    Wide,
    /// The chart is in the page of a narrow screen, or one of several in a row.
    Narrow,
    /// The chart is a file of its own, with its title.
    Alone,
}

impl Form {
    fn width_px(self) -> f64 {
        match self {
            Self::Wide => 600.0,
            Self::Narrow => 328.0,
            Self::Alone => 800.0,
        }
    }

    fn is_narrow(self) -> bool {
        self == Self::Narrow
    }
}

/// A chart of any kind: bars, lines or timelines.
#[derive(Clone, Debug)]
pub(crate) enum Chart {
    Bars(Bars),
    Lines(Lines),
    Timelines(Timelines),
}

/// A chart with its title, caption and description in words.
#[derive(Clone, Debug)]
pub(crate) struct Picture {
    /// The name of the chart in file names and page anchors: letters, digits and hyphens.
    pub(crate) slug: String,
    /// The title of the chart, in a few words.
    pub(crate) title: String,
    /// A hint for readers on how to read the chart, shown below it.
    pub(crate) caption: String,
    /// The contents of the chart in words, for readers who cannot see it.
    pub(crate) description: String,
    pub(crate) chart: Chart,
}

impl Picture {
    /// Returns the chart as an SVG document with fixed colours.
    pub(crate) fn svg(&self, form: Form) -> Result<String, PlotError> {
        match &self.chart {
            Chart::Bars(bars) => bars.svg(self, form),
            Chart::Lines(lines) => lines.svg(self, form),
            Chart::Timelines(timelines) => timelines.svg(self, form),
        }
    }
}

/// Returns a chart's name for files and page anchors, made of its title.
pub(crate) fn slug(title: &str) -> String {
    let lower = title.to_lowercase();
    let parts: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    parts.join("-").chars().take(80).collect()
}

/// Draws the title of a picture that stands alone; where the rest of it begins.
fn draw_title(canvas: Option<&Canvas>, figure: &Picture, form: Form) -> f64 {
    if form != Form::Alone {
        return EDGE_PX;
    }
    if let Some(canvas) = canvas {
        let title = cut(&printable(&figure.title), (form.width_px() - 4.0 * EDGE_PX) / TITLE_PX);
        let anchor = (HPos::Left, VPos::Center);
        let lettering = Lettering { size_px: TITLE_PX, colour: INK, anchor };
        canvas.text(&title, (2.0 * EDGE_PX, EDGE_PX + TITLE_PX), lettering);
    }
    EDGE_PX + 2.6 * TITLE_PX
}

fn small(horizontal: HPos) -> Lettering {
    lettering(SMALL_PX, SOFT_INK, horizontal)
}

fn normal(horizontal: HPos) -> Lettering {
    lettering(TEXT_PX, INK, horizontal)
}

fn lettering(size_px: f64, colour: Colour, horizontal: HPos) -> Lettering {
    Lettering { size_px, colour, anchor: (horizontal, VPos::Center) }
}

/// Returns estimates as the axes of charts take them.
fn readings(estimates: &[Estimate]) -> Vec<Reading> {
    let reading = |estimate: &Estimate| Reading {
        value: estimate.value,
        interval: estimate.interval.map(|ends| (ends.low, ends.high)),
    };
    estimates.iter().map(reading).collect()
}

fn text_px(text: &str, size_px: f64) -> f64 {
    width_em(text) * size_px
}

/// Writes text so that it stays within `low` and `high`, near `place`.
fn centred_within(canvas: &Canvas, text: &str, (x, y): Place, (low, high): (f64, f64)) {
    let half = text_px(text, SMALL_PX) / 2.0;
    let x = if half * 2.0 > high - low {
        f64::midpoint(low, high)
    } else {
        x.clamp(low + half, high - half)
    };
    canvas.text(text, (x, y), small(HPos::Center));
}
