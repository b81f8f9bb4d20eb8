//! The laboratory.

pub mod compare;
pub mod result;
pub mod statistics;
