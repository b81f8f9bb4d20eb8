//! The results for people.

use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;
use haypile_number::grouped;

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
        let header = ["Subject", workers, "Per second", "Speed-up", "95 % interval", "Efficiency"];
        let rows = alike.iter().flat_map(rows).collect();
        printout.gap().text(format!("{} by {workers}\n", first.case)).table(header, 1, 2, rows);
        rest = others;
    }
    printout.gap().append(table::printout(samples, contenders));
    printout
}

fn rows(scaling: &Scaling) -> Vec<Vec<String>> {
    let row = |point: &Point| {
        let interval = point.interval.map_or_else(
            || "-".to_owned(),
            |interval| format!("{:.2} to {:.2}", 1.0 + interval.low, 1.0 + interval.high),
        );
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "operations per second, for people"
        )]
        let rate = point.rate as u64;
        vec![
            scaling.subject.clone(),
            point.workers.to_string(),
            grouped(rate),
            format!("{:.2}", point.speedup),
            interval,
            format!("{:.0} %", point.efficiency * 100.0),
        ]
    };
    scaling.points.iter().map(row).collect()
}
