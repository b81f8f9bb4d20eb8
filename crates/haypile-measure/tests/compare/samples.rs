//! Samples that are made up.

use haypile_measure::compare::{Metric, Question};
use haypile_measure::result::Sample;
use haypile_measure::statistics::Rule;
use serde_json::json;

/// One sample of 1,000,000 operations that took this many nanoseconds each.
pub(crate) fn sample(subject: &str, run: &str, block: u64, cpu_ns: u64) -> Sample {
    serde_json::from_value(json!({
        "schema": 1, "run": run, "experiment": "micro", "case": "get-hit",
        "parameters": { "threads": 1, "distribution": "uniform" }, "seed": 1,
        "subject": { "name": subject, "version": "1", "language": "rust", "program": "haypile" },
        "block": block, "position": 0, "operations": 1_000_000,
        "wall_ns": cpu_ns * 2_000_000, "cpu_ns": cpu_ns * 1_000_000, "hits": 1_000_000, "misses": 0,
    }))
    .unwrap()
}

pub(crate) fn with_program(mut sample: Sample, program: &str) -> Sample {
    program.clone_into(&mut sample.subject.program);
    sample
}

pub(crate) fn failed(mut sample: Sample) -> Sample {
    sample.error = Some("the runner was killed".to_owned());
    sample
}

pub(crate) fn question() -> Question {
    Question { metric: Metric::Cpu, rule: Rule::default(), subjects: None }
}
