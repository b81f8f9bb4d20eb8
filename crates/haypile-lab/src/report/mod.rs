//! Results as one page: for each experiment its question, its answer in a sentence, charts, tables,
//! the method and the machine.
//!
//! The page needs no network and no script. Everything in it is computed from rows; text of rows is
//! escaped, and what is too much to be shown is said to be left out.
//!
//! ```no_run
//! use haypile_lab::report::{Report, read};
//!
//! let input = read(&["record/2026-11-22-2core-amd-epyc".into()])?;
//! let report = Report::new(&input, &haypile_lab::experiment::topics());
//! std::fs::write("report.html", report.html()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `input`, `simulation` | what is read |
//! | `case` | samples by case and subject |
//! | `part` | what becomes one section: samples of one file that ask the same |
//! | `topic` | what a report knows of experiments: they give it their texts and what they show |
//! | `about`, `wording` | questions and methods, as texts |
//! | `body` | charts and tables that several experiments have; each experiment makes its own body of them |
//! | `chart`, `table`, `number`, `host` | what is shown |
//! | `section`, `page` | how it is put together |

mod about;
pub(crate) mod body;
pub(crate) mod case;
pub(crate) mod chart;
mod error;
mod host;
mod input;
pub(crate) mod number;
mod page;
mod part;
pub(crate) mod section;
mod simulation;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod topic;
mod wording;

use std::collections::BTreeSet;

use haypile_plot::PlotError;

pub use error::ReportError;
pub use input::{Input, read};
pub use topic::Topics;

use chart::{Form, Picture};
use host::Machines;
use part::ReportPart;
use section::Section;

/// Most experiments of one report.
const MAX_SECTIONS: usize = 60;

/// A report: the results of several experiments, one section for each.
#[derive(Clone, Debug)]
pub struct Report {
    sections: Vec<Section>,
    machines: Machines,
    sources: Vec<String>,
    /// Warnings about input that was skipped or left out as a whole.
    warnings: Vec<String>,
}

/// A chart of a report, as a separate file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plot {
    /// The name of the chart's file without the extension: lower-case letters, digits and hyphens;
    /// different for each chart of a report.
    pub name: String,
    /// The chart as an SVG document.
    pub svg: String,
}

impl Report {
    /// Creates a report from results. Experiments that are not among `topics` get a plain table.
    pub fn new(input: &Input, topics: &Topics) -> Self {
        let mut parts: Vec<ReportPart<'_>> = Vec::new();
        for (file, results) in &input.files {
            parts.extend(ReportPart::all(file, results, topics));
        }
        // Unknown experiments come last, by name. Files of one experiment stay in the order in which
        // they were named.
        parts.sort_by_key(|part| (topics.place(part.experiment), part.experiment.to_owned()));
        let mut warnings = input.warnings.clone();
        if parts.len() > MAX_SECTIONS {
            let beyond = number::count(parts.len() - MAX_SECTIONS, "further experiment");
            warnings.push(format!("{beyond} are not shown"));
            parts.truncate(MAX_SECTIONS);
        }
        let mut sections: Vec<Section> = Vec::new();
        if !input.simulations.is_empty() {
            sections.push(body::simulate::section(&input.simulations));
        }
        let (mut machines, mut anchors) = (Machines::default(), BTreeSet::new());
        for part in &parts {
            let mut others = parts.iter().filter(|other| other.experiment == part.experiment);
            let is_file_named = others.any(|other| !other.is_beside(part));
            let mut section = Section::of(part, is_file_named, topics, &mut machines);
            section.anchor = new_name(&mut anchors, &section.anchor);
            sections.push(section);
        }
        Self { sections, machines, sources: input.sources.clone(), warnings }
    }

    /// Returns the report's answer for each experiment as lines for a terminal; long answers are
    /// shortened.
    pub fn answers(&self) -> impl Iterator<Item = String> {
        self.sections.iter().flat_map(Section::in_short)
    }

    /// Returns the report as one HTML page, which is well-formed XML as well.
    ///
    /// # Errors
    ///
    /// [`PlotError`] if a chart cannot be drawn.
    pub fn html(&self) -> Result<String, PlotError> {
        page::html(self)
    }

    /// Returns all charts of the report as separate SVG documents.
    ///
    /// # Errors
    ///
    /// [`PlotError`] if a chart cannot be drawn.
    pub fn plots(&self) -> Result<Vec<Plot>, PlotError> {
        let mut taken = BTreeSet::new();
        let mut plots = Vec::new();
        for (section, figure) in self.figures() {
            let name = new_name(&mut taken, &format!("{}-{}", section.anchor, figure.slug));
            plots.push(Plot { name, svg: figure.svg(Form::Alone)? });
        }
        Ok(plots)
    }

    fn figures(&self) -> impl Iterator<Item = (&Section, &Picture)> {
        self.sections.iter().flat_map(|section| {
            let Section { body, latencies, .. } = section;
            let of_latencies = latencies.iter().flat_map(|them| &them.figures);
            let figures = body.figures.iter().chain(&body.multiples).chain(of_latencies);
            figures.map(move |figure| (section, figure))
        })
    }
}

/// The name, with a number where it is taken; then that is taken too.
fn new_name(taken: &mut BTreeSet<String>, name: &str) -> String {
    let mut new = name.to_owned();
    for number in 2.. {
        if taken.insert(new.clone()) {
            break;
        }
        new = format!("{name}-{number}");
    }
    new
}
