//! `haypile lab workload`

use std::process::ExitCode;

use haypile_lab::experiment::workload::{self, SOURCE_OPERATIONS, Workload, case};
use haypile_lab::measure::Contender;
use haypile_lab::result::Sample;
use haypile_lab::statistics::Summary;

use super::measuring;
use crate::args::lab::Workloads;
use crate::output::number::ratio;
use crate::output::table::table;

/// Runs the workloads of RelStorage's local client.
pub(crate) fn run(arguments: &Workloads) -> anyhow::Result<ExitCode> {
    let measuring = &arguments.measuring;
    let workloads = match &arguments.workloads[..] {
        [] => &Workload::ALL,
        workloads => workloads,
    };
    let cases = case::cases(workloads, measuring.seed);
    let subjects = measuring.subjects(workload::SUBJECTS);
    measuring::run(workload::NAME, cases, &subjects, measuring, text)
}

/// Returns the source's table, in microseconds of processor time per operation as it counts them,
/// then the tables of every experiment.
fn text(samples: &[Sample], contenders: &[Contender]) -> String {
    let mut names: Vec<&str> = samples.iter().map(|sample| sample.case.as_str()).collect();
    names.dedup();
    let header = ["Subject".to_owned(), "Language".to_owned()].into_iter();
    let header: Vec<String> = header.chain(names.iter().map(|name| heading(name))).collect();
    let row = |contender: &Contender| {
        let own: Vec<&Sample> =
            samples.iter().filter(|sample| measuring::is_of(sample, contender)).collect();
        let language = own.iter().map(|sample| sample.subject.language.as_str());
        let language = language.max().unwrap_or_default().to_owned();
        let cells = names.iter().map(|name| cell(name, &own));
        [contender.subject.to_string(), language].into_iter().chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = contenders.iter().map(row).collect();
    let source = table(&header, 2, 1, &rows);
    format!("{source}\n{}", measuring::table::text(samples, contenders))
}

fn heading(workload: &str) -> String {
    match workload {
        "proof" => "proof, hit ratio".to_owned(),
        "read" => "read, us/key".to_owned(),
        _ => format!("{workload}, us/set"),
    }
}

/// Returns the median over the blocks.
fn cell(workload: &str, samples: &[&Sample]) -> String {
    let good = samples.iter().filter(|sample| sample.case == workload && sample.error.is_none());
    if workload == Workload::Proof.name() {
        let ratios = good.map(|sample| share(sample.hits, sample.hits + sample.misses));
        return Summary::of(&ratios.collect::<Vec<_>>())
            .map_or_else(|| "-".to_owned(), |summary| ratio(summary.median));
    }
    let times = good.filter_map(|sample| {
        let operations = sample.parameters.get(SOURCE_OPERATIONS)?.as_u64()?;
        Some(share(sample.cpu_ns, operations) / 1000.0)
    });
    Summary::of(&times.collect::<Vec<_>>())
        .map_or_else(|| "-".to_owned(), |summary| format!("{:.3}", summary.median))
}

#[expect(clippy::cast_precision_loss, reason = "counts and times below 2^53")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
