//! `torture`: values that are lost or wrong when the processes that share a cache are killed and stopped.
//!
//! [`haypile_measure::torture`] defines the cases and what is counted. The experiment measures no times of
//! its own, so it takes no blocks and no seeds of jobs; its subjects are caches that processes
//! share.

mod contestants;
mod options;
mod printout;
mod section;

use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command};
use haypile::ByteSize;
use haypile_measure::figure::{Findings, HIT_RATIO};
use haypile_measure::result::{Asked, Sample, Samples};
use haypile_measure::subject::SubjectSpec;
use haypile_measure::torture::{self, NAME, TortureCase, torture};
use serde_json::json;

pub use options::TortureOptions;

use super::fill::Filled;
use super::session::{Interrupted, Session};
use super::{Ended, Experiment, Host};

/// Directory whose files need no disk.
const MEMORY: &str = "/dev/shm";

/// The experiment `torture`: whether a cache keeps its entries intact when its processes are
/// killed.
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

    /// Its rows time nothing: they have counts, and the hits that a case which evicts is judged by.
    fn findings(&self, samples: &Samples<'_>) -> Findings {
        Findings::of(samples, &[&HIT_RATIO])
    }

    fn body(
        &self,
        _samples: &Samples<'_>,
        cases: &[crate::report::case::Case<'_>],
    ) -> crate::report::section::Body {
        section::body(cases)
    }
}

fn run(options: &TortureOptions, asked: Option<Asked>, host: &dyn Host) -> anyhow::Result<Ended> {
    let mut session = Session::new(NAME, asked, &options.run, host)?;
    let plan = plan(options)?;
    let contestants = contestants::contestants(options)?;
    session.begin(None)?;
    host.begin(plan.steps() * contestants.len() as u64, "torturing".to_owned())?;
    let run = session.run.clone();
    let outcome = torture(&plan, &contestants, &run, host, &mut |sample| session.keep(sample));
    let (unsupported, measured) = match outcome {
        Ok(outcome) if outcome.is_complete => (outcome.unsupported, Ok(())),
        Ok(outcome) => (outcome.unsupported, Err(Interrupted.into())),
        Err(error) => (Vec::new(), Err(error.into())),
    };
    let as_json = |(subject, case): &(SubjectSpec, TortureCase)| json!({ "subject": subject.as_str(), "case": case.name() });
    let fields = |_: &[Sample]| {
        let unsupported: Vec<_> = unsupported.iter().map(as_json).collect();
        [("unsupported".to_owned(), json!(unsupported))].into_iter().collect()
    };
    session.end(measured, fields, |samples| printout::printout(samples, &unsupported))
}

/// Returns what to do to each cache.
fn plan(options: &TortureOptions) -> anyhow::Result<torture::TorturePlan> {
    let quick = options.run.quick;
    if options.boots > 0 && !cfg!(feature = "test-hooks") {
        bail!(
            "--boots needs a build with test hooks; run: cargo build --release -p haypile-cli \
            --features test-hooks"
        );
    }
    let pick = |full: u64, small: u64| if quick { small } else { full };
    let directory = options.run.directory.clone().unwrap_or_else(|| {
        let memory = Path::new(MEMORY);
        if memory.is_dir() { memory.to_owned() } else { env::temp_dir() }
    });
    let directory = std::path::absolute(directory)?;
    let is_there = fs::metadata(&directory)
        .with_context(|| format!("caches cannot be created in {}", directory.display()))?;
    if !is_there.is_dir() {
        bail!(
            "caches cannot be created in {}, which is not a directory; name another by --directory",
            directory.display()
        );
    }
    let size = options.size.map(|ByteSize(bytes)| bytes);
    let cases =
        if options.case.is_empty() { TortureCase::ALL.to_vec() } else { options.case.clone() };
    Ok(torture::TorturePlan {
        cases,
        seed: options.run.seed,
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
        leases: !options.no_leases,
        timeout: options.run.timeout,
        directory,
    })
}
