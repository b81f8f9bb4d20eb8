//! The comment in a document that asks for a table.

use haypile_measure::compare::Metric;
use haypile_measure::figure::{self, FIGURES};

use super::error::MarkerProblem;

/// A figure (such as processor time) that a table of a document shows.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Figure {
    /// One of the laboratory's figures; times have the median absolute deviation as well.
    Of(&'static figure::Figure),
    /// The multiple of the baseline's cost, with a 95 % interval.
    Times,
    /// The mean of byte hit ratios over all columns that stand across.
    MeanByteHitRatio,
    /// The number of samples.
    Samples,
    /// A count of the runner by its name, from samples with errors too: the sum, and of times the
    /// longest.
    Count(String),
}

/// A column of a document's table: a field or parameter of the samples, or a measured figure.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SpliceColumn {
    /// A field or parameter by name, which distinguishes rows.
    Name(String),
    /// The figure measured.
    Figure(Figure),
}

/// The settings of a table, from the comment (`<!-- table: ... -->`) in a document that asks for
/// it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Marker {
    /// The path of the file or directory with the table's results.
    pub(super) results: String,
    /// The columns of the document's table, in their order.
    pub(super) columns: Vec<SpliceColumn>,
    /// Fields or parameters of samples whose values become columns of the table.
    pub(super) across: Vec<String>,
    /// Columns by which the table's rows are sorted; if empty, by those of fields and parameters.
    pub(super) sort: Vec<String>,
    /// The name of the cache with which the table's column `times` compares the others; its own
    /// value is 1.0 times.
    pub(super) baseline: Option<String>,
    /// The measured cost (such as processor time) whose ratio to the baseline's the table's column
    /// `times` shows.
    pub(super) metric: Metric,
    /// Fields or parameters of samples, each with the values to which the table is restricted.
    pub(super) filters: Vec<(String, Vec<String>)>,
}

impl Figure {
    /// Returns the figure of a table (such as processor time) with this name, if there is one.
    pub(super) fn named(name: &str) -> Option<Self> {
        if let Some(count) = name.strip_prefix("count:") {
            return Some(Self::Count(count.to_owned()));
        }
        Some(match name {
            "times" => Self::Times,
            "mean-byte-hit-ratio" => Self::MeanByteHitRatio,
            "samples" => Self::Samples,
            _ => Self::Of(FIGURES.iter().find(|figure| figure.name == name)?),
        })
    }

    /// Whether the figure belongs to a table's row as a whole, and not to each of its cells.
    pub(super) fn is_of_row(&self) -> bool {
        matches!(self, Self::MeanByteHitRatio)
    }
}

impl SpliceColumn {
    fn of(name: &str) -> Self {
        Figure::named(name).map_or_else(|| Self::Name(name.to_owned()), Self::Figure)
    }
}

impl Marker {
    /// Parses the comment that asks for a table: the text between `table:` and the end of the
    /// comment.
    pub(super) fn parse(text: &str) -> Result<Self, MarkerProblem> {
        let mut words = text.split_whitespace();
        let results = words.next().filter(|word| !word.contains('='));
        let mut marker = Self {
            results: results.ok_or(MarkerProblem::NoResults)?.to_owned(),
            columns: Vec::new(),
            across: Vec::new(),
            sort: Vec::new(),
            baseline: None,
            metric: Metric::Cpu,
            filters: Vec::new(),
        };
        for word in words {
            let no_setting = || MarkerProblem::NoSetting { word: word.to_owned() };
            let (name, value) = word.split_once('=').ok_or_else(no_setting)?;
            let list = || value.split(',').map(str::to_owned).collect::<Vec<_>>();
            match name {
                "columns" => marker.columns = value.split(',').map(SpliceColumn::of).collect(),
                "across" => marker.across = list(),
                "sort" => marker.sort = list(),
                "baseline" => marker.baseline = Some(value.to_owned()),
                "metric" => marker.metric = value.parse()?,
                // Names of subjects hold commas; several are several settings.
                "subject" | "program" => marker.allow(name, vec![value.to_owned()]),
                _ => marker.allow(name, list()),
            }
        }
        let is_figure = |column: &SpliceColumn| matches!(column, SpliceColumn::Figure(_));
        if !marker.columns.iter().any(is_figure) {
            return Err(MarkerProblem::NoFigures);
        }
        let has_times = marker.columns.contains(&SpliceColumn::Figure(Figure::Times));
        if has_times && marker.baseline.is_none() {
            return Err(MarkerProblem::NoBaseline);
        }
        Ok(marker)
    }

    fn allow(&mut self, name: &str, values: Vec<String>) {
        match self.filters.iter_mut().find(|(filter, _)| filter == name) {
            Some((_, allowed)) => allowed.extend(values),
            None => self.filters.push((name.to_owned(), values)),
        }
    }

    /// Returns the names of the fields and parameters that distinguish the table's rows.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.columns.iter().filter_map(|column| match column {
            SpliceColumn::Name(name) => Some(name),
            SpliceColumn::Figure(_) => None,
        })
    }
}
