//! Runners that are a few lines of shell.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haypile_measure::job::Ops;
use haypile_measure::measure::{
    Case, Contender, Expected, Plan, Runner, RunnerLimits, Watcher, measure,
};
use haypile_measure::result::{Parameters, Run, Sample};

use crate::job::{set_all, settings, write_job};

/// The output of a runner that does the job of [`case`].
pub(crate) const RESULTS: &str = "\
    echo operations 10; echo wall_ns 1000; echo cpu_ns 900; echo hits 0; echo misses 0
    echo errors 0; echo wrong 0; echo verified_before 10; echo verified_after 10
    echo version 1.2; echo language sh; echo memory_bytes 4096; echo entries 10; echo end";

/// A runner that does everything right but for what `results` replaces.
pub(crate) fn polite(results: &str) -> String {
    format!("echo ready; read go; [ \"$go\" = go ] || exit 9; echo timed; read verify\n{results}")
}

pub(crate) fn contender(script: &str) -> Contender {
    let arguments = ["-c", script, "runner"].map(Into::into).to_vec();
    let runner = Runner {
        program: "/bin/sh".into(),
        arguments,
        label: "script".to_owned(),
        several_jobs: false,
    };
    Contender { subject: "thing".parse().unwrap(), runner: Arc::new(runner) }
}

/// Ten sets, after which ten keys are there.
pub(crate) fn case() -> Case {
    let write = |directory: &Path| {
        write_job(directory, &settings(), &set_all(), &[set_all()]);
        Ok(Expected {
            operations: Ops::operations(&set_all()),
            verified_before: Some(10),
            verified_after: Some(10),
            ..Expected::default()
        })
    };
    Case {
        experiment: "test",
        name: "set".to_owned(),
        parameters: Parameters::new(),
        processes: 1,
        skips: &[],
        write: Box::new(write),
    }
}

pub(crate) fn plan(contenders: Vec<Contender>) -> Plan {
    let limits = RunnerLimits::default();
    Plan {
        cases: vec![case()],
        then: None,
        contenders,
        blocks: 1,
        seed: 1,
        warm_up: 0,
        limits,
        surroundings: None,
        keeps_runners: false,
    }
}

/// A watcher that ends a measurement after this number of samples.
pub(crate) struct StopAfter {
    samples: u64,
    seen: AtomicU64,
}

impl StopAfter {
    pub(crate) fn samples(samples: u64) -> Self {
        Self { samples, seen: AtomicU64::new(0) }
    }
}

impl Watcher for StopAfter {
    fn advance(&self, steps: u64) {
        self.seen.fetch_add(steps, Ordering::Relaxed);
    }

    fn is_interrupted(&self) -> bool {
        self.seen.load(Ordering::Relaxed) >= self.samples
    }
}

/// The samples of a measurement, and whether the user let it finish.
pub(crate) struct Outcome {
    pub(crate) samples: Vec<Sample>,
    pub(crate) is_complete: bool,
}

pub(crate) fn run() -> Run {
    Run::begin("test", "test".to_owned(), 1)
}

pub(crate) fn measured(plan: &Plan) -> Outcome {
    measured_until(plan, u64::MAX)
}

/// Measures a plan until this number of samples is finished.
pub(crate) fn measured_until(plan: &Plan, stop_after: u64) -> Outcome {
    let watcher = StopAfter::samples(stop_after);
    let mut samples = Vec::new();
    let mut keep = |sample| {
        samples.push(sample);
        Ok(())
    };
    let is_complete = measure(plan, &run(), &watcher, &mut keep).unwrap();
    assert_eq!(samples.len() as u64, watcher.seen.into_inner());
    Outcome { samples, is_complete }
}

/// The one sample of one runner.
pub(crate) fn sample(script: &str) -> Sample {
    let outcome = measured(&plan(vec![contender(script)]));
    assert!(outcome.is_complete);
    let [sample] = &outcome.samples[..] else { panic!("one sample") };
    sample.clone()
}

/// The same within a limit that is over at once.
pub(crate) fn sample_at_once(script: &str, prepare: Duration, timed: Duration) -> Sample {
    let mut plan = plan(vec![contender(script)]);
    plan.limits = RunnerLimits { prepare, timed };
    measured(&plan).samples[0].clone()
}
