//! Results as one page: for each experiment its question, its answer in a sentence, charts, tables,
//! the method and the machine.
//!
//! The page needs no network and no script. Everything in it is computed from rows; text of rows is
//! escaped, and what is too much to be shown is said to be left out.
//!
//! ```no_run
//! use haypile_lab::report::{Report, read};
//!
//! let report = Report::new(&read(&["record/2026-11-22-2core-amd-epyc".into()])?);
//! std::fs::write("report.html", report.html()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | `input`, `simulation` | what is read |
//! | `case`, `estimate` | samples by case and subject, and what they say |
//! | `about` | questions and methods, as texts |
//! | `experiment` | the answer, charts and tables of each experiment |
//! | `chart`, `table`, `number`, `host` | what is shown |
//! | `section`, `page` | how it is put together |

mod about;
mod case;
mod chart;
mod error;
mod estimate;
mod experiment;
mod host;
mod input;
mod number;
mod page;
mod section;
mod simulation;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use haypile_sim::plot::{self, PlotError};

pub use error::ReportError;
pub use input::{Input, read};

use crate::result::{Run, Sample};
use about::ORDER;
use chart::{Figure, Form};
use section::Section;

/// Most experiments of one report.
const MAX_SECTIONS: usize = 60;

/// The width of images, in pixels.
const IMAGE_WIDTH_PX: u32 = 1600;

/// What results say, experiment by experiment.
#[derive(Clone, Debug)]
pub struct Report {
    sections: Vec<Section>,
    sources: Vec<String>,
    /// What was passed over or left out as a whole.
    warnings: Vec<String>,
}

/// A chart of a report as files of its own.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Plot {
    /// A name for files, without what tells their format: lower-case letters, digits and hyphens;
    /// different for each chart of a report.
    pub name: String,
    /// The chart as an SVG document.
    pub svg: String,
}

impl Plot {
    /// The chart as a PNG image, 1,600 pixels wide.
    ///
    /// # Errors
    ///
    /// [`PlotError`] if a library fails.
    pub fn png(&self) -> Result<Vec<u8>, PlotError> {
        plot::png(&self.svg, IMAGE_WIDTH_PX)
    }
}

impl Report {
    /// Puts results together.
    pub fn new(input: &Input) -> Self {
        let mut by_experiment: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
        for sample in &input.results.samples {
            by_experiment.entry(&sample.experiment).or_default().push(sample);
        }
        let mut warnings = input.results.warnings.clone();
        let place = |name: &str| ORDER.iter().position(|known| *known == name);
        let mut names: Vec<&str> = by_experiment.keys().copied().collect();
        names.sort_by_key(|name| (place(name).unwrap_or(ORDER.len()), *name));
        if names.len() > MAX_SECTIONS {
            let beyond = names.len() - MAX_SECTIONS;
            warnings.push(format!("{} are not shown", number::count(beyond, "further experiment")));
            names.truncate(MAX_SECTIONS);
        }
        let mut sections: Vec<Section> = Vec::new();
        if !input.simulations.is_empty() {
            sections.push(experiment::simulate::section(&input.simulations));
        }
        for name in names {
            let samples = &by_experiment[name];
            let runs = runs(&input.results.runs, samples);
            sections.push(Section::of_samples(name, samples, &runs));
        }
        Self { sections, sources: input.sources.clone(), warnings }
    }

    /// The page: HTML with everything in it, which is XML as well.
    ///
    /// # Errors
    ///
    /// [`PlotError`] if a chart cannot be drawn.
    pub fn html(&self) -> Result<String, PlotError> {
        page::html(self)
    }

    /// All charts as pictures that stand alone.
    ///
    /// # Errors
    ///
    /// [`PlotError`] if a chart cannot be drawn.
    pub fn plots(&self) -> Result<Vec<Plot>, PlotError> {
        let mut taken: BTreeMap<String, usize> = BTreeMap::new();
        let mut plots = Vec::new();
        for (section, figure) in self.figures() {
            let name = format!("{}-{}", page::anchor(&section.experiment), figure.slug);
            let times = taken.entry(name.clone()).and_modify(|times| *times += 1).or_insert(1);
            let name = if *times == 1 { name } else { format!("{name}-{times}") };
            plots.push(Plot { name, svg: figure.svg(Form::Alone)? });
        }
        Ok(plots)
    }

    fn figures(&self) -> impl Iterator<Item = (&Section, &Figure)> {
        self.sections.iter().flat_map(|section| {
            let body = &section.body;
            body.figures.iter().chain(&body.multiples).map(move |figure| (section, figure))
        })
    }
}

/// The runs that samples belong to.
fn runs<'a>(runs: &'a [Run], samples: &[&Sample]) -> Vec<&'a Run> {
    let named: std::collections::BTreeSet<&str> =
        samples.iter().map(|sample| sample.run.as_str()).collect();
    runs.iter().filter(|run| named.contains(run.run.as_str())).collect()
}
