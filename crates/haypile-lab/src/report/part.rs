//! The experiments of one section: the samples of one question in one file.

use std::collections::{BTreeMap, BTreeSet};

use haypile_measure::result::{Results, Run, Sample, Samples};
use haypile_plot::drawing::text::printable;

use super::topic::Topics;
use super::wording::Wording;

/// The samples of one experiment in one result file that ask the same question, and so were
/// measured together.
pub(crate) struct ReportPart<'a> {
    pub(crate) experiment: &'a str,
    pub(crate) file: &'a str,
    /// The question, method and source of a user's experiment file; `None` for the experiment's
    /// own.
    pub(crate) wording: Option<Wording>,
    pub(crate) samples: Samples<'a>,
    results: &'a Results,
}

impl<'a> ReportPart<'a> {
    /// Divides the samples of a result file into parts by experiment and question, for one section
    /// of the report each. The parts are ordered by name, then as they were asked.
    pub(crate) fn all(file: &'a str, results: &'a Results, topics: &Topics) -> Vec<Self> {
        let mut wordings: Vec<Option<Wording>> = vec![None];
        let mut places: BTreeMap<Option<Wording>, usize> = BTreeMap::from([(None, 0)]);
        let mut of_run: BTreeMap<&str, usize> = BTreeMap::new();
        for run in &results.runs {
            let wording = Wording::of(run, topics);
            let place = *places.entry(wording).or_insert_with_key(|wording| {
                wordings.push(wording.clone());
                wordings.len() - 1
            });
            of_run.entry(&run.run).or_insert(place);
        }
        let mut samples: BTreeMap<(&str, usize), Vec<&Sample>> = BTreeMap::new();
        for sample in &results.samples {
            let place = of_run.get(sample.run.as_str()).copied().unwrap_or(0);
            samples.entry((&sample.experiment, place)).or_default().push(sample);
        }
        let part = |((experiment, place), samples): ((&'a str, usize), Vec<&'a Sample>)| Self {
            experiment,
            file,
            wording: wordings[place].clone(),
            samples: samples.into_iter().collect(),
            results,
        };
        samples.into_iter().map(part).collect()
    }

    /// Whether both parts of a report are of the same result file, by identity and not by its name.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        std::ptr::eq(self.results, other.results)
    }

    /// Returns the runs that the samples of this part of the report are from.
    pub(crate) fn runs(&self) -> Vec<&'a Run> {
        let named: BTreeSet<&str> = self.samples.iter().map(|sample| sample.run.as_str()).collect();
        self.results.runs.iter().filter(|run| named.contains(run.run.as_str())).collect()
    }

    /// Returns the distinct experiment files that asked the question of this part; none for the
    /// experiment's own question.
    pub(crate) fn experiment_files(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        if self.wording.is_some() {
            for asked in self.runs().iter().filter_map(|run| run.asked.as_ref()) {
                let name = printable(&asked.file);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }
}
