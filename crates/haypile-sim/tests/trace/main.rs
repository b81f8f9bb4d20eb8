//! Traces: every format that is read and written, what is wrong with inputs, and what is made of them.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "../support/hostile.rs"]
mod hostile;
#[path = "../support/mod.rs"]
mod support;

mod any_bytes;
mod data_sets;
mod errors;
mod formats;
mod generate;
mod hpt;
mod info;
mod inputs;
mod recognition;
mod recording;
mod shared;
mod web_logs;
