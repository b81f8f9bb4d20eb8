//! The results of `crossover` for people.

use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;
use haypile_measure::statistics::Effect;

use super::find;
use crate::experiment::Printout;
use crate::experiment::on_caches::table;

/// Returns the sizes of values at which each cache becomes slower, with the measured ratios,
/// followed by the tables that every experiment prints.
pub(super) fn printout(samples: &[Sample], contenders: &[Contender]) -> Printout {
    let mut printout = Printout::default();
    for found in find(samples) {
        let header = ["Value bytes", "Wall, times the other", "95 % interval"];
        let rows = found.effects.iter().map(row).collect();
        printout.gap().text(format!("{}\n", found.answer())).table(header, 0, 1, rows);
    }
    printout.gap().append(table::printout(samples, contenders));
    printout
}

fn row((size, found): &(u32, Effect)) -> Vec<String> {
    let [ratio, interval] = table::effect(Some(found));
    vec![size.to_string(), ratio, interval]
}
