//! The results for people.

use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;
use haypile_measure::statistics::Interval;
use haypile_number::Quantity;

use super::speedup::{Point, Scaling, scalings};
use crate::experiment::Printout;
use crate::experiment::on_caches::table;

/// Returns a table for each case and kind of workers, then the tables of every experiment.
pub(super) fn printout(samples: &[Sample], contenders: &[Contender]) -> Printout {
    let scalings = scalings(&samples.iter().collect());
    let mut printout = Printout::default();
    let mut rest = &scalings[..];
    while let Some(first) = rest.first() {
        let is_alike = |one: &&Scaling| one.case == first.case && one.workers == first.workers;
        let (alike, others) = rest.split_at(rest.iter().take_while(is_alike).count());
        let workers = first.workers.parameter();
        let header = ["Subject", workers, "Rate", "Speed-up", "95 % interval", "Efficiency"];
        let rows = alike.iter().flat_map(rows).collect();
        printout.gap().text(format!("{} by {workers}\n", first.case)).table(header, 1, 2, rows);
        rest = others;
    }
    printout.gap().append(table::printout(samples, contenders));
    printout
}

fn rows(scaling: &Scaling) -> Vec<Vec<String>> {
    let row = |point: &Point| {
        let ends = |ends: Interval| Quantity::Factor.write_range(1.0 + ends.low, 1.0 + ends.high);
        vec![
            scaling.subject.clone(),
            point.workers.to_string(),
            Quantity::Rate.write(point.rate),
            Quantity::Factor.write(point.speedup),
            point.interval.map_or_else(|| "-".to_owned(), ends),
            Quantity::Share.write(point.efficiency),
        ]
    };
    scaling.points.iter().map(row).collect()
}
