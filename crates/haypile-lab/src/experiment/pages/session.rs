//! The beginning and the end of a run that loads pages.

use std::path::Path;

use anyhow::bail;
use serde_json::json;

use super::plan;
use crate::experiment::{Ended, Host, Printout};
use crate::result::{Asked, ResultsWriter, Row, Run, Sample, command_line, disturbance_of};
use crate::site::Site;
use crate::site::manifest::Visits;

/// A run, and the file of its results.
pub(crate) struct Session {
    pub(crate) run: Run,
    pub(crate) results: Option<ResultsWriter>,
}

impl Session {
    /// Begins a run of an experiment: tells the user about the machine and the pages, and writes the
    /// row of the run.
    ///
    /// # Errors
    ///
    /// The file of results cannot be written.
    pub(crate) fn begin(
        (experiment, asked, seed): (&str, Option<Asked>, u64),
        out: Option<&Path>,
        (site, visits): (&Site, &Visits),
        host: &dyn Host,
    ) -> anyhow::Result<Self> {
        let mut results = out.map(ResultsWriter::append).transpose()?;
        let run = Run { asked, ..Run::begin(experiment, command_line(), seed) };
        for warning in run.warnings() {
            host.note(&format!("warning: {warning}"));
        }
        host.note(&plan::description(site, visits));
        if let Some(results) = &mut results {
            results.write(&Row::Run(run.clone()))?;
        }
        Ok(Self { run, results })
    }
}

/// Prints what was measured, even after an error, and returns how the run ended.
///
/// # Errors
///
/// The error of the measurement, its interruption, or results that cannot be printed.
pub(crate) fn end(
    run: &Run,
    samples: &[Sample],
    measured: anyhow::Result<bool>,
    is_json: bool,
    host: &dyn Host,
    printout: impl FnOnce() -> Printout,
) -> anyhow::Result<Ended> {
    let is_complete = *measured.as_ref().unwrap_or(&false);
    if is_json {
        host.print_json(&json!({ "run": run, "complete": is_complete, "samples": samples }))?;
    } else if !samples.is_empty() {
        host.print(&printout())?;
    }
    if let Some(warning) = disturbance_of(run, samples) {
        host.note(&format!("warning: {warning}"));
    }
    if !measured? {
        bail!("interrupted; printed what {} loads came to", samples.len());
    }
    Ok(Ended::with_errors(samples.iter().any(|sample| sample.error.is_some())))
}
