//! `torture`: what is lost or wrong when the processes that share a cache are killed and stopped.
//!
//! [`crate::torture`] defines the cases and what is counted. The experiment measures no times of
//! its own, so it takes no blocks and no seeds of jobs; its subjects are caches that processes
//! share.

mod contestants;
mod options;
mod printout;
#[cfg(feature = "report")]
mod section;

use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command};
use haypile::ByteSize;
use serde_json::json;

pub use options::TortureOptions;

use super::fill::Filled;
use super::{Ended, Experiment, Host};
use crate::result::{Asked, ResultsWriter, Run, Sample, command_line};
use crate::torture::{self, NAME, TortureCase, Watcher, torture};

/// Directory whose files need no disk.
const MEMORY: &str = "/dev/shm";

/// The experiment.
pub(crate) struct TortureExperiment;

impl Experiment for TortureExperiment {
    fn name(&self) -> &'static str {
        NAME
    }

    fn title(&self) -> &'static str {
        "Killed and stopped processes"
    }

    fn file(&self) -> &'static str {
        include_str!("torture.toml")
    }

    fn arguments(&self, command: Command) -> Command {
        TortureOptions::augment_args(command)
    }

    fn run(&self, line: &ArgMatches, host: &dyn Host) -> anyhow::Result<Ended> {
        let filled = Filled::new(self, line)?;
        run(&filled.get()?, filled.asked, host)
    }

    #[cfg(feature = "report")]
    fn body(
        &self,
        _samples: &crate::result::Samples<'_>,
        cases: &[crate::report::case::Case<'_>],
    ) -> crate::report::section::Body {
        section::body(cases)
    }
}

fn run(options: &TortureOptions, asked: Option<Asked>, host: &dyn Host) -> anyhow::Result<Ended> {
    if let Some(path) = &options.out {
        host.check_output(path)?;
    }
    let plan = plan(options)?;
    let contestants = contestants::contestants(options)?;
    let mut results = options.out.as_ref().map(ResultsWriter::append).transpose()?;
    let run = Run { asked, ..Run::begin(NAME, command_line(), plan.seed) };
    for warning in run.warnings() {
        host.note(&format!("warning: {warning}"));
    }
    host.begin(plan.steps() * contestants.len() as u64, "torturing".to_owned())?;
    let outcome = torture(&plan, &contestants, &run, results.as_mut(), &WatchedHost(host));
    host.finish();
    let outcome = outcome?;
    let samples = &outcome.samples;
    if options.json {
        let unsupported: Vec<_> = outcome
            .unsupported
            .iter()
            .map(|(subject, case)| json!({ "subject": subject.as_str(), "case": case.name() }))
            .collect();
        host.print_json(&json!({
            "run": run,
            "complete": outcome.is_complete,
            "samples": samples,
            "unsupported": unsupported,
        }))?;
    } else if !samples.is_empty() {
        host.print(&printout::printout(samples, &outcome.unsupported))?;
    }
    if !outcome.is_complete {
        let finished = samples.len();
        bail!("interrupted; printed {finished} cases");
    }
    Ok(Ended::with_errors(samples.iter().any(|sample| sample.error.is_some())))
}

/// Returns what to do to each cache.
fn plan(options: &TortureOptions) -> anyhow::Result<torture::TorturePlan> {
    let quick = options.quick;
    if options.boots > 0 && !cfg!(feature = "test-hooks") {
        bail!(
            "--boots needs a build with test hooks; run: cargo build --release -p haypile-cli \
            --features test-hooks"
        );
    }
    let pick = |full: u64, small: u64| if quick { small } else { full };
    let directory = options.directory.clone().unwrap_or_else(|| {
        let memory = Path::new(MEMORY);
        if memory.is_dir() { memory.to_owned() } else { env::temp_dir() }
    });
    let directory = std::path::absolute(directory)?;
    let is_there = fs::metadata(&directory)
        .with_context(|| format!("cannot create caches in {}", directory.display()))?;
    if !is_there.is_dir() {
        bail!("cannot create caches in {}: not a directory", directory.display());
    }
    let size = options.size.map(|ByteSize(bytes)| bytes);
    let cases =
        if options.case.is_empty() { TortureCase::ALL.to_vec() } else { options.case.clone() };
    Ok(torture::TorturePlan {
        cases,
        seed: options.seed,
        capacity_bytes: size.unwrap_or(pick(32, 4) << 20),
        writers: options.writers,
        readers: options.readers,
        kills: options.kills.unwrap_or(pick(1_000, 40)),
        longest_run: Duration::from_millis(pick(60, 15)),
        stops: pick(10, 2),
        stop: options.stop.unwrap_or(Duration::from_millis(pick(2_000, 200))),
        kill_all_rounds: pick(50, 3),
        takeovers: pick(50, 3),
        tolerance: (!quick).then_some(0.01),
        boots: options.boots,
        timeout: options.timeout,
        directory,
    })
}

/// Watcher that shows progress and listens to Ctrl-C.
struct WatchedHost<'a>(&'a dyn Host);

impl Watcher for WatchedHost<'_> {
    fn advance(&self, steps: u64) {
        self.0.advance(steps);
    }

    fn finished(&self, _sample: &Sample) {}

    fn is_interrupted(&self) -> bool {
        self.0.is_interrupted()
    }
}
