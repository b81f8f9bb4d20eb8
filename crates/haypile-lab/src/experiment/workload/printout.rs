//! The results for people.

use haypile_measure::measure::Contender;
use haypile_measure::result::{Sample, Samples};
use haypile_measure::statistics::Summary;

use super::{SOURCE_OPERATIONS, Workload};
use crate::experiment::Printout;
use crate::experiment::on_caches::table;
use crate::experiment::printout::ratio;

/// Returns the source's table, in microseconds of processor time per operation as it counts them,
/// then the tables of every experiment.
pub(super) fn printout(samples: &[Sample], contenders: &[Contender]) -> Printout {
    let mut names: Vec<&str> = samples.iter().map(|sample| sample.case.as_str()).collect();
    names.dedup();
    let header = ["Subject".to_owned(), "Language".to_owned()].into_iter();
    let header: Vec<String> = header.chain(names.iter().map(|name| heading(name))).collect();
    let row = |contender: &Contender| {
        let own: Samples<'_> =
            samples.iter().filter(|sample| table::is_of(sample, contender)).collect();
        let language = own.iter().map(|sample| sample.subject.language.as_str());
        let language = language.max().unwrap_or_default().to_owned();
        let cells = names.iter().map(|name| cell(name, &own));
        [contender.subject.to_string(), language].into_iter().chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = contenders.iter().map(row).collect();
    let mut printout = Printout::default();
    printout.table(header, 2, 1, rows).gap().append(table::printout(samples, contenders));
    printout
}

fn heading(workload: &str) -> String {
    match workload {
        "proof" => "proof, hit ratio".to_owned(),
        "read" => "read, us/key".to_owned(),
        _ => format!("{workload}, us/set"),
    }
}

/// Returns the hit ratio over all blocks, or the median of times over the blocks.
fn cell(workload: &str, samples: &Samples<'_>) -> String {
    let of_case = samples.iter().copied().filter(|sample| sample.case == workload);
    let samples: Samples<'_> = of_case.collect();
    if workload == Workload::Proof.name() {
        return samples.hit_ratio().map_or_else(|| "-".to_owned(), ratio);
    }
    let good = samples.iter().filter(|sample| sample.error.is_none());
    let times = good.filter_map(|sample| {
        let operations = sample.parameters.get(SOURCE_OPERATIONS)?.as_u64()?;
        Some(share(sample.cpu_ns, operations) / 1000.0)
    });
    Summary::of(&times.collect::<Vec<_>>())
        .map_or_else(|| "-".to_owned(), |summary| format!("{:.3}", summary.median))
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
