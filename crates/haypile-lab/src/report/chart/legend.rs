//! The legend of a chart, in rows that fit.

use haypile_plot::drawing::HPos;
use haypile_plot::drawing::canvas::{Canvas, Place};
use haypile_plot::drawing::text::shorten;

use super::{LINE_PX, TEXT_PX, normal, text_px};

/// Room for the sign before a name, and between a name and the next sign.
const SIGN_PX: f64 = 38.0;
const GAP_PX: f64 = 18.0;

/// The legend of a chart, with the position of each name in it.
pub(crate) struct Legend {
    entries: Vec<(Place, String)>,
    /// Bottom edge of the legend in its chart, in pixels.
    pub(crate) foot: f64,
}

impl Legend {
    pub(crate) fn new(names: &[String], left: f64, right: f64, top: f64) -> Self {
        let (mut x, mut y) = (left, top + LINE_PX / 2.0);
        let mut entries = Vec::new();
        for name in names {
            let name = shorten(name, (right - left - SIGN_PX) / TEXT_PX);
            let width = SIGN_PX + text_px(&name, TEXT_PX);
            if x > left && x + width > right {
                (x, y) = (left, y + LINE_PX);
            }
            entries.push(((x, y), name));
            x += width + GAP_PX;
        }
        Self { entries, foot: y + LINE_PX / 2.0 }
    }

    /// Draws the names of the legend; `sign` draws the line or bar sample next to each name.
    pub(crate) fn draw(&self, canvas: &Canvas, sign: impl Fn(usize, Place)) {
        for (at, ((x, y), name)) in self.entries.iter().enumerate() {
            sign(at, (*x, *y));
            canvas.text(name, (x + SIGN_PX, *y), normal(HPos::Left));
        }
    }
}

/// Length of the line or bar sample before each name in a chart's legend, in pixels.
pub(crate) const SIGN_LENGTH_PX: f64 = 30.0;
