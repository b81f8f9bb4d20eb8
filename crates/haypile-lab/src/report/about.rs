//! What each experiment asks, and how: the texts of its experiment file, and a heading.

use crate::experiment::ExperimentFile;

/// What is said about an experiment whoever did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct About {
    /// What it is about, as a heading.
    pub(super) title: &'static str,
    /// What it asks, in a sentence.
    pub(super) question: &'static str,
    /// How it answers, in some sentences.
    pub(super) method: &'static str,
    /// Where the definition comes from.
    pub(super) source: Option<&'static str>,
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
        return About { title, question, method, source: Some(source) };
    }
    match ExperimentFile::built_in(experiment) {
        Some(file) => About {
            title,
            question: &file.question,
            method: &file.method,
            source: Some(&file.source),
        },
        None => About {
            title,
            question: "This report knows no question for this experiment; the table has what was measured.",
            method: "Within each block all subjects take turns in random order, each in a process of its own, \
                     and every key's value is compared before and after the timed part.",
            source: None,
        },
    }
}
