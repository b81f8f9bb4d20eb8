//! Runners that are a few lines of shell.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use haypile_lab::job::Ops;
use haypile_lab::measure::{
    Case, Contender, Expected, MeasureOutcome, Observer, Plan, Runner, RunnerLimits, measure,
};
use haypile_lab::result::{Parameters, ResultsWriter, Run, Sample};

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
    let runner = Runner { program: "/bin/sh".into(), arguments, label: "script".to_owned() };
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
    }
}

/// Sees everything, and ends after this number of samples.
pub(crate) struct Seen {
    pub(crate) samples: usize,
    pub(crate) stop_after: usize,
}

impl Observer for Seen {
    fn finished(&mut self, _sample: &Sample) {
        self.samples += 1;
    }

    fn is_interrupted(&self) -> bool {
        self.samples >= self.stop_after
    }
}

pub(crate) fn run() -> Run {
    Run::begin("test", "test".to_owned(), 1)
}

pub(crate) fn measured(plan: &Plan, results: Option<&mut ResultsWriter>) -> MeasureOutcome {
    let mut seen = Seen { samples: 0, stop_after: usize::MAX };
    let outcome = measure(plan, &run(), results, &mut seen).unwrap();
    assert_eq!(outcome.samples.len(), seen.samples);
    outcome
}

/// The one sample of one runner.
pub(crate) fn sample(script: &str) -> Sample {
    let outcome = measured(&plan(vec![contender(script)]), None);
    assert!(outcome.is_complete);
    let [sample] = &outcome.samples[..] else { panic!("one sample") };
    sample.clone()
}

/// The same within a limit that is over at once.
pub(crate) fn sample_at_once(script: &str, prepare: Duration, timed: Duration) -> Sample {
    let mut plan = plan(vec![contender(script)]);
    plan.limits = RunnerLimits { prepare, timed };
    measured(&plan, None).samples[0].clone()
}
