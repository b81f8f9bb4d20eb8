//! `persist`: the persistence tests of document 004.

mod entries;

pub use entries::{LIMIT_BYTES, sizes, sizes_below, total_bytes};
