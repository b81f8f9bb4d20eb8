//! The pieces that charts are drawn with, here and in the laboratory: one look for all of them.

pub mod canvas;
pub mod marks;
pub mod spread;
pub mod text;

pub use plotters::style::text_anchor::{HPos, VPos};
pub use plotters::style::{Color, RGBAColor, RGBColor, WHITE};

/// Lines and letters that are read first.
pub const INK: RGBColor = RGBColor(25, 25, 25);

/// Axes, and letters that are read second.
pub const SOFT_INK: RGBColor = RGBColor(85, 85, 85);

/// Lines that help the eye.
pub const GRID: RGBColor = RGBColor(222, 222, 222);
