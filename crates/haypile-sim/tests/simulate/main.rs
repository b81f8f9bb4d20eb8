//! Simulation: known answers, plain models, and the real caches on the other side.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "../support/mod.rs"]
mod support;

mod advise;
mod cost;
mod curve;
mod known_answers;
mod known_traces;
mod plain_model;
mod relstorage;
mod replay;
mod reuse;
mod sample;
mod sweep;
mod ttl;
