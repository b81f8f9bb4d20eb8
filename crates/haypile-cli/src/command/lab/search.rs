//! `haypile lab search`

use std::process::ExitCode;

use haypile_lab::experiment::search::{NAME, Options, SUBJECTS, cases};

use super::measuring;
use crate::args::lab::Search;

/// Measures lookups that find nothing.
pub(crate) fn run(arguments: &Search) -> anyhow::Result<ExitCode> {
    let measuring = &arguments.measuring;
    let cases = cases(&Options {
        entries: arguments.entries.clone(),
        fill_percent: arguments.fill.clone(),
        value_bytes: arguments.value_bytes,
        operations: arguments.operations,
        seed: measuring.seed,
    });
    let subjects = measuring.subjects(SUBJECTS);
    measuring::run(NAME, cases, &subjects, measuring, measuring::table::text)
}
