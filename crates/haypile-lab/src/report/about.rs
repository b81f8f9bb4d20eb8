//! What each experiment asks, and how: the texts of its experiment file, and a heading.

use std::borrow::Cow;

use super::wording::Wording;
use crate::experiment::ExperimentFile;

/// What is said about an experiment whatever came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct About {
    /// What it is about, as a heading.
    pub(super) title: &'static str,
    /// What it asks, in a sentence.
    pub(super) question: Cow<'static, str>,
    /// How it answers, in some sentences.
    pub(super) method: Cow<'static, str>,
    /// Where the definition comes from.
    pub(super) source: Option<Cow<'static, str>>,
}

impl About {
    /// The same with the question of an experiment file.
    pub(super) fn worded(self, wording: &Wording) -> Self {
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

/// In this order experiments stand in the report, each with its heading; others follow by name.
pub(super) const ORDER: [(&str, &str); 12] = [
    ("simulate", "Which policy, at which size?"),
    ("replay", "Hit ratios of real caches"),
    ("micro", "Single operations"),
    ("ratio", "Sets and reads in proportion"),
    ("workload", "A database client's cache"),
    ("persist", "Writing to disk and opening again"),
    ("loop", "The cost of a call"),
    ("sequence", "A sequence of calls"),
    ("search", "Looking for what is not there"),
    ("crossover", "From which size on does it matter?"),
    ("stampede", "One expired key, many processes"),
    ("torture", "Killed and stopped processes"),
];

/// The simulator is no experiment on caches, and has no file.
const SIMULATE: (&str, &str, &str) = (
    "What part of a trace's reads would miss, by eviction policy and size of the cache?",
    "The simulator replays each trace through the policies of the engine and counts every hit and miss. The \
     counts are exact; only a curve from a sample of the keys has an error.",
    "RelStorage's cache, simulations (document 004)",
);

/// What is known about an experiment; of one that is not known, just how anything is measured.
pub(super) fn about(experiment: &str) -> About {
    let heading = ORDER.iter().find(|(name, _)| *name == experiment).map(|(_, title)| *title);
    let title = heading.unwrap_or("Another experiment");
    if experiment == ORDER[0].0 {
        let (question, method, source) = SIMULATE;
        return About {
            title,
            question: question.into(),
            method: method.into(),
            source: Some(source.into()),
        };
    }
    match ExperimentFile::built_in(experiment) {
        Some(file) => About {
            title,
            question: file.question.as_str().into(),
            method: file.method.as_str().into(),
            source: Some(file.source.as_str().into()),
        },
        None => About {
            title,
            question: "This report knows no question for this experiment; the table has what was measured."
                .into(),
            method: "Within each block all subjects take turns in random order, each in a process of its own, \
                     and every key's value is compared before and after the timed part."
                .into(),
            source: None,
        },
    }
}
