//! The run of all cases of a torture, one after the other, with their rows.

use std::sync::atomic::Ordering;
use std::time::Instant;

use serde_json::Value;

use super::context::TestContext;
use super::controls::Controls;
use super::plan::{Contestant, NAME, TortureCase, TortureOutcome, TorturePlan};
use super::spoken::Unsupported;
use super::stage::Stage;
use super::tally::Tally;
use super::{invalidate, kill_all, kills, role, stops, takeover};
use crate::measure::{KeepSample, MeasureError, Watcher};
use crate::result::{Parameters, Run, Sample, SubjectId};
use crate::subject::{Room, Servers, SubjectError};

/// Runs each torture case (which kills processes of a cache) on each cache, and calls `keep` with
/// each finished sample. A wrong or lost value is the error of a sample; its counts say how many
/// there were.
///
/// # Errors
///
/// [`MeasureError`], where a sample cannot be kept or a cache has no place.
pub fn torture(
    options: &TorturePlan,
    contestants: &[Contestant],
    run: &Run,
    watcher: &dyn Watcher,
    keep: &mut KeepSample<'_>,
) -> Result<TortureOutcome, MeasureError> {
    let mut outcome = TortureOutcome { unsupported: Vec::new(), is_complete: false };
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
                if case == TortureCase::Invalidate {
                    sample.counts.extend(tally.removals());
                }
                sample.error = tally.verdict();
                let ratio = tally.hit_ratio();
                if is_control {
                    controls.add(ratio);
                } else if case == TortureCase::Evict {
                    let counts = controls.counts(ratio);
                    sample.counts.extend(counts.map(|(name, count)| (name.to_owned(), count)));
                    let low = options.tolerance.and_then(|points| controls.judge(ratio, points));
                    sample.error = sample.error.or(low);
                }
                keep(sample)?;
            }
        }
    }
    outcome.is_complete = true;
    Ok(outcome)
}

/// `None` if the cache cannot do it.
fn one(
    options: &TorturePlan,
    contestant: &Contestant,
    watcher: &dyn Watcher,
    case: TortureCase,
    is_control: bool,
) -> Result<Option<Tally>, MeasureError> {
    let mut builder = tempfile::Builder::new();
    let place = builder.prefix("haypile-torture-").tempdir_in(&options.directory);
    let place = place.map_err(MeasureError::Directory)?;
    let (capacity, writers) = (options.capacity_bytes, options.writers);
    let stage = match case {
        TortureCase::Evict | TortureCase::Stop => Stage::evict(capacity, writers),
        TortureCase::Invalidate => Stage::invalidate(capacity, writers),
        TortureCase::Keep | TortureCase::All | TortureCase::Compute => {
            Stage::keep(capacity, writers)
        }
    };
    // Clients join it.
    let _servers = match (case, role::SERVERS.contains(&contestant.subject.name())) {
        (_, false) => None,
        (TortureCase::Invalidate, true) => {
            let room = Room::new(capacity, capacity / stage.lengths.mean_bytes());
            let servers = Servers::start(&contestant.subject, &room, place.path());
            let program = contestant.subject.to_string();
            let refused =
                |error: SubjectError| MeasureError::Refused { program, why: error.to_string() };
            Some(servers.map_err(refused)?)
        }
        (_, true) => return Ok(None),
    };
    let context = TestContext::new(options, contestant, watcher, stage, place.path().to_owned());
    let mut done = Ok(());
    match case {
        TortureCase::Keep | TortureCase::Evict => kills::run(&context, is_control),
        TortureCase::Stop => stops::run(&context),
        TortureCase::All => kill_all::run(&context),
        TortureCase::Compute => done = takeover::run(&context),
        TortureCase::Invalidate => done = invalidate::run(&context, is_control),
    }
    if done == Err(Unsupported) {
        return Ok(None);
    }
    let operations = context.operations.load(Ordering::Relaxed);
    let mut tally = context.tally.into_inner();
    if operations == 0 && case != TortureCase::Compute && tally.verdict().is_none() {
        tally.hung += 1;
        tally.find(|| "no operation was ever acknowledged".to_owned());
    }
    Ok(Some(tally))
}

fn blank(
    options: &TorturePlan,
    contestant: &Contestant,
    run: &Run,
    case: TortureCase,
    is_control: bool,
) -> Sample {
    let harm = match case {
        TortureCase::Keep | TortureCase::Evict | TortureCase::Invalidate => {
            ("kills", if is_control { 0 } else { options.kills })
        }
        TortureCase::Stop => ("stops", options.stops),
        TortureCase::All => ("massacres", options.kill_all_rounds),
        TortureCase::Compute => ("takeovers", options.takeovers),
    };
    let mut parameters = vec![
        harm,
        ("capacity_bytes", options.capacity_bytes),
        ("writers", options.writers),
        ("readers", options.readers),
    ];
    if case == TortureCase::Invalidate && !options.leases {
        parameters.push(("leases", 0));
    }
    if options.boots > 0 {
        parameters.push(("boots", options.boots));
    }
    if matches!(case, TortureCase::Keep | TortureCase::All | TortureCase::Invalidate) {
        // Rows without it are of a time when no value was longer than a segment.
        let stage = Stage::keep(options.capacity_bytes, options.writers);
        parameters.push(("longest_bytes", stage.lengths.longest_bytes));
    }
    if case == TortureCase::Stop {
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
