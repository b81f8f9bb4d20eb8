//! A folded table for each case.

use haypile_measure::figure;

use super::super::case::Case;
use super::super::number::count;
use super::super::section::Body;
use super::figures::{MAX_TABLES, beyond, table};

/// A folded table for each case.
pub(crate) fn details(body: &mut Body, cases: &[Case<'_>], varying: &[String]) {
    let shown = cases.iter().take(MAX_TABLES);
    body.tables
        .extend(shown.map(|case| table(case, &case.title(varying), &figure::CPU, &figure::WALL)));
    if let Some(beyond) = beyond(cases.len(), MAX_TABLES) {
        body.left_out
            .push(format!("{} have no table of their own.", count(beyond, "further case")));
    }
}
