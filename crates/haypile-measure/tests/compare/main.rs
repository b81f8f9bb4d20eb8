//! Comparisons of samples: what is paired with what, what is left out, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod files;
mod laws;
mod pairs;
mod samples;
mod subjects;
