//! Both sides of the protocol: runners that behave and such that do not, subjects that lie, and
//! what becomes of it in the results.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod bad_runners;
mod interruption;
mod job;
mod kept;
mod lies;
mod model;
mod processes;
mod runner;
mod scripted;
mod subject;
