//! The results of `resources` for people.

use haypile_measure::result::Sample;

use super::super::on_pages::improvement::links;
use super::section::table;
use crate::experiment::Printout;

/// Returns a table of the resources' loading times for each network link.
pub(super) fn printout(samples: &[Sample]) -> Printout {
    let mut printout = Printout::default();
    for link in &links(samples) {
        printout.show(&table(link));
        if let Some(waits) = link.waits() {
            printout.text(format!("{waits}.\n"));
        }
        for (name, loads) in &link.columns {
            if let Some(error) = &loads.error {
                printout.text(format!("error: {name}: {error}\n"));
            }
        }
    }
    printout
}
