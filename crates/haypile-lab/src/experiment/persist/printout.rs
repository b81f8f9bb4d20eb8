//! The results for people.

use haypile_measure::figure::Figure;
use haypile_measure::measure::Contender;
use haypile_measure::result::{Sample, Samples};

use super::section::{COLUMNS, LOADS};
use crate::experiment::Printout;
use crate::experiment::on_caches::table::{is_of, written};

/// Returns a row for each case and subject.
pub(super) fn printout(samples: &[Sample], contenders: &[Contender]) -> Printout {
    let mut names: Vec<&str> = samples.iter().map(|sample| sample.case.as_str()).collect();
    names.dedup();
    let (mut rows, mut loads) = (Vec::new(), Vec::new());
    let mut errors = String::new();
    for name in names {
        for contender in contenders {
            let is_own = |sample: &&Sample| sample.case == name && is_of(sample, contender);
            let own: Samples<'_> = samples.iter().filter(is_own).collect();
            let row = |columns: &[&Figure]| {
                let cells = columns.iter().map(|figure| written(figure, figure.of(&own)));
                [name.to_owned(), contender.subject.to_string()].into_iter().chain(cells).collect()
            };
            rows.push(row(&COLUMNS));
            if LOADS[0].of(&own).is_some() {
                loads.push(row(&LOADS));
            }
            if let Some(error) = own.iter().find_map(|sample| sample.error.as_ref()) {
                errors = format!("{errors}{} on {name}: {error}\n", contender.subject);
            }
        }
    }
    let header = |columns: &[&'static Figure]| {
        let titles = columns.iter().map(|figure| figure.title);
        ["Case", "Subject"].into_iter().chain(titles).collect::<Vec<_>>()
    };
    let mut printout = Printout::default();
    printout.text("Times of opening are wall time\n").table(header(&COLUMNS), 2, 2, rows);
    if !loads.is_empty() {
        printout.text("\nOpening told apart\n").table(header(&LOADS), 2, 2, loads);
    }
    printout.text(errors);
    printout
}
