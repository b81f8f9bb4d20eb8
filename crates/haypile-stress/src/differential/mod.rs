//! Runs of every operation on one cache, compared with a plain model.
//!
//! A run performs random steps on a cache and on a model. The model is a map with expiry times; it
//! knows what a correct cache may answer, and every other answer is a [`Failure`]:
//!
//! - A value is the last one that was written, never an older one, whichever way it is read.
//! - What was deleted, has expired or was missed once does not come back.
//! - Nothing is missing as long as all of it is so little that nothing has to be evicted.
//! - Conditions, counters and remaining lives are right; a version belongs to one write.
//! - A value that is kept in place stays what it was, over all later steps.
//! - `keys`, `len`, `bytes` and the statistics agree with what single operations return.
//! - A call is refused only for a reason that the documents name, and then nothing has changed.
//!
//! Seed and number decide each step, so a run repeats. A failing run is [shortened](shrink) to the
//! steps that it takes to fail.

mod computations;
mod counts;
mod generator;
mod history;
mod key;
mod mismatch;
mod model;
mod operation;
mod pins;
mod promises;
pub(crate) mod ranges;
mod reads;
mod run;
mod shrink;
mod tally;
mod time;
mod value;
mod versions;
mod whole;
mod writes;

use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use generator::Shape;
use history::History;
use key::Key;
use mismatch::Mismatch;
pub(crate) use promises::Retention;
pub(crate) use run::Allowed;
use run::Run;
pub(crate) use tally::Tally;

use crate::filler::LONGEST_SLICE_BYTES;
use crate::target::{Target, shown};
use crate::watch::{Watch, is_interrupted};

/// The settings of a test that compares a cache with a model (differential test).
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// URL of the cache under test; `{dir}` stands for a separate directory of each run.
    pub(crate) url: String,
    pub(crate) seed: u64,
    /// Number of operations of a run.
    pub(crate) steps: u64,
    /// The time for which further runs are made, each with the next seed; `None` for one run.
    pub(crate) time: Option<Duration>,
    pub(crate) keys: u16,
    pub(crate) longest_value_bytes: usize,
    /// Number of namespaces that share the cache; 0 for none.
    pub(crate) namespaces: usize,
    /// Number of handles (separately opened caches) through which each namespace uses the cache, if
    /// the cache can have several.
    pub(crate) handles: usize,
    /// The largest number of values that a run keeps pinned (read in place, without a copy) in the
    /// cache at the same time.
    pub(crate) pins: usize,
    pub(crate) retention: Option<Retention>,
    pub(crate) allows: Allowed,
    /// Whether every operation of a run is printed.
    pub(crate) is_verbose: bool,
    /// The numbers of the only operations to perform in a run; `None` for all.
    pub(crate) only: Option<Vec<u64>>,
    /// The time to spend on shortening a failing run, by leaving operations out.
    pub(crate) shrink_time: Duration,
}

/// A failing run of a test that compares a cache with a model (differential test).
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Failure {
    pub(crate) seed: u64,
    /// Number of the failing operation in its run.
    pub(crate) step: u64,
    /// The wrong answer of the cache, as text.
    pub(crate) text: String,
    /// The last operations on the key, with their outcomes; the failing one is last.
    pub(crate) history: Vec<String>,
    /// The numbers of the operations in the shortest run that was found to fail.
    pub(crate) only: Vec<u64>,
    #[serde(skip)]
    key: Option<Key>,
    #[serde(skip)]
    shape: Shape,
}

/// The outcome of a test that compares a cache with a model (differential test).
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) url: String,
    pub(crate) seed: u64,
    pub(crate) steps: u64,
    #[serde(flatten)]
    pub(crate) tally: Tally,
    pub(crate) failure: Option<Failure>,
}

impl Plan {
    fn handles(&self, target: &Target) -> usize {
        // Several levels belong to one handle: another would be another process.
        let can_share = target.is_shared() && target.kinds().len() == 1;
        if can_share { self.handles.max(1) } else { 1 }
    }

