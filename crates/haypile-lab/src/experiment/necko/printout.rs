//! The results for people.

use haypile_measure::measure::Contender;
use haypile_measure::result::Sample;

use super::{Line, lines};
use crate::experiment::Printout;
use crate::experiment::on_caches::table;
use crate::ranking::rankings;

const NOTHING: &str = "-";

/// The meaning of rows of a browser.
const BROWSER: &str = "\
necko: a request of a browser also costs its event loop and its processes; necko:none and Calloverhead show
that part. With both caches on, a browser keeps its entries on disk: necko:both is not a cache of two levels.
";

/// Returns the table of the Necko benchmarks with the measured values, followed by the tables that
/// every experiment prints.
pub(super) fn printout(samples: &[Sample], contenders: &[Contender]) -> Printout {
    let rankings = rankings(samples, &table::names(contenders));
    let mut lines = lines(&rankings, samples);
    lines.sort_by_key(|line| line.value_bytes);
    let mut printout = Printout::default();
    if lines.iter().any(|line| line.is_over_http) {
        let header = [
            "Size",
            "Test (cache)",
            "Total time ms",
            "#runs",
            "avg ms/run",
            "miss/hit",
            "source's",
            "Ubuntu ms",
            "Nexus S ms",
        ];
        let rows = lines.iter().map(http_row).collect();
        printout.table(header, 2, 2, rows);
        printout.text(
            "Ubuntu and Nexus S: the source's machines; its origin took some 27 ms to answer.\n"
                .to_owned(),
        );
        if lines.iter().any(|line| line.label.contains("(necko")) {
            printout.text(BROWSER.to_owned());
        }
    } else {
        let header = ["Size", "Test (cache)", "Total time ms", "#runs", "avg us/run", "miss/hit"];
        printout.table(header, 2, 2, lines.iter().map(cache_row).collect());
    }
    printout.gap().append(table::printout(samples, contenders));
    printout
}

fn cache_row(line: &Line) -> Vec<String> {
    let mut row = beginning(line);
    row.push(digits(line.run_us, 3));
    row.push(digits(line.miss_over_hit, 2));
    row
}

fn http_row(line: &Line) -> Vec<String> {
    let mut row = beginning(line);
    row.push(digits(line.run_us.map(|us| us / 1000.0), 4));
    for number in [line.miss_over_hit, line.source_miss_over_hit, line.ubuntu_ms, line.nexus_s_ms] {
        row.push(digits(number, 2));
    }
    row
}

/// The columns of both forms.
fn beginning(line: &Line) -> Vec<String> {
    vec![
        line.value_bytes.to_string(),
        line.label.clone(),
        digits(line.run_us.map(|us| us * line.runs as f64 / 1000.0), 3),
        line.runs.to_string(),
    ]
}

fn digits(number: Option<f64>, digits: usize) -> String {
    number.map_or_else(|| NOTHING.to_owned(), |number| format!("{number:.digits$}"))
}
