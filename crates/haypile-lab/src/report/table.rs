//! Tables of the report.

use std::ops::Range;

use haypile_measure::statistics::Verdict;

/// A table of the report, whose first column names what the row is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) columns: Vec<TableColumn>,
    /// The rows of the table, with a cell for each column.
    pub(crate) rows: Vec<Vec<String>>,
    /// Whether the report's page shows the table folded until the reader opens it.
    pub(crate) is_detail: bool,
    /// The number of the table's column with verdicts, and the tone of each row's verdict.
    pub(crate) verdicts: Option<(usize, Vec<Tone>)>,
}

/// The tone of a verdict (good, bad or neutral), which report pages show by a colour in addition to
/// the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// A difference is shown, and the subject is better.
    Better,
    /// A difference is shown, and the subject is worse.
    Worse,
    /// The subject is neither better nor worse, as far as the samples would show it.
    Level,
    /// The samples allow no verdict.
    Open,
}

impl Tone {
    /// Returns the tone (good, bad or neutral) of a verdict on a cost of a cache, such as time, of
    /// which less is better.
    pub(crate) fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Faster | Verdict::FasterOnAverage => Self::Better,
            Verdict::Slower | Verdict::SlowerOnAverage => Self::Worse,
            Verdict::NoDifference => Self::Level,
            _ => Self::Open,
        }
    }
}

/// A column of a report's table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableColumn {
    pub(crate) name: String,
    /// Whether the table's column holds numbers, which are right-aligned.
    pub(crate) is_number: bool,
}

/// Most columns that have room next to each other on a screen of 1,280 pixels.
const MAX_COLUMNS: usize = 14;

/// The text of a table's cell for which nothing was measured.
pub(crate) const NOTHING: &str = "–";

impl Table {
    /// Creates a table whose first column is text and whose others are numbers.
    pub(crate) fn of_numbers(caption: String, names: &[&str], rows: Vec<Vec<String>>) -> Self {
        let column = |(at, name): (usize, &&str)| TableColumn {
            name: (*name).to_owned(),
            is_number: at > 0,
        };
        let columns = names.iter().enumerate().map(column).collect();
        Self { caption, columns, rows, is_detail: false, verdicts: None }
    }

    /// Returns the table with these columns marked as text instead of numbers.
    pub(crate) fn with_text_in(mut self, columns: &[usize]) -> Self {
        for &at in columns {
            self.columns[at].is_number = false;
        }
        self
    }

    /// Returns the table with one column marked as verdicts: `tones` has the tone of each row's
    /// verdict.
    pub(crate) fn with_verdicts(mut self, column: usize, tones: Vec<Tone>) -> Self {
        self.columns[column].is_number = false;
        self.verdicts = Some((column, tones));
        self
    }

    pub(crate) fn detail(mut self) -> Self {
        self.is_detail = true;
        self
    }

    /// Divides the table into as few parts as fit the page, about equally wide. Each part begins
    /// with the leading columns of text.
    pub(crate) fn parts(&self) -> Vec<Self> {
        let texts = self.columns.iter().take_while(|column| !column.is_number).count();
        let keys = texts.clamp(1, MAX_COLUMNS / 2).min(self.columns.len());
        let others = self.columns.len() - keys;
        let parts = others.div_ceil(MAX_COLUMNS - keys);
        if parts < 2 {
            return vec![self.clone()];
        }
        let part = |part: usize| {
            let range = keys + others * part / parts..keys + others * (part + 1) / parts;
            Self {
                caption: format!("{}, part {} of {parts}", self.caption, part + 1),
                columns: pick(&self.columns, keys, &range),
                rows: self.rows.iter().map(|row| pick(row, keys, &range)).collect(),
                is_detail: self.is_detail,
                verdicts: self.verdicts.clone().filter(|(column, _)| *column < keys),
            }
        };
        (0..parts).map(part).collect()
    }
}

/// The first ones, and those of a range.
fn pick<T: Clone>(all: &[T], keys: usize, range: &Range<usize>) -> Vec<T> {
    [&all[..keys], &all[range.clone()]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(columns: usize) -> Table {
        let names: Vec<String> = (0..columns).map(|at| format!("c{at}")).collect();
        let borrowed: Vec<&str> = names.iter().map(String::as_str).collect();
        Table::of_numbers("All".to_owned(), &borrowed, vec![names.clone()])
    }

    #[test]
    fn a_table_that_has_room_is_whole() {
        for columns in [1, 2, MAX_COLUMNS] {
            assert_eq!(table(columns).parts(), [table(columns)]);
        }
    }

    #[test]
    fn a_wide_table_has_parts_that_begin_alike() {
        let parts = table(MAX_COLUMNS + 2).with_text_in(&[1]).parts();
        let names =
            |part: &Table| part.columns.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].caption, "All, part 1 of 2");
        assert_eq!(names(&parts[0]), ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"]);
        assert_eq!(names(&parts[1])[..3], ["c0", "c1", "c9"]);
        assert_eq!(names(&parts[1]).last().unwrap(), "c15");
        assert_eq!(parts[1].rows, [names(&parts[1])]);
    }
}
