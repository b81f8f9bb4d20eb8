//! `haypile lab replay`

use std::process::ExitCode;

use anyhow::Context;
use haypile::ByteSize;
use haypile_lab::experiment::replay::{self, Generated, Ratios};
use haypile_lab::measure::{Case, Contender};
use haypile_lab::result::Sample;
use haypile_sim::Trace;

use super::measuring;
use crate::args::Reading;
use crate::args::lab::{Replay, TraceName};
use crate::input;
use crate::output::number::ratio;
use crate::output::table::table;

/// Replays traces on caches.
pub(crate) fn run(arguments: &Replay) -> anyhow::Result<ExitCode> {
    let measuring = &arguments.measuring;
    let ByteSize(value_bytes) = arguments.value_size;
    let value_bytes = u32::try_from(value_bytes).context("a value is at most 4294967295 bytes")?;
    let mut cases: Vec<Case> = Vec::new();
    for trace in &arguments.traces {
        let (name, trace) = open(trace)?;
        let replay = replay::Replay::new(&trace, value_bytes).context(name.clone())?;
        cases.extend(replay::cases(&name, replay, &arguments.capacity, measuring.seed));
    }
    let subjects = measuring.subjects(replay::SUBJECTS);
    measuring::run(replay::NAME, cases, &subjects, measuring, text)
}

/// Opens a trace and returns it with its name: its file's up to the first dot.
fn open(name: &TraceName) -> anyhow::Result<(String, Trace)> {
    let generated = name.path.to_str().and_then(Generated::find);
    if let (Some(generated), false) = (generated, name.path.exists()) {
        return Ok((generated.name.to_owned(), generated.trace()?));
    }
    let reading = Reading { format: name.format, ..Reading::default() };
    let paths = [name.path.clone()];
    let trace = input::open(&paths, &reading, false)?;
    let name = input::name(&paths);
    let short = name.split('.').find(|part| !part.is_empty()).unwrap_or(&name).to_owned();
    Ok((short, trace))
}

/// Returns byte hit ratios, then errors.
fn text(samples: &[Sample], _contenders: &[Contender]) -> String {
    let (cases, rows) = replay::ratios(samples);
    let header = ["Subject", "Mean", "Objects"].map(str::to_owned).into_iter();
    let header: Vec<String> =
        header.chain(cases.iter().map(|(trace, percent)| format!("{trace} {percent}%"))).collect();
    let shown = |ratios: Option<Ratios>, part: fn(&Ratios) -> f64| {
        ratios.as_ref().map_or_else(|| "-".to_owned(), |ratios| ratio(part(ratios)))
    };
    let row = |row: &replay::Row| {
        let means = [shown(row.mean, |mean| mean.bytes), shown(row.mean, |mean| mean.objects)];
        let cells = row.cases.iter().map(|case| shown(*case, |ratios| ratios.bytes));
        [row.subject.clone()].into_iter().chain(means).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    let mut text = format!(
        "Byte hit ratios; the mean of all, and of object hit ratios\n{}",
        table(&header, 1, 1, &rows)
    );
    for sample in samples {
        if let Some(error) = &sample.error {
            text = format!("{text}{} on {}: {error}\n", sample.subject.name, sample.case);
        }
    }
    text
}
