//! One experiment in the report: its section.

use std::collections::BTreeMap;

use haypile_measure::parameters;
use haypile_measure::result::{Run, Sample, disturbance};
use haypile_number::grouped;
use haypile_plot::drawing::text::{one_line, printable};

use super::about::{About, about};
use super::body;
use super::body::figures::beyond;
use super::chart::{Picture, slug};
use super::host::{Host, Machines, hosts};
use super::number::{bounded, count};
use super::part::ReportPart;
use super::table::Table;
use super::topic::Topics;

/// Most different errors that are listed for an experiment.
const MAX_FAILURES: usize = 40;
/// Most experiment files that are named.
const MAX_EXPERIMENT_FILES: usize = 4;
/// Most parts of an answer that a terminal has, and its longest line, in characters.
const MAX_PARTS: usize = 4;
const MAX_LINE_CHARS: usize = 1_000;
/// Longest text of an error that is shown, in characters.
const MAX_ERROR_CHARS: usize = 1_000;

/// The report's section on an experiment: its question, its answer, and the results that support
/// it.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// The name of the experiment on the command line.
    pub(crate) experiment: String,
    /// The name of the result file, if several files of the report have this experiment.
    pub(crate) file: Option<String>,
    /// The names of the users' experiment files that ask the section's question; none for the
    /// experiment's own question.
    pub(crate) experiment_files: Vec<String>,
    /// The anchor by which links reach the section within the page.
    pub(crate) anchor: String,
    pub(crate) about: About,
    /// A warning before the answer that other work on the machine disturbed the samples.
    pub(crate) disturbed: Option<String>,
    pub(crate) body: Body,
    /// Latencies of single operations; `None` if no sample has any.
    pub(crate) latencies: Option<Latencies>,
    /// The numbers of samples, runs and errors of the section, in words.
    pub(crate) extent: String,
    pub(crate) failures: Vec<FailedSamples>,
    pub(crate) hosts: Vec<Host>,
}

/// The content of an experiment's section in the report: answer, tables and charts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    /// The answer to the experiment's question, in one sentence; long answers continue in
    /// `answers`.
    pub(crate) answer: String,
    pub(crate) answers: Vec<String>,
    /// Notes below the experiment's answer that explain or limit it, such as the definition of its
    /// figures.
    pub(crate) notes: Vec<String>,
    /// Charts of the section that are as wide as the text.
    pub(crate) figures: Vec<Picture>,
    /// Small charts of the section that stand in a row.
    pub(crate) multiples: Vec<Picture>,
    pub(crate) tables: Vec<Table>,
    /// Messages about results that the section of the report leaves out.
    pub(crate) left_out: Vec<String>,
}

/// The latencies of single cache operations, as charts and a table.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    /// A chart of latencies for each case and kind of operation.
    pub(crate) figures: Vec<Picture>,
    pub(crate) table: Table,
}

/// Samples that failed with the same error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailedSamples {
    pub(crate) case: String,
    pub(crate) subject: String,
    pub(crate) times: usize,
    pub(crate) text: String,
}

impl Section {
    /// Returns the experiment's answer as lines for a terminal, after a warning if the samples were
    /// disturbed. Parts that do not fit are counted.
    pub(crate) fn in_short(&self) -> Vec<String> {
        let Body { answer, answers, .. } = &self.body;
        let mut lines = vec![match &self.disturbed {
            Some(disturbed) => format!("(Disturbed: {disturbed}.) {answer}"),
            None => answer.clone(),
        }];
        lines.extend(answers.iter().take(MAX_PARTS).map(|part| format!("  {part}")));
        lines.extend(beyond(answers.len(), MAX_PARTS).map(|more| format!("  and {more} more")));
        lines.iter().map(|line| bounded(line, MAX_LINE_CHARS)).collect()
    }

