//! Tables.

/// A table of the report: the first column says what a row is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) columns: Vec<TableColumn>,
    /// A cell for each column.
    pub(crate) rows: Vec<Vec<String>>,
    /// Whether it is folded until somebody wants to see it.
    pub(crate) is_detail: bool,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableColumn {
    pub(crate) name: String,
    /// Whether it holds numbers, which stand on the right.
    pub(crate) is_number: bool,
}

/// The mark of a place where nothing was measured.
pub(crate) const NOTHING: &str = "–";

impl Table {
    /// A table whose first column is text and whose others are numbers.
    pub(crate) fn of_numbers(caption: String, names: &[&str], rows: Vec<Vec<String>>) -> Self {
        let column = |(at, name): (usize, &&str)| TableColumn {
            name: (*name).to_owned(),
            is_number: at > 0,
        };
        let columns = names.iter().enumerate().map(column).collect();
        Self { caption, columns, rows, is_detail: false }
    }

    /// The same with text in these columns as well.
    pub(crate) fn with_text_in(mut self, columns: &[usize]) -> Self {
        for &at in columns {
            self.columns[at].is_number = false;
        }
        self
    }

    pub(crate) fn detail(mut self) -> Self {
        self.is_detail = true;
        self
    }
}
