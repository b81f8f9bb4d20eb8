//! The results of `resources` for people.

use haypile_measure::result::Sample;

use super::section::{ListLoads, table};
use crate::experiment::Printout;

/// Returns a table of the resources' loading times for each network link.
pub(super) fn printout(samples: &[Sample]) -> Printout {
    let mut printout = Printout::default();
    for list in &ListLoads::all(samples) {
        printout.show(&table(list));
        if let Some(waits) = list.link().waits() {
            printout.text(format!("{waits}.\n"));
        }
        for (name, _, _, loads) in list.columns() {
            if let Some(error) = &loads.error {
                printout.text(format!("error: {name}: {error}\n"));
            }
        }
    }
    printout
}
