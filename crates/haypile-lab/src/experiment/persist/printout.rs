//! The results of `persist` for people.

use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;

use super::section::tables;
use super::source;
use crate::experiment::Printout;
use crate::report::case::cases;

/// Returns a table of results for each part of the experiment `persist`, such as writing and
/// opening; times of opening are wall time.
pub(super) fn printout(samples: &[Sample], _: &[Contender]) -> Printout {
    let mut printout = Printout::default();
    for table in tables(&cases(&samples.iter().collect())) {
        printout.show(&table);
    }
    printout.show(&source::table());
    printout.errors(samples);
    printout
}
