//! The course of a run, the same for all experiments.
//!
//! ```text
//! Session::new ──> begin ──> keep, keep, ... ──> end
//! checks --out     opens it, writes the run's   prints JSON or text, warns, and says how it ended
//!                  row, warns of the machine
//! ```

mod options;

use anyhow::bail;
use haypile_measure::measure::{Failure, UNPROVEN};
use haypile_measure::result::{
    Asked, ResultsError, ResultsWriter, Row, Run, Sample, Samples, command_line, disturbance_of,
};
use serde_json::{Map, Value, json};

pub use options::RunOptions;

use super::{Ended, Host, Printout, topics};

/// A run of an experiment: its options, its results so far, and the program around it.
pub(crate) struct Session<'a> {
    pub(crate) run: Run,
    pub(crate) host: &'a dyn Host,
    options: &'a RunOptions,
    results: Option<ResultsWriter>,
    samples: Vec<Sample>,
    /// The number of samples of a complete run, where it is known.
    all: Option<u64>,
}

/// The error of a measurement that the user has interrupted.
#[derive(Debug, thiserror::Error)]
#[error("the measurement was interrupted")]
pub(crate) struct Interrupted;

impl<'a> Session<'a> {
    /// Creates the session of an experiment's run, which has not written anything yet. `asked` is
    /// the question of a user's experiment file.
    ///
    /// # Errors
    ///
    /// The file of results cannot be written.
    pub(crate) fn new(
        experiment: &str,
        asked: Option<Asked>,
        options: &'a RunOptions,
        host: &'a dyn Host,
    ) -> anyhow::Result<Self> {
        if let Some(path) = &options.out {
            host.check_output(path)?;
        }
        let run = Run { asked, ..Run::begin(experiment, command_line(), options.seed) };
        Ok(Self { run, host, options, results: None, samples: Vec::new(), all: None })
    }

    /// Begins the run of an experiment: warns if the state of this machine (such as its load)
    /// disturbs measurements, and writes the row that describes the run to the file of results.
    /// `all` is the number of samples of a complete run, where it is known.
    ///
    /// # Errors
    ///
    /// The file of results cannot be written.
    pub(crate) fn begin(&mut self, all: Option<u64>) -> Result<(), ResultsError> {
        self.all = all;
        self.results = self.options.out.as_ref().map(ResultsWriter::append).transpose()?;
        self.warn(self.run.warnings());
        self.results.as_mut().map_or(Ok(()), |results| results.write(&Row::Run(self.run.clone())))
    }

    /// Adds a finished sample to the run's results, and appends it to the file of results.
    ///
    /// # Errors
    ///
    /// The file of results cannot be written.
    pub(crate) fn keep(&mut self, sample: Sample) -> Result<(), ResultsError> {
        if let Some(results) = &mut self.results {
            results.write(&Row::Sample(sample.clone()))?;
        }
        self.samples.push(sample);
        Ok(())
    }

    /// Returns the samples that the run has finished, in the order in which they were measured.
    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Ends the run of an experiment: prints the results, even after an error, and returns whether
    /// the results contain errors. `measured` is an error of type [`Interrupted`] if the user has
    /// stopped it. `fields` are further ones of the JSON.
    ///
    /// # Errors
    ///
    /// The error of the measurement, its interruption, or results that cannot be printed.
    pub(crate) fn end(
        self,
        measured: anyhow::Result<()>,
        fields: impl FnOnce(&[Sample]) -> Map<String, Value>,
        printout: impl FnOnce(&[Sample]) -> Printout,
    ) -> anyhow::Result<Ended> {
        self.host.finish();
        let (host, samples) = (self.host, &self.samples);
        if self.options.json {
            let is_complete = measured.is_ok();
            let mut printed = fields(samples);
            for (name, value) in [
                ("run", json!(self.run)),
                ("complete", json!(is_complete)),
                ("samples", json!(samples)),
            ] {
                printed.insert(name.to_owned(), value);
            }
            host.print_json(&Value::Object(printed))?;
        } else if self.options.findings {
            let samples: Samples<'_> = samples.iter().collect();
            let mut printed = topics().findings(&self.run.experiment, &samples).to_json();
            printed["complete"] = json!(measured.is_ok());
            host.print_json(&printed)?;
        } else if !samples.is_empty() {
            host.print(&printout(samples))?;
        }
        self.warn(unproven(samples));
        self.warn(disturbance_of(&self.run, samples));
        match measured {
            Ok(()) => Ok(Ended::with_errors(samples.iter().any(|sample| sample.error.is_some()))),
            Err(error) if error.is::<Interrupted>() => {
                let kept = if self.results.is_some() { "printed and kept" } else { "printed" };
                let of = self.all.map_or_else(String::new, |all| format!(" of {all}"));
                bail!("the experiment was interrupted; {kept} {}{of} measurements", samples.len())
            }
            Err(error) => Err(error),
        }
    }

    fn warn(&self, warnings: impl IntoIterator<Item = String>) {
        for warning in warnings {
            self.host.note(&format!("warning: check the results: {warning}"));
        }
    }
}

/// Separates the two errors of a measurement: an interruption by the user, which ends the run, and
/// a failure, whose text becomes a result.
pub(crate) fn attempt<T>(
    outcome: Result<T, impl Into<Failure>>,
) -> Result<Result<T, String>, Interrupted> {
    match outcome.map_err(Into::into) {
        Ok(value) => Ok(Ok(value)),
        Err(Failure::Interrupted) => Err(Interrupted),
        Err(Failure::Late(text) | Failure::Failed(text)) => Ok(Err(text)),
    }
}

/// Returns an empty map: the experiment has no additional fields in its JSON results.
pub(crate) fn no_fields(_: &[Sample]) -> Map<String, Value> {
    Map::new()
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

#[cfg(test)]
mod tests;
