//! The results of `replay` for people.

use haypile_measure::result::Sample;

use super::ratios;
use super::section::table;
use crate::experiment::Printout;

/// Returns a table of byte hit ratios for each replayed trace, followed by errors.
pub(super) fn printout(samples: &[Sample]) -> Printout {
    let (cases, rows) = ratios(samples);
    let mut printout = Printout::default();
    printout.show(&table(&cases, &rows)).errors(samples);
    printout
}
