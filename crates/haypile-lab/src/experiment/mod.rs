//! The experiments: each builds jobs and cases, and states the counts that are right for them. None
//! measures by itself.

pub mod micro;
pub mod persist;
mod places;
pub mod replay;
pub mod workload;

pub use places::Places;