    fn shape(&self, target: &Target) -> Shape {
        Shape {
            keys: self.keys.max(1),
            longest_value_bytes: self.longest_value_bytes.min(LONGEST_SLICE_BYTES),
            tenants: self.namespaces.max(1),
            handles: self.handles(target),
        }
    }

    fn numbers(&self) -> Vec<u64> {
        self.only.clone().unwrap_or_else(|| (0..self.steps).collect())
    }
}

/// Runs a test that compares a cache with a model (differential test), until it fails or its time
/// is over.
///
/// # Errors
///
/// A URL that is wrong, or a cache that cannot be opened.
pub(crate) fn test(plan: &Plan, watch: &mut Watch) -> Result<Report> {
    let begin = Instant::now();
    let mut report = Report {
        url: shown(&plan.url),
        seed: plan.seed,
        steps: plan.steps,
        tally: Tally::default(),
        failure: None,
    };
    for seed in plan.seed.. {
        let (tally, failure) = attempt(plan, seed, &plan.numbers(), watch)?;
        report.tally.add(&tally);
        report.tally.runs += 1;
        if let Some(failure) = failure {
            report.failure = Some(shrink::shorten(plan, failure, watch)?);
            break;
        }
        let is_over = plan.time.is_none_or(|time| begin.elapsed() >= time);
        if is_over || is_interrupted() {
            break;
        }
    }
    Ok(report)
}

/// Performs steps on a new cache.
fn attempt(
    plan: &Plan,
    seed: u64,
    numbers: &[u64],
    watch: &mut Watch,
) -> Result<(Tally, Option<Failure>)> {
    let mut run = Run::new(plan, seed)?;
    let shape = plan.shape(&run.target);
    let mut history = History::default();
    let fail = |step: u64, mismatch: &Mismatch, history: &History| Failure {
        seed,
        step,
        text: mismatch.to_string(),
        history: history.of(mismatch.key),
        only: numbers.iter().copied().take_while(|number| *number <= step).collect(),
        key: mismatch.key,
        shape,
    };
    for &number in numbers {
        let step = generator::step(shape, seed, number);
        // A panic is a failure like any other, and repeats like any other.
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| run.perform(&step)));
        let outcome = outcome.unwrap_or_else(|panic| Err(Mismatch::of_panic(&step, &*panic)));
        let text = match &outcome {
            Ok(text) => format!("{step} -> {text}"),
            Err(mismatch) => format!("{step} -> WRONG: {mismatch}"),
        };
        if plan.is_verbose {
            eprintln!("{text}");
        }
        history.note(&step, &text);
        if let Err(mismatch) = outcome {
            return Ok((run.tally, Some(fail(number, &mismatch, &history))));
        }
        watch.progress(|| format!("seed {seed}, step {number} of {}", plan.steps));
        if is_interrupted() {
            break;
        }
    }
    let last = numbers.last().copied().unwrap_or(0);
    let finished = run.finish();
    let failure = finished.err().map(|mismatch| fail(last, &mismatch, &history));
    Ok((run.tally, failure))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { operations, hits, misses, stored, pins_compared, busy, full, runs } =
            self.tally;
        writeln!(
            f,
            "{}: {operations} operations in {runs} runs from seed {}: {hits} hits, {misses} \
             misses, {stored} stored, {pins_compared} comparisons in place, {busy} busy, {full} full",
            self.url, self.seed
        )?;
        match &self.failure {
            None => f.write_str("nothing wrong"),
            Some(failure) => write!(f, "{}", failure.describe(self)),
        }
    }
}

impl Failure {
    fn describe(&self, report: &Report) -> String {
        let Self { seed, step, text, history, only, .. } = self;
        format!(
            "WRONG, seed {seed}, step {step}: {text}\nthe last steps about it:\n  {}\n{} steps \
             are enough to repeat it:\n  haypile-stress differential '{}' --replay {seed} --steps \
             {} --only {}",
            history.join("\n  "),
            only.len(),
            report.url,
            step + 1,
            ranges::format(only)
        )
    }
}
