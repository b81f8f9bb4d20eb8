//! A folded table for each case.

use super::super::case::Case;
use super::super::number::count;
use super::super::section::Body;
use super::cost;
use super::figures::{MAX_TABLES, beyond, table};

/// A folded table for each case.
pub(crate) fn details(body: &mut Body, cases: &[Case<'_>], varying: &[String]) {
    let shown = cases.iter().take(MAX_TABLES);
    body.tables.extend(
        shown.map(|case| table(case, &case.title(varying), "per operation", cost::cpu, cost::wall)),
    );
    if let Some(beyond) = beyond(cases.len(), MAX_TABLES) {
        body.left_out
            .push(format!("{} have no table of their own.", count(beyond, "further case")));
    }
}
