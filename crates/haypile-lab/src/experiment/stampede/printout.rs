//! The results of `stampede` for people.

use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;

use super::section::table;
use crate::experiment::Printout;
use crate::report::case::cases;

/// Returns the table of how often each missing value was computed, by number of processes.
pub(super) fn printout(samples: &[Sample], _: &[Contender]) -> Printout {
    let mut printout = Printout::default();
    printout.show(&table(&cases(&samples.iter().collect()))).errors(samples);
    printout
}
