//! The pieces that charts are drawn with, here and in the laboratory: one look for all of them.

pub mod canvas;
pub mod colour;
pub mod marks;
pub mod spread;
pub mod text;

pub use canvas::{HPos, VPos};
pub use colour::{Colour, GRID, INK, Paint, SOFT_INK, WHITE};
