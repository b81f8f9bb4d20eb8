//! Experiments that measure caches, and the reports and tables of their results.
//!
//! [`haypile_measure`] measures caches, all in the same way. What it measures comes from an experiment,
//! and what it finds are rows, of which reports, rankings and the tables of documents are views.
//!
//! ```text
//! experiment ──> haypile_measure ──> rows ──> ranking, report, splice
//!      └──> haypile_pages, haypile_startup
//! ```

pub mod experiment;
pub mod first;
pub mod ranking;
pub mod report;
pub mod splice;
mod subjects;

pub use subjects::subjects;
