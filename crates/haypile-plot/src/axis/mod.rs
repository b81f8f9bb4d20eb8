//! Axes of charts: the positions of values, and the tick marks at round ones.
//!
//! Each kind of axis offers tick marks at several distances, the densest first, and takes the first that have room.

mod capacity;
mod ratio;
mod scale;

use crate::drawing::text::width_em;

pub use capacity::{CapacityAxis, capacity};
pub use ratio::{RatioAxis, percent};
pub(crate) use ratio::{lower, upper};
pub use scale::{Reading, Scale};

/// The least distance between the labels of two tick marks of a horizontal axis, in font sizes.
const GAP_EM: f64 = 1.0;

/// A labelled tick mark on an axis of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The position of the tick mark, from 0 at the start of the axis to 1 at its end.
    pub at: f64,
    /// The text of the tick mark's label.
    pub name: String,
}

/// Whether tick marks are at most `most`, and have room for their labels next to each other on an axis that is `axis_em`
/// font sizes wide.
fn fit_along(ticks: &[Tick], axis_em: f64, most: usize) -> bool {
    ticks.len() <= most
        && ticks.windows(2).all(|pair| {
            let names_em = f64::midpoint(width_em(&pair[0].name), width_em(&pair[1].name));
            (pair[1].at - pair[0].at) * axis_em >= names_em + GAP_EM
        })
}
