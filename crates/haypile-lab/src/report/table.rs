//! Tables.

/// A table of the report: the first column says what a row is about.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) columns: Vec<Column>,
    /// A cell for each column.
    pub(super) rows: Vec<Vec<String>>,
    /// Whether it is folded until somebody wants to see it.
    pub(super) is_detail: bool,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    pub(super) name: String,
    /// Whether it holds numbers, which stand on the right.
    pub(super) is_number: bool,
}

/// What stands where nothing was measured.
pub(super) const NOTHING: &str = "–";

impl Table {
    /// A table whose first column is text and whose others are numbers.
    pub(super) fn of_numbers(caption: String, names: &[&str], rows: Vec<Vec<String>>) -> Self {
        let column =
            |(at, name): (usize, &&str)| Column { name: (*name).to_owned(), is_number: at > 0 };
        let columns = names.iter().enumerate().map(column).collect();
        Self { caption, columns, rows, is_detail: false }
    }

    /// The same with text in these columns as well.
    pub(super) fn with_text_in(mut self, columns: &[usize]) -> Self {
        for &at in columns {
            self.columns[at].is_number = false;
        }
        self
    }

    pub(super) fn detail(mut self) -> Self {
        self.is_detail = true;
        self
    }
}
