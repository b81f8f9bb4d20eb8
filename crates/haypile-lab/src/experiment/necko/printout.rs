//! The results for people.

use super::{Line, lines};
use crate::experiment::Printout;
use crate::experiment::on_caches::table;
use crate::measure::Contender;
use crate::ranking::rankings;
use crate::result::Sample;

const NOTHING: &str = "-";

/// Returns the source's table, then the tables of every experiment.
pub(super) fn printout(samples: &[Sample], contenders: &[Contender]) -> Printout {
    let rankings = rankings(samples, &table::names(contenders));
    let mut lines = lines(&rankings, samples);
    lines.sort_by_key(|line| line.value_bytes);
    let header =
        ["Size", "Test (cache)", "Total time ms", "#runs", "avg us/run", "miss/hit", "source"];
    let rows: Vec<Vec<String>> = lines.iter().map(row).collect();
    let mut printout = Printout::default();
    printout.table(header, 2, 2, rows).gap().append(table::printout(samples, contenders));
    printout
}

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^32 runs")]
fn row(line: &Line) -> Vec<String> {
    let digits = |number: Option<f64>, digits: usize| {
        number.map_or_else(|| NOTHING.to_owned(), |number| format!("{number:.digits$}"))
    };
    vec![
        line.value_bytes.to_string(),
        line.label.clone(),
        digits(line.run_us.map(|us| us * line.runs as f64 / 1000.0), 3),
        line.runs.to_string(),
        digits(line.run_us, 3),
        digits(line.miss_over_hit, 2),
        digits(line.source_miss_over_hit, 2),
    ]
}
