//! The results of `workload` for people.

use haypile_measure::figure;
use haypile_measure::measure::Contender;
use haypile_measure::result::{Sample, Samples};

use super::{Workload, source};
use crate::experiment::Printout;
use crate::experiment::on_caches::table;

/// Returns RelStorage's table of processor time per operation with our results, followed by the
/// tables that every experiment prints.
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
    let own = contenders.iter().map(row);
    let rows: Vec<Vec<String>> = own.chain(source::rows(&names)).collect();
    let mut printout = Printout::default();
    printout.table(header, 2, 1, rows).gap().append(table::printout(samples, contenders));
    printout
}

fn heading(workload: &str) -> String {
    match workload {
        "proof" => "proof, hit ratio".to_owned(),
        "read" => "read, per key".to_owned(),
        _ => format!("{workload}, per set"),
    }
}

/// Returns the hit ratio of the proof, or the processor time per operation of the source.
fn cell(workload: &str, samples: &Samples<'_>) -> String {
    let of_case = samples.iter().copied().filter(|sample| sample.case == workload);
    let is_proof = workload == Workload::Proof.name();
    let figure = if is_proof { &figure::HIT_RATIO } else { &figure::SOURCE_CPU };
    table::written(figure, figure.of(&of_case.collect()))
}
