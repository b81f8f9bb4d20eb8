//! `haypile lab loop` and `haypile lab sequence`

use std::process::ExitCode;

use haypile_lab::experiment::necko::{
    LOOP, Line, LoopOptions, SEQUENCE, SUBJECTS, lines, loop_cases, sequence_cases,
};
use haypile_lab::measure::Contender;
use haypile_lab::result::Sample;
use haypile_lab::standings::standings;

use super::measuring;
use crate::args::lab::{Loop, Sequence};
use crate::output::table::table;

const NOTHING: &str = "-";

/// Repeats single operations.
pub(crate) fn run_loop(arguments: &Loop) -> anyhow::Result<ExitCode> {
    let measuring = &arguments.measuring;
    let options =
        LoopOptions { sizes: arguments.sizes.clone(), runs: arguments.runs, seed: measuring.seed };
    let subjects = measuring.subjects(SUBJECTS);
    measuring::run(LOOP, loop_cases(&options), &subjects, measuring, text)
}

/// Loads many resources twice.
pub(crate) fn run_sequence(arguments: &Sequence) -> anyhow::Result<ExitCode> {
    let measuring = &arguments.measuring;
    let cases = sequence_cases(&arguments.sizes, measuring.seed);
    measuring::run(SEQUENCE, cases, &measuring.subjects(SUBJECTS), measuring, text)
}

/// Returns the source's table, then the tables of every experiment.
fn text(samples: &[Sample], contenders: &[Contender]) -> String {
    let standings = standings(samples, &measuring::names(contenders));
    let mut lines = lines(&standings, samples);
    lines.sort_by_key(|line| line.value_bytes);
    let header =
        ["Size", "Test (cache)", "Total time ms", "#runs", "avg us/run", "miss/hit", "source"];
    let rows: Vec<Vec<String>> = lines.iter().map(row).collect();
    let source = table(&header.map(str::to_owned), 2, 2, &rows);
    format!("{source}\n{}", measuring::table::text(samples, contenders))
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
