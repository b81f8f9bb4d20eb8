//! The experiments: each builds jobs and cases, states the counts that are right for them, and
//! makes a table of what came of it. None measures by itself.

pub mod persist;
pub mod replay;
pub mod workload;
