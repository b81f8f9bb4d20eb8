//! Errors of comparisons.

use std::path::PathBuf;

use super::metric::Metric;
use crate::result::ResultsError;

/// The error of two sets of benchmark results that cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// A file cannot be read.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// A directory cannot be read.
    #[error("{}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// The file or directory has no samples.
    #[error(
        "{} contains no results of measurements; haypile lab micro --out FILE.jsonl makes a file \
         of results",
        path.display()
    )]
    NoSamples {
        /// The file or directory.
        path: PathBuf,
    },
    /// Only one subject was asked for.
    #[error(
        "--subjects {name} names one subject, and a comparison needs two, the old and the new \
         one, as in {name},OTHER (known: {}); with two files, leave --subjects out to compare each subject \
         with itself",
        subjects.join(" ")
    )]
    OneSubject {
        /// The name given.
        name: String,
        /// The known subjects.
        subjects: Vec<String>,
    },
    /// No pair of subjects of the results matches the list.
    #[error(
        "the subjects {list} {}; write two, as in A,B, or A@PROGRAM,A@OTHER, or @PROGRAM,@OTHER; \
         old has {}; new has {}",
        if *is_ambiguous { "can be read in more than one way" } else { "are not in the results" },
        old.join(" "),
        new.join(" ")
    )]
    Subjects {
        /// The list given.
        list: String,
        /// Whether the list could mean several pairs.
        is_ambiguous: bool,
        /// The names in the old results.
        old: Vec<String>,
        /// The names in the new results.
        new: Vec<String>,
    },
    /// Results of several programs would be mixed.
    #[error("{subject} was run by several programs, {}; name one of them, as in {subject}@{}",
        programs.join(", "), programs.first().map_or("PROGRAM", String::as_str))]
    SeveralPrograms {
        /// The subject.
        subject: String,
        /// The programs.
        programs: Vec<String>,
    },
    /// Old and new have no case and subject in common.
    #[error(
        "the old and the new results have no case and subject in common, so that nothing can be \
         compared; old has {old}; new has {new}; --subjects A,B compares subjects of different \
         names"
    )]
    NothingInCommon {
        /// The first case and subject of the old results.
        old: String,
        /// The first case and subject of the new results.
        new: String,
    },
    /// No case has figures on both sides.
    #[error(
        "no case has samples with {metric} in both the old and the new results, so that nothing \
         can be compared; compare another metric"
    )]
    NotMeasured {
        /// The metric.
        metric: Metric,
    },
}
