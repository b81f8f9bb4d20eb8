//! The results for people.

use haypile_measure::figure::{COMPUTATIONS, KEY_WALL};
use haypile_measure::measure::Contender;
use haypile_measure::result::{Sample, Samples};

use crate::experiment::Printout;
use crate::experiment::on_caches::table::{is_of, written};

/// Returns how often a key was computed, by number of processes.
pub(super) fn printout(samples: &[Sample], contenders: &[Contender]) -> Printout {
    let number = |sample: &Sample, name: &str| sample.parameters.get(name)?.as_u64();
    let mut processes: Vec<u64> =
        samples.iter().filter_map(|sample| number(sample, "processes")).collect();
    processes.sort_unstable();
    processes.dedup();
    let header =
        ["Subject", "Processes", "Computed per key", "At least", "At most", KEY_WALL.title];
    let mut rows = Vec::new();
    let mut errors = String::new();
    for contender in contenders {
        for &processes in &processes {
            let own: Samples<'_> = samples
                .iter()
                .filter(|sample| {
                    number(sample, "processes") == Some(processes) && is_of(sample, contender)
                })
                .collect();
            if let Some(error) = own.iter().find_map(|sample| sample.error.as_ref()) {
                errors = format!("{errors}{} by {processes}: {error}\n", contender.subject);
            }
            let range = |of: fn(f64, f64) -> f64| {
                let each = own
                    .iter()
                    .copied()
                    .filter_map(|it| COMPUTATIONS.of(&[it].into_iter().collect()));
                let end = each.map(|each| each.value).reduce(of);
                end.map_or_else(|| "-".to_owned(), |end| COMPUTATIONS.quantity.write(end))
            };
            rows.push(vec![
                contender.subject.to_string(),
                processes.to_string(),
                written(&COMPUTATIONS, COMPUTATIONS.of(&own)),
                range(f64::min),
                range(f64::max),
                written(&KEY_WALL, KEY_WALL.of(&own)),
            ]);
        }
    }
    let mut printout = Printout::default();
    printout.table(header, 1, 1, rows).text(errors);
    printout
}