    /// Creates the report's section on an experiment's samples, of which there is at least one. The
    /// result file is named if several have this experiment. Its machines are added to those of the
    /// report.
    pub(crate) fn of(
        part: &ReportPart<'_>,
        is_file_named: bool,
        topics: &Topics,
        machines: &mut Machines,
    ) -> Self {
        let ReportPart { experiment: name, samples, .. } = part;
        let (file, runs) = (is_file_named.then_some(part.file), part.runs());
        let topic = topics.named(name);
        let mut experiment_files = part.experiment_files();
        let mut body = body::body(topic, samples);
        let (latencies, left_out) = body::latency::latencies(samples);
        body.left_out.extend(left_out);
        let (failures, left_out) = failures(samples);
        body.left_out.extend(left_out);
        let (hosts, left_out) = hosts(&runs, samples, machines);
        body.left_out.extend(left_out);
        if let Some(beyond) = beyond(experiment_files.len(), MAX_EXPERIMENT_FILES) {
            experiment_files.truncate(MAX_EXPERIMENT_FILES);
            body.left_out.push(format!(
                "{} with the same question are not named.",
                count(beyond, "further experiment file")
            ));
        }
        let about = match &part.wording {
            Some(wording) => about(topic).worded(wording),
            None => about(topic),
        };
        Self {
            experiment: printable(name),
            file: file.map(str::to_owned),
            anchor: anchor(name, file, experiment_files.first().map(String::as_str)),
            experiment_files,
            about,
            disturbed: disturbed(&runs, samples),
            body,
            latencies,
            extent: extent(samples, runs.len()),
            failures,
            hosts,
        }
    }
}

/// Returns the warning about the samples of all runs together; builds for tests have times that mean nothing.
fn disturbed(runs: &[&Run], samples: &[&Sample]) -> Option<String> {
    let cores = runs.iter().filter(|run| !run.program.debug).map(|run| run.machine.cores).min()?;
    disturbance(samples.iter().copied(), cores)
}

/// Returns an anchor for a section of the report's page: letters, digits and hyphens.
pub(crate) fn anchor(experiment: &str, file: Option<&str>, asked_by: Option<&str>) -> String {
    let file = file.filter(|file| *file != experiment);
    let words: Vec<&str> = [Some(experiment), file, asked_by].into_iter().flatten().collect();
    match slug(&words.join(" ")) {
        empty if empty.is_empty() => "unnamed".to_owned(),
        slug => slug,
    }
}

fn extent(samples: &[&Sample], runs: usize) -> String {
    let errors = samples.iter().filter(|sample| sample.error.is_some()).count();
    let errors = match errors {
        0 => "none of them an error".to_owned(),
        errors => format!(
            "{} of them {}",
            grouped(errors as u64),
            if errors == 1 { "an error" } else { "errors" }
        ),
    };
    let samples = match samples.len() {
        1 => "1\u{A0}sample".to_owned(),
        samples => format!("{}\u{A0}samples", grouped(samples as u64)),
    };
    format!("{samples} from {}, {errors}.", count(runs, "run"))
}

/// The errors of samples, those that say the same of the same case and subject as one.
fn failures(samples: &[&Sample]) -> (Vec<FailedSamples>, Option<String>) {
    let mut failures: Vec<FailedSamples> = Vec::new();
    let mut places: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for sample in samples {
        let Some(error) = &sample.error else { continue };
        let text = shown(error);
        let case = format!("{} {}", sample.case, parameters::describe(&sample.parameters));
        let key = (printable(case.trim()), printable(&sample.subject.name), text);
        let at = *places.entry(key).or_insert_with_key(|(case, subject, text)| {
            let (case, subject, text) = (case.clone(), subject.clone(), text.clone());
            failures.push(FailedSamples { case, subject, times: 0, text });
            failures.len() - 1
        });
        failures[at].times += 1;
    }
    let left_out = beyond(failures.len(), MAX_FAILURES).map(|beyond| {
        format!(
            "{} of errors are not listed here; the rows have them.",
            count(beyond, "further kind")
        )
    });
    failures.truncate(MAX_FAILURES);
    (failures, left_out)
}

/// An error's text, as one line that is not endless.
fn shown(error: &str) -> String {
    bounded(&one_line(error), MAX_ERROR_CHARS)
}
