//! Measures the cases of an experiment and prints the results.

use std::env;

use anyhow::{Context, bail};
use serde_json::json;

use super::{Measuring, OnCaches, Setup, contenders};
use crate::experiment::{Ended, Host};
use crate::measure::{
    MeasureOutcome, Observer, Places, Plan, RunnerLimits, Surroundings, UNPROVEN, measure,
};
use crate::result::{Asked, ResultsWriter, Run, Sample, command_line, disturbance_of};

/// Measures, prints the results, and returns whether some of them are errors.
pub(super) fn run<E: OnCaches>(
    setup: Setup,
    measuring: &Measuring,
    asked: Option<Asked>,
    host: &dyn Host,
) -> anyhow::Result<Ended> {
    if let Some(path) = &measuring.out {
        host.check_output(path)?;
    }
    let surroundings = setup.surroundings.map_or_else(|| places(measuring), Ok)?;
    let plan = Plan {
        cases: setup.cases,
        then: setup.then,
        contenders: contenders::contenders(measuring, &setup.subjects)?,
        blocks: measuring.blocks,
        seed: measuring.seed,
        warm_up: measuring.warm_up,
        limits: RunnerLimits { prepare: measuring.timeout, timed: measuring.timeout },
        surroundings: Some(surroundings),
    };
    let mut results = measuring.out.as_ref().map(ResultsWriter::append).transpose()?;
    let run = Run { asked, ..Run::begin(E::NAME, command_line(), measuring.seed) };
    for warning in run.warnings() {
        host.note(&format!("warning: {warning}"));
    }
    host.begin(plan.samples(), format!("measuring {}", E::NAME))?;
    let mut collector = Collector::new(host);
    let measured = measure(&plan, &run, results.as_mut(), &mut collector);
    host.finish();
    // Finished results are printed even after an error.
    let samples = collector.samples;
    let is_complete = measured.as_ref().is_ok_and(|outcome| outcome.is_complete);
    if measuring.json {
        host.print_json(&json!({ "run": run, "complete": is_complete, "samples": samples }))?;
    } else if !samples.is_empty() {
        host.print(&E::print(&samples, &plan.contenders))?;
    }
    for warning in unproven(&samples) {
        host.note(&format!("warning: {warning}"));
    }
    if let Some(warning) = disturbance_of(&run, &samples) {
        host.note(&format!("warning: {warning}"));
    }
    let MeasureOutcome { is_complete, .. } = measured?;
    if !is_complete {
        let kept = if results.is_some() { "printed and kept" } else { "printed" };
        let finished = samples.len();
        let all = match plan.then {
            // The total is not known.
            Some(_) => String::new(),
            None => format!(" of {}", plan.samples()),
        };
        bail!("interrupted; {kept} {finished}{all} measurements");
    }
    Ok(Ended::with_errors(samples.iter().any(|sample| sample.error.is_some())))
}

/// Warnings about subjects of which nothing shows that they did their writes, once for each case.
fn unproven(samples: &[Sample]) -> Vec<String> {
    let mut warnings = Vec::new();
    for sample in samples.iter().filter(|sample| sample.counts.contains_key(UNPROVEN)) {
        let warning = format!(
            "nothing shows that {} wrote in {}: none of the keys that only the timed part writes was there \
             afterwards, so that its policy declines them, or it did not write",
            sample.subject.name, sample.case
        );
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings
}

/// Creates an empty directory for each sample in the chosen directory.
fn places(measuring: &Measuring) -> anyhow::Result<Box<dyn Surroundings>> {
    let directory = measuring.absolute_directory()?;
    let places = Places::new(&directory);
    let places = places.with_context(|| format!("cannot write into {}", directory.display()))?;
    Ok(Box::new(places))
}

impl Measuring {
    /// Returns the chosen directory, or else the system's for temporary files.
    pub(crate) fn absolute_directory(&self) -> anyhow::Result<std::path::PathBuf> {
        let directory = self.directory.clone().unwrap_or_else(env::temp_dir);
        Ok(std::path::absolute(directory)?)
    }
}

/// Observer that keeps the finished samples, and shows progress.
pub struct Collector<'a> {
    host: &'a dyn Host,
    /// Finished samples in their order.
    pub samples: Vec<Sample>,
}

impl<'a> Collector<'a> {
    /// Creates a collector without samples.
    pub fn new(host: &'a dyn Host) -> Self {
        Self { host, samples: Vec::new() }
    }
}

impl Observer for Collector<'_> {
    fn finished(&mut self, sample: &Sample) {
        self.samples.push(sample.clone());
        self.host.advance(1);
    }

    fn is_interrupted(&self) -> bool {
        self.host.is_interrupted()
    }
}
