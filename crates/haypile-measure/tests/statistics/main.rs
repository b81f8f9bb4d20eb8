//! Effects and verdicts: known answers, laws, and how often they are wrong under noise.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]
#![expect(clippy::float_cmp, reason = "figures that are exact")]
#![expect(clippy::cast_precision_loss, reason = "counts of some thousands")]

mod error_rates;
mod known_answers;
mod laws;
