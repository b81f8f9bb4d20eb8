//! Effects and verdicts: known answers, laws, and how often they are wrong under noise.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]
#![expect(clippy::float_cmp, reason = "figures that are exact")]

mod error_rates;
mod known_answers;
mod laws;
mod notes;
