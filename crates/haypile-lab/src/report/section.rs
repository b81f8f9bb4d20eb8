//! One experiment as the report shows it.

use std::collections::BTreeMap;

use haypile_sim::number::grouped;
use haypile_sim::plot::drawing::text::{one_line, printable};

use super::about::{About, about};
use super::chart::{Figure, slug};
use super::experiment;
use super::host::{Host, hosts};
use super::number::{bounded, count};
use super::table::Table;
use crate::parameters;
use crate::result::{Run, Sample};

/// Most different errors that are listed for an experiment.
const MAX_FAILURES: usize = 40;
/// Longest text of an error that is shown, in characters.
const MAX_ERROR_CHARS: usize = 1_000;

/// An experiment: its question, its answer, and what that rests on.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// As it is called on the command line.
    pub(super) experiment: String,
    /// The file, where several have this experiment.
    pub(super) file: Option<String>,
    /// Its address within the page.
    pub(super) anchor: String,
    pub(super) about: About,
    pub(super) body: Body,
    /// How much was measured.
    pub(super) extent: String,
    pub(super) failures: Vec<Failure>,
    pub(super) hosts: Vec<Host>,
}

/// What an experiment found.
#[derive(Clone, Debug, Default)]
pub(super) struct Body {
    /// The answer, in one sentence; it goes on in `answers` where it has many parts.
    pub(super) answer: String,
    pub(super) answers: Vec<String>,
    /// What has to be known beside it.
    pub(super) notes: Vec<String>,
    /// Charts as wide as the text.
    pub(super) figures: Vec<Figure>,
    /// Small charts that stand beside each other.
    pub(super) multiples: Vec<Figure>,
    pub(super) tables: Vec<Table>,
    /// What is in the rows and not here.
    pub(super) left_out: Vec<String>,
}

/// Samples that failed alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) case: String,
    pub(super) subject: String,
    pub(super) times: usize,
    pub(super) text: String,
}

impl Section {
    /// The section of an experiment's samples, of which there is at least one.
    pub(super) fn of_samples(
        name: &str,
        file: Option<&str>,
        samples: &[&Sample],
        runs: &[&Run],
    ) -> Self {
        let mut body = experiment::body(name, samples);
        let (failures, left_out) = failures(samples);
        body.left_out.extend(left_out);
        let (hosts, left_out) = hosts(runs);
        body.left_out.extend(left_out);
        Self {
            experiment: printable(name),
            file: file.map(str::to_owned),
            anchor: anchor(name, file),
            about: about(name),
            body,
            extent: extent(samples, runs.len()),
            failures,
            hosts,
        }
    }
}

/// An address within the page: letters, digits and hyphens.
pub(super) fn anchor(experiment: &str, file: Option<&str>) -> String {
    let words =
        format!("{experiment} {}", file.filter(|file| *file != experiment).unwrap_or_default());
    match slug(&words) {
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
fn failures(samples: &[&Sample]) -> (Vec<Failure>, Option<String>) {
    let mut failures: Vec<Failure> = Vec::new();
    let mut places: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for sample in samples {
        let Some(error) = &sample.error else { continue };
        let text = shown(error);
        let case = format!("{} {}", sample.case, parameters::describe(&sample.parameters));
        let key = (printable(case.trim()), printable(&sample.subject.name), text);
        let at = *places.entry(key).or_insert_with_key(|(case, subject, text)| {
            let (case, subject, text) = (case.clone(), subject.clone(), text.clone());
            failures.push(Failure { case, subject, times: 0, text });
            failures.len() - 1
        });
        failures[at].times += 1;
    }
    let beyond = failures.len().saturating_sub(MAX_FAILURES);
    failures.truncate(MAX_FAILURES);
    let left_out = (beyond > 0).then(|| {
        format!(
            "{} of errors are not listed here; the rows have them.",
            count(beyond, "further kind")
        )
    });
    (failures, left_out)
}

/// An error's text, as one line that is not endless.
fn shown(error: &str) -> String {
    bounded(&one_line(error), MAX_ERROR_CHARS)
}
