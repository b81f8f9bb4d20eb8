//! The experiments that a report knows.

use std::fmt;

use haypile_measure::figure::{FIGURES, Findings};
use haypile_measure::result::Samples;

use super::case::Case;
use super::section::Body;

/// An experiment as a report needs it: the texts about it, and how its results are shown.
pub(crate) trait Topic: Sync {
    /// Returns its name in results.
    fn name(&self) -> &'static str;

    /// Returns the heading of its section.
    fn title(&self) -> &'static str;

    /// Returns the texts of its own experiment file.
    fn texts(&self) -> Texts;

    /// Returns the figures of these samples.
    fn findings(&self, samples: &Samples<'_>) -> Findings;

    /// Returns what its section shows of these samples: answer, charts and tables.
    fn body(&self, samples: &Samples<'_>, cases: &[Case<'_>]) -> Body;
}

/// The question, method and source of an experiment, for its section in a report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Texts {
    pub(crate) question: &'static str,
    pub(crate) method: &'static str,
    pub(crate) source: &'static str,
}

/// The experiments that a report can show, in the order of its sections.
pub struct Topics(Vec<Box<dyn Topic>>);

impl Topics {
    pub(crate) fn new(topics: impl IntoIterator<Item = impl Topic + 'static>) -> Self {
        let boxed = |topic| -> Box<dyn Topic> { Box::new(topic) };
        Self(topics.into_iter().map(boxed).collect())
    }

    /// Returns the position of an experiment's section in a report; unknown experiments come last.
    pub(crate) fn place(&self, name: &str) -> usize {
        self.0.iter().position(|topic| topic.name() == name).unwrap_or(usize::MAX)
    }

    /// Returns the figures that an experiment reports of its samples; for an unknown experiment,
    /// those of measured caches.
    pub(crate) fn findings(&self, experiment: &str, samples: &Samples<'_>) -> Findings {
        match self.named(experiment) {
            Some(topic) => topic.findings(samples),
            None => Findings::of(samples, FIGURES),
        }
    }

    pub(crate) fn named(&self, name: &str) -> Option<&dyn Topic> {
        self.0.iter().find(|topic| topic.name() == name).map(Box::as_ref)
    }
}

impl fmt::Debug for Topics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|topic| topic.name())).finish()
    }
}
