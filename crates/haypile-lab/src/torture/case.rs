//! One case after the other, and their rows.

use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::Value;

use super::context::TestContext;
use super::controls::Controls;
use super::plan::{Case, Contestant, NAME, Options, Outcome, Watcher};
use super::stage::Stage;
use super::tally::Tally;
use super::{kill_all, kills, stops, takeover};
use crate::measure::MeasureError;
use crate::result::{Parameters, ResultsWriter, Row, Run, Sample, SubjectId};

/// Tortures all contestants by all cases. The row of `run` comes first, and each case's as soon as
/// it is finished. What is wrong is the error of a row, and its counts say how much.
///
/// # Errors
///
/// [`MeasureError`], where the results cannot be written or a cache has no place. What is finished
/// is in the results by then.
pub fn torture(
    options: &Options,
    contestants: &[Contestant],
    run: &Run,
    mut results: Option<&mut ResultsWriter>,
    watcher: &dyn Watcher,
) -> Result<Outcome, MeasureError> {
    if let Some(results) = &mut results {
        results.write(&Row::Run(run.clone()))?;
    }
    let mut outcome = Outcome { samples: Vec::new(), unsupported: Vec::new(), is_complete: false };
    for &case in &options.cases {
        for (position, contestant) in contestants.iter().enumerate() {
            let mut controls = Controls::default();
            let count = options.controls(case);
            for block in 0..=count {
                let is_control = block < count;
                let begun = Instant::now();
                let tally = one(options, contestant, watcher, case, is_control)?;
                if watcher.is_interrupted() {
                    return Ok(outcome);
                }
                let Some(tally) = tally else {
                    outcome.unsupported.push((contestant.subject.clone(), case));
                    continue;
                };
                let mut sample = blank(options, contestant, run, case, is_control);
                sample.block = if is_control { block } else { 0 };
                sample.position = position as u64;
                sample.wall_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
                sample.operations = tally.acknowledged;
                sample.hits = tally.hits;
                sample.misses = tally.reads.saturating_sub(tally.hits);
                sample.counts = tally.counts();
                sample.error = tally.verdict();
                let ratio = tally.hit_ratio();
                if is_control {
                    controls.add(ratio);
                } else if case == Case::Evict {
                    let counts = controls.counts(ratio);
                    sample.counts.extend(counts.map(|(name, count)| (name.to_owned(), count)));
                    let low = options.tolerance.and_then(|points| controls.judge(ratio, points));
                    sample.error = sample.error.or(low);
                }
                if let Some(results) = &mut results {
                    results.write(&Row::Sample(sample.clone()))?;
                }
                watcher.finished(&sample);
                outcome.samples.push(sample);
            }
        }
    }
    outcome.is_complete = true;
    Ok(outcome)
}

/// `None` if the cache cannot do it.
fn one(
    options: &Options,
    contestant: &Contestant,
    watcher: &dyn Watcher,
    case: Case,
    is_control: bool,
) -> Result<Option<Tally>, MeasureError> {
    let mut builder = tempfile::Builder::new();
    let place = builder.prefix("haypile-torture-").tempdir_in(&options.directory);
    let place = place.map_err(MeasureError::Directory)?;
    let (capacity, writers) = (options.capacity_bytes, options.writers);
    let stage = match case {
        Case::Evict | Case::Stop => Stage::evict(capacity, writers),
        Case::Keep | Case::All | Case::Compute => Stage::keep(capacity, writers),
    };
    let context = TestContext::new(options, contestant, watcher, stage, place.path().to_owned());
    match case {
        Case::Keep | Case::Evict => kills::run(&context, is_control),
        Case::Stop => stops::run(&context),
        Case::All => kill_all::run(&context),
        Case::Compute => {
            if takeover::run(&context).is_err() {
                return Ok(None);
            }
        }
    }
    let operations = context.operations.load(Ordering::Relaxed);
    let mut tally = context.tally.into_inner();
    if operations == 0 && case != Case::Compute && tally.verdict().is_none() {
        tally.hung += 1;
        tally.find(|| "no operation was ever acknowledged".to_owned());
    }
    Ok(Some(tally))
}

fn blank(
    options: &Options,
    contestant: &Contestant,
    run: &Run,
    case: Case,
    is_control: bool,
) -> Sample {
    let harm = match case {
        Case::Keep | Case::Evict if is_control => ("kills", 0),
        Case::Keep | Case::Evict => ("kills", options.kills),
        Case::Stop => ("stops", options.stops),
        Case::All => ("massacres", options.kill_all_rounds),
        Case::Compute => ("takeovers", options.takeovers),
    };
    let mut parameters = vec![
        harm,
        ("capacity_bytes", options.capacity_bytes),
        ("writers", options.writers),
        ("readers", options.readers),
    ];
    if options.boots > 0 {
        parameters.push(("boots", options.boots));
    }
    if matches!(case, Case::Keep | Case::All) {
        // Rows without it are of a time when no value was longer than a segment.
        let stage = Stage::keep(options.capacity_bytes, options.writers);
        parameters.push(("longest_bytes", stage.lengths.longest_bytes));
    }
    if case == Case::Stop {
        let stop_ms = u64::try_from(options.stop.as_millis()).unwrap_or(u64::MAX);
        parameters.push(("stop_ms", stop_ms));
    }
    let parameters: Parameters = parameters
        .into_iter()
        .map(|(name, number)| (name.to_owned(), Value::from(number)))
        .collect();
    let subject = SubjectId {
        name: contestant.subject.to_string(),
        version: contestant.version.clone(),
        language: contestant.language.clone(),
        program: contestant.runner.label.clone(),
    };
    Sample::blank(run, NAME, case.name(), parameters, subject)
}
