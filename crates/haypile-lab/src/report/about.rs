//! The questions and methods of experiments: the texts of its experiment file, and a heading.

use std::borrow::Cow;

use super::topic::{Texts, Topic};
use super::wording::Wording;

/// The description of an experiment for the report: its question, method and source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    /// The heading of the experiment's section in the report.
    pub(crate) title: &'static str,
    /// The question of the experiment, in a sentence.
    pub(crate) question: Cow<'static, str>,
    /// The method of the experiment, in some sentences.
    pub(crate) method: Cow<'static, str>,
    /// The source of the experiment's question, such as a publication.
    pub(crate) source: Option<Cow<'static, str>>,
}

impl About {
    /// Returns the experiment's description with the question, method and source of a user's
    /// experiment file.
    pub(crate) fn worded(self, wording: &Wording) -> Self {
        Self {
            title: self.title,
            question: Cow::Owned(wording.question.clone()),
            method: Cow::Owned(with_full_stop(&wording.method)),
            // The sentence around it has its own.
            source: Some(Cow::Owned(wording.source.trim_end_matches('.').to_owned())),
        }
    }
}

/// The text as a sentence that others can follow.
fn with_full_stop(text: &str) -> String {
    if text.is_empty() || text.ends_with(['.', '!', '?', '…']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

/// Name and heading of the report's section on simulations of eviction policies.
pub(crate) const SIMULATE: (&str, &str) = ("simulate", "Which policy, at which size?");

/// The simulator is not an experiment on caches, and has no file.
const SIMULATIONS: (&str, &str, &str) = (
    "What part of a trace's reads would miss, by eviction policy and size of the cache?",
    "The simulator replays each trace through the policies of the engine and counts every hit and miss. The \
     counts are exact; only a curve from a sample of the keys has an error.",
    "RelStorage's cache notes: trace simulation",
);

/// Returns the description of the report's section on simulations of eviction policies.
pub(crate) fn about_simulations() -> About {
    let (question, method, source) = SIMULATIONS;
    About {
        title: SIMULATE.1,
        question: question.into(),
        method: method.into(),
        source: Some(source.into()),
    }
}

/// Returns the description of an experiment for the report (question, method, source); for an
/// unknown one, the method that all measurements share.
pub(crate) fn about(topic: Option<&dyn Topic>) -> About {
    match topic {
        Some(topic) => {
            let Texts { question, method, source } = topic.texts();
            About {
                title: topic.title(),
                question: question.into(),
                method: method.into(),
                source: Some(source.into()),
            }
        }
        None => About {
            title: "Another experiment",
            question: "This report knows no question for this experiment; the table has what was measured."
                .into(),
            method: "Within each block all subjects take turns in random order, each in a process of its own, \
                     and every key's value is compared before and after the timed part."
                .into(),
            source: None,
        },
    }
}
