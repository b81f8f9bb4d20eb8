//! Tables for people.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// A table without lines whose first `left` columns are text and the others numbers.
pub(crate) fn table(header: Vec<String>, left: usize, rows: Vec<Vec<String>>) -> String {
    let columns = header.len();
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header).add_rows(rows);
    for at in 0..columns {
        let column = table.column_mut(at).expect("a column of the header");
        column.set_padding((0, 2));
        if at >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let text = table.to_string();
    let lines = text.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}
