//! The results for people.

use haypile_measure::result::Sample;
use haypile_number::Quantity;

use super::{Ratios, ReplayRow, ratios};
use crate::experiment::Printout;

/// Returns byte hit ratios, then errors.
pub(super) fn printout(samples: &[Sample]) -> Printout {
    let (cases, rows) = ratios(samples);
    let header = ["Subject", "Mean", "Objects"].map(str::to_owned).into_iter();
    let header: Vec<String> =
        header.chain(cases.iter().map(|(trace, percent)| format!("{trace} {percent}%"))).collect();
    let shown = |ratios: Option<Ratios>, part: fn(&Ratios) -> f64| {
        ratios
            .as_ref()
            .map_or_else(|| "-".to_owned(), |ratios| Quantity::HitRatio.write(part(ratios)))
    };
    let row = |row: &ReplayRow| {
        let means = [shown(row.mean, |mean| mean.bytes), shown(row.mean, |mean| mean.objects)];
        let cells = row.cases.iter().map(|case| shown(*case, |ratios| ratios.bytes));
        [row.subject.clone()].into_iter().chain(means).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    let mut printout = Printout::default();
    printout
        .text("Byte hit ratios; the mean of all, and of object hit ratios\n")
        .table(header, 1, 1, rows);
    for sample in samples {
        if let Some(error) = &sample.error {
            printout.text(format!("{} on {}: {error}\n", sample.subject.name, sample.case));
        }
    }
    printout
}
