//! Errors of tables in documents.

use std::path::PathBuf;

use haypile_measure::compare::CompareError;

/// The error of a document whose tables cannot be updated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpliceError {
    /// The document cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The document.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// A table cannot be made.
    #[error("{}: line {line}: a table cannot be made: {problem}", document.display())]
    Marker {
        /// The document.
        document: PathBuf,
        /// The number of the comment's line, from 1.
        line: usize,
        /// The problem.
        problem: MarkerProblem,
    },
}

/// The reason why a table of a document cannot be made from results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MarkerProblem {
    /// The ending comment of a table is missing.
    #[error("the table has no end; put <!-- end of table --> on a line of its own after it")]
    NoEnd,
    /// An ending comment has no beginning.
    #[error(
        "a table ends here that has no beginning; write <!-- table: FILE columns=... --> above it"
    )]
    NoBeginning,
    /// The comment does not end on its line.
    #[error("the comment of a table has to end with --> on the same line")]
    OpenComment,
    /// No file of results is named.
    #[error(
        "the comment of a table has to name the results first, as in <!-- table: record/FILE.jsonl \
         columns=subject,cpu -->"
    )]
    NoResults,
    /// A word that should be a setting is not one.
    #[error("{word:?} is not a setting of a table; write NAME=VALUE without blanks")]
    NoSetting {
        /// The word.
        word: String,
    },
    /// There are no columns, or no column with figures.
    #[error(
        "a table needs columns, at least one of them with figures, as in columns=subject,cpu,memory"
    )]
    NoFigures,
    /// A name is neither in the schema nor in the samples.
    #[error("these results have no field or parameter {name} (known: {})", known.join(", "))]
    UnknownName {
        /// The name.
        name: String,
        /// The known names.
        known: Vec<String>,
    },
    /// The table is sorted by a column that it does not have.
    #[error(
        "the table cannot be sorted by {name}, which is not one of its columns; add it to columns="
    )]
    UnknownSort {
        /// The name given.
        name: String,
    },
    /// The metric of `times` does not exist.
    #[error(transparent)]
    UnknownMetric(#[from] haypile_measure::compare::UnknownMetric),
    /// The filters leave no sample.
    #[error(
        "the table would be empty, because no result has {filter} (known: {})",
        known.join(", ")
    )]
    NothingLeft {
        /// The filter that leaves nothing.
        filter: String,
        /// The values in the samples.
        known: Vec<String>,
    },
    /// Samples that should not be mixed are in one row.
    #[error(
        "a row of the table would mix samples with {name} {one} and {other}; show {name} in a \
         column, or choose one of them by {name}=..."
    )]
    Mixed {
        /// The name of the field that differs.
        name: String,
        /// A value of the field.
        one: String,
        /// Another value of the field.
        other: String,
    },
    /// Times are requested without a baseline.
    #[error("columns=times needs the subject that the others are compared with, as baseline=NAME")]
    NoBaseline,
    /// The results cannot be read.
    #[error(transparent)]
    Results(#[from] CompareError),
}
