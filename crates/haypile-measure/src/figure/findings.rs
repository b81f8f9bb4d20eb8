//! All figures of samples, for programs.

use std::collections::BTreeSet;

use haypile_number::Quantity;
use serde_json::{Value, json};

use super::{CPU, Estimate, Figure, Operations, PERCENTILES, count, quantity_of_count};
use crate::result::{Parameters, Sample, Samples, SubjectId};
use crate::statistics::{Effect, Interval};

/// The version of the form.
const SCHEMA: u64 = 1;

/// The value of a figure (such as processor time per operation) of one subject in one case of an experiment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// The name of the experiment that was measured, such as `micro`.
    pub experiment: String,
    /// The name of the experiment's case, in which the figure was measured.
    pub case: String,
    /// The parameters of the experiment's case, such as its number of threads.
    pub parameters: Parameters,
    /// The subject (cache under test) that was measured.
    pub subject: SubjectId,
    /// The names of the experiment's runs whose samples were pooled.
    pub runs: Vec<String>,
    /// The number of samples (measurements) of the subject in the case, including errors.
    pub samples: usize,
    /// The number of samples that are errors; they count in no figure except counts.
    pub errors: usize,
    /// The name of the figure: that of a [`Figure`], `count:` with the name of a count, a percentile
    /// with the kind of operations (`p99:get`), or `times` for the processor time over that of another
    /// subject.
    pub figure: String,
    /// The quantity of the figure's value: a time, a size, a ratio and so on.
    pub quantity: Quantity,
    /// The estimated value of the figure, with its 95 % interval.
    pub estimate: Estimate,
    /// The subject that the figure's value is relative to, such as the one that is 1.0 in `times`; `None` for an
    /// absolute value.
    pub over: Option<SubjectId>,
}

/// The values of figures (such as processor time per operation) of several subjects and cases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings(pub Vec<Finding>);

impl Findings {
    /// Computes figures of all samples, one value for each figure, case and subject, in the order of the samples.
    pub fn of(samples: &Samples<'_>, figures: &[&Figure]) -> Self {
        let mut findings = Vec::new();
        for case in samples.cases() {
            let subjects = case.by_subject();
            let first = subjects.first().map(|(_, samples)| samples.clone()).unwrap_or_default();
            for (_, own) in &subjects {
                add(&mut findings, own, &first, figures);
            }
        }
        Self(findings)
    }

    /// Returns the values of figures (such as processor time per operation) as JSON, with all digits. `docs/results.md`
    /// describes the form.
    pub fn to_json(&self) -> Value {
        let findings: Vec<Value> = self.0.iter().map(Finding::to_json).collect();
        json!({ "schema": SCHEMA, "findings": findings })
    }
}

impl Finding {
    /// Returns a record of the subject and case of these samples, to which a figure's value is added later; `None`
    /// without samples. Of several cases it has the parameters that all have in common.
    pub fn of(samples: &Samples<'_>) -> Option<Self> {
        let sample: &Sample = samples.first()?;
        let runs: BTreeSet<&String> = samples.iter().map(|sample| &sample.run).collect();
        Some(Self {
            experiment: sample.experiment.clone(),
            case: sample.case.clone(),
            parameters: in_common(samples),
            subject: subject(samples)?.clone(),
            runs: runs.into_iter().cloned().collect(),
            samples: samples.len(),
            errors: samples.iter().filter(|sample| sample.error.is_some()).count(),
            figure: String::new(),
            quantity: Quantity::Number,
            estimate: Estimate::exact(0.0),
            over: None,
        })
    }

    /// Returns this record of a subject and case with a figure's name and value set. `over` is the subject that the
    /// value is relative to.
    #[must_use]
    pub fn with(
        self,
        figure: impl Into<String>,
        quantity: Quantity,
        estimate: Estimate,
        over: Option<&SubjectId>,
    ) -> Self {
        Self { figure: figure.into(), quantity, estimate, over: over.cloned(), ..self }
    }

    fn to_json(&self) -> Value {
        let ends = self.estimate.interval.map(|ends| json!({ "low": ends.low, "high": ends.high }));
        json!({
            "experiment": self.experiment,
            "case": self.case,
            "parameters": self.parameters,
            "subject": self.subject,
            "runs": self.runs,
            "samples": self.samples,
            "errors": self.errors,
            "figure": self.figure,
            "unit": unit(self.quantity),
            "value": self.estimate.value,
            "interval": ends,
            "mad": self.estimate.mad,
            "mean": self.estimate.mean,
            "over": self.over,
        })
    }
}

fn unit(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Rate => "per second",
        Quantity::Time => "nanoseconds",
        Quantity::Bytes => "bytes",
        Quantity::Share | Quantity::HitRatio | Quantity::Factor => "ratio",
        Quantity::Count | Quantity::Number => "count",
    }
}

fn in_common(samples: &Samples<'_>) -> Parameters {
    let Some((first, others)) = samples.split_first() else { return Parameters::new() };
    let is_common = |(name, value): &(&String, &Value)| {
        others.iter().all(|sample: &&Sample| sample.parameters.get(*name) == Some(value))
    };
    let common = first.parameters.iter().filter(is_common);
    common.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the subject (cache under test) of the last sample without an error, which states the cache's version.
pub(super) fn subject<'a>(samples: &Samples<'a>) -> Option<&'a SubjectId> {
    let known = samples.iter().rev().find(|sample| sample.error.is_none());
    known.or(samples.last()).map(|sample| &sample.subject)
}

fn add(findings: &mut Vec<Finding>, own: &Samples<'_>, first: &Samples<'_>, figures: &[&Figure]) {
    let Some(blank) = Finding::of(own) else { return };
    let mut push = |name: String, quantity, estimate, over: Option<&SubjectId>| {
        findings.push(blank.clone().with(name, quantity, estimate, over));
    };
    for figure in figures {
        if let Some(estimate) = figure.of(own) {
            push(figure.name.to_owned(), figure.quantity, estimate, None);
        }
    }
    let times = Effect::paired(&CPU.values(first).paired(&CPU.values(own)));
    if let Ok(times) = times
        && figures.contains(&&CPU)
        && first != own
    {
        let interval = times.interval().map(Interval::factors);
        let estimate = Estimate { interval, ..Estimate::exact(times.ratio()) };
        push("times".to_owned(), Quantity::Factor, estimate, subject(first));
    }
    let names: BTreeSet<&String> = own.iter().flat_map(|sample| sample.counts.keys()).collect();
    for name in names {
        if let Some(sum) = count(own, name) {
            let estimate = Estimate::exact(sum as f64);
            push(format!("count:{name}"), quantity_of_count(name), estimate, None);
        }
    }
    for kind in Operations::kinds(own) {
        let Some(operations) = Operations::of(own, kind) else { continue };
        for (percentile, ns) in PERCENTILES.iter().zip(operations.percentiles) {
            let name = format!("{}:{kind}", percentile.name);
            push(name, Quantity::Time, Estimate::exact(ns), None);
        }
    }
}
