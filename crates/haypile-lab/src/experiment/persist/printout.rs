//! The results for people.

use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;
use haypile_measure::statistics::Summary;
use haypile_number::bytes;

use crate::experiment::Printout;
use crate::experiment::on_caches::table::is_of;

const NOTHING: &str = "-";

/// Returns a row for each case and subject.
pub(super) fn printout(samples: &[Sample], contenders: &[Contender]) -> Printout {
    let mut names: Vec<&str> = samples.iter().map(|sample| sample.case.as_str()).collect();
    names.dedup();
    let header = [
        "Case",
        "Subject",
        "CPU s",
        "Wall s",
        "Open s",
        "First hit s",
        "Keys found",
        "Used found",
        "On disk",
    ];
    let mut rows = Vec::new();
    let mut errors = String::new();
    for name in names {
        for contender in contenders {
            let is_own = |sample: &&Sample| sample.case == name && is_of(sample, contender);
            let own: Vec<&Sample> = samples.iter().filter(is_own).collect();
            rows.push(row(name, contender, &own));
            if let Some(error) = own.iter().find_map(|sample| sample.error.as_ref()) {
                errors = format!("{errors}{} on {name}: {error}\n", contender.subject);
            }
        }
    }
    let mut printout = Printout::default();
    printout.text("Medians; times of opening are wall time\n").table(header, 2, 2, rows);
    let loads = loads(samples, contenders);
    if !loads.is_empty() {
        let header = ["Case", "Subject", "Read s", "Check s", "Insert s"];
        printout.text("\nOpening told apart\n").table(header, 2, 2, loads);
    }
    printout.text(errors);
    printout
}

/// The parts of opening, of caches that load what was saved.
fn loads(samples: &[Sample], contenders: &[Contender]) -> Vec<Vec<String>> {
    let mut names: Vec<&str> = samples.iter().map(|sample| sample.case.as_str()).collect();
    names.dedup();
    let mut rows = Vec::new();
    for name in names {
        for contender in contenders {
            let own = || {
                let all = samples.iter().filter(|sample| sample.error.is_none());
                all.filter(|sample| sample.case == name && is_of(sample, contender))
            };
            let seconds = |part: &str| {
                let name = format!("load_{part}_ns");
                median(own().filter_map(|sample| sample.counts.get(&name).copied()))
                    .map(|nanos| format!("{:.3}", nanos / 1e9))
            };
            let parts: Option<Vec<String>> =
                ["read", "check", "insert"].into_iter().map(seconds).collect();
            if let Some(parts) = parts {
                rows.push([vec![name.to_owned(), contender.subject.to_string()], parts].concat());
            }
        }
    }
    rows
}

fn row(case: &str, contender: &Contender, samples: &[&Sample]) -> Vec<String> {
    let good = || samples.iter().filter(|sample| sample.error.is_none());
    let seconds = |of: &dyn Fn(&Sample) -> Option<u64>| {
        median(good().filter_map(|sample| of(sample)))
            .map_or_else(|| NOTHING.to_owned(), |nanos| format!("{:.3}", nanos / 1e9))
    };
    let count = |name: &str| median(good().filter_map(|sample| sample.counts.get(name).copied()));
    let whole = |number: Option<f64>| {
        number.map_or_else(|| NOTHING.to_owned(), |number| format!("{number:.0}"))
    };
    let hits = median(good().map(|sample| sample.hits)).filter(|_| case == "open-half");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes for people")]
    // Blocks on disk, because files may have holes.
    let file = count("disk_bytes").map_or_else(|| NOTHING.to_owned(), |size| bytes(size as u64));
    vec![
        case.to_owned(),
        contender.subject.to_string(),
        seconds(&|sample| Some(sample.cpu_ns)),
        seconds(&|sample| Some(sample.wall_ns)),
        seconds(&|sample| sample.counts.get("open_wall_ns").copied()),
        seconds(&|sample| sample.counts.get("first_hit_wall_ns").copied()),
        whole(count("verified_after")),
        whole(hits),
        file,
    ]
}

fn median(numbers: impl Iterator<Item = u64>) -> Option<f64> {
    let numbers: Vec<f64> = numbers.map(|number| number as f64).collect();
    Summary::of(&numbers).map(|summary| summary.median)
}
