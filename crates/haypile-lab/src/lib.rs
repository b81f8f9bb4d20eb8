//! Experiments that measure what caches win, and the reports and tables of their results.
//!
//! [`haypile_measure`] measures caches, all in the same way. What it measures comes from an experiment,
//! and what it finds are rows, of which reports, rankings and the tables of documents are views.
//!
//! ```text
//! experiment ──> haypile_measure ──> rows ──> ranking, report, splice
//!      └──> pages (site, http), startup
//! ```

pub mod experiment;
mod http;
pub mod pages;
pub mod ranking;
pub mod report;
pub mod site;
pub mod splice;
pub mod startup;
mod subjects;

pub use subjects::subjects;
