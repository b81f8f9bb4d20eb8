//! The results for people.

use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;
use haypile_measure::statistics::Summary;

use crate::experiment::Printout;
use crate::experiment::on_caches::table::is_of;

/// Returns how often a key was computed, by number of processes.
pub(super) fn printout(samples: &[Sample], contenders: &[Contender]) -> Printout {
    let number = |sample: &Sample, name: &str| sample.parameters.get(name)?.as_u64();
    let mut processes: Vec<u64> =
        samples.iter().filter_map(|sample| number(sample, "processes")).collect();
    processes.sort_unstable();
    processes.dedup();
    let header = ["Subject", "Processes", "Computed per key", "At least", "At most", "Wall ms/key"];
    let mut rows = Vec::new();
    let mut errors = String::new();
    for contender in contenders {
        for &processes in &processes {
            let own: Vec<&Sample> = samples
                .iter()
                .filter(|sample| {
                    number(sample, "processes") == Some(processes) && is_of(sample, contender)
                })
                .collect();
            if let Some(error) = own.iter().find_map(|sample| sample.error.as_ref()) {
                errors = format!("{errors}{} by {processes}: {error}\n", contender.subject);
            }
            let per_key = |of: fn(&Sample) -> f64| {
                let good = own.iter().filter(|sample| sample.error.is_none());
                let each =
                    good.filter_map(|sample| Some(of(sample) / number(sample, "keys")? as f64));
                Summary::of(&each.collect::<Vec<_>>())
            };
            let computed = per_key(|sample| sample.misses as f64);
            let wall_ms = per_key(|sample| sample.wall_ns as f64 / 1e6);
            let shown = |number: Option<f64>| {
                number.map_or_else(|| "-".to_owned(), |number| format!("{number:.2}"))
            };
            rows.push(vec![
                contender.subject.to_string(),
                processes.to_string(),
                shown(computed.as_ref().map(|summary| summary.median)),
                shown(computed.as_ref().map(|summary| summary.min)),
                shown(computed.as_ref().map(|summary| summary.max)),
                shown(wall_ms.as_ref().map(|summary| summary.median)),
            ]);
        }
    }
    let mut printout = Printout::default();
    printout.table(header, 1, 1, rows).text(errors);
    printout
}
