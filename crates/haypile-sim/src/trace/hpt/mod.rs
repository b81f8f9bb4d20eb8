//! `.hpt`, the columnar form of a trace, in memory and on disk.
//!
//! `docs/format-hpt.md` describes every byte.

mod check;
mod error;
mod layout;
mod write;

pub use error::HptError;
pub use layout::MAGIC;

pub(crate) use check::{Columns, check};
pub(crate) use layout::ColumnType;
pub(crate) use write::{Parts, assemble, write_file};
