//! A folded table for each case, and notes on facts that its centres do not show.

use haypile_measure::figure::{self, Figure};

use super::super::case::Case;
use super::super::number::count;
use super::super::section::Body;
use super::super::table::Table;
use super::figures::{MAX_TABLES, beyond, table};

/// Most notes of an experiment that are shown.
const MAX_NOTES: usize = 40;

/// Adds to a section of the report the notes on facts that medians do not show, and a folded table
/// of processor and wall time for each case.
pub(crate) fn details(body: &mut Body, cases: &[Case<'_>], varying: &[String]) {
    details_of(body, cases, varying, [&figure::CPU, &figure::WALL]);
}

/// Adds to a section of the report the notes on facts that medians do not show, and a folded table
/// of these figures of processor and wall time for each case.
pub(crate) fn details_of(
    body: &mut Body,
    cases: &[Case<'_>],
    varying: &[String],
    [cpu, wall]: [&Figure; 2],
) {
    notes(body, cases, varying);
    let shown = cases.iter().take(MAX_TABLES);
    body.tables.extend(shown.map(|case| table(case, &case.title(varying), cpu, wall)));
    if let Some(beyond) = beyond(cases.len(), MAX_TABLES) {
        body.left_out
            .push(format!("{} have no table of their own.", count(beyond, "further case")));
    }
}

/// Adds to a section of the report a table of notes on facts that medians do not show, such as a
/// slow first sample, if there are some.
pub(crate) fn notes(body: &mut Body, cases: &[Case<'_>], varying: &[String]) {
    let mut rows = Vec::new();
    for case in cases {
        let row = |(label, note): (&str, String)| vec![case.title(varying), label.to_owned(), note];
        rows.extend(case.notes().into_iter().map(row));
    }
    if let Some(beyond) = beyond(rows.len(), MAX_NOTES) {
        rows.truncate(MAX_NOTES);
        body.left_out.push(format!("{} on samples are not shown.", count(beyond, "further note")));
    }
    if !rows.is_empty() {
        let caption = "Samples of which the centre does not tell all".to_owned();
        let names = ["Case", "Subject", "Note"];
        body.tables.push(Table::of_numbers(caption, &names, rows).with_text_in(&[1, 2]));
    }
}
