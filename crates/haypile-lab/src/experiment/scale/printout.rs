//! The results of `scale` for people.

use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;

use super::section::table;
use super::speedup::scalings;
use crate::experiment::Printout;
use crate::experiment::on_caches;

/// Returns the table of speed-ups by number of threads or processes, followed by the tables that
/// every experiment prints.
pub(super) fn printout(samples: &[Sample], contenders: &[Contender]) -> Printout {
    let mut printout = Printout::default();
    let scalings = scalings(&samples.iter().collect());
    if !scalings.is_empty() {
        printout.show(&table(&scalings));
    }
    printout.gap().append(on_caches::table::printout(samples, contenders));
    printout
}
