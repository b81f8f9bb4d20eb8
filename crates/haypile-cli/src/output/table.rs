//! Tables for people.

use std::ops::Range;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// Blanks between columns.
const GAP: u16 = 2;

/// Returns a table without lines, whose first `text` columns are text and the others numbers.
///
/// For a terminal that is too narrow, the table has several parts, one below the other. Each begins
/// with the first `key` columns, which distinguish the rows.
pub(crate) fn table(header: &[String], text: usize, key: usize, rows: &[Vec<String>]) -> String {
    let mut whole = Table::new();
    whole.set_header(header).add_rows(rows);
    let widths = whole.column_max_content_widths();
    // `None` if standard output is not a terminal: a table for a program has one part.
    let parts = parts(&widths, key, whole.width().unwrap_or(u16::MAX));
    let texts: Vec<String> = parts
        .into_iter()
        .map(|part| {
            let pick = |row: &[String]| [&row[..key], &row[part.clone()]].concat();
            let rows: Vec<Vec<String>> = rows.iter().map(|row| pick(row)).collect();
            render(&pick(header), text, &rows)
        })
        .collect();
    texts.join("\n")
}

/// Divides the columns after the first `key` into parts of at most `limit` characters a line, or of
/// one column if it is wider.
fn parts(widths: &[u16], key: usize, limit: u16) -> Vec<Range<usize>> {
    let width =
        |columns: &[u16]| columns.iter().map(|width| usize::from(width + GAP)).sum::<usize>();
    let room = usize::from(limit) + usize::from(GAP);
    let mut parts = Vec::new();
    let mut start = key;
    for end in key + 1..=widths.len() {
        if end - start > 1 && width(&widths[..key]) + width(&widths[start..end]) > room {
            parts.push(start..end - 1);
            start = end - 1;
        }
    }
    parts.push(start..widths.len());
    parts
}

fn render(header: &[String], text: usize, rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header).add_rows(rows);
    for at in 0..header.len() {
        let column = table.column_mut(at).expect("the table has the columns of its header");
        column.set_padding((0, GAP));
        if at >= text {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let text = table.to_string();
    let lines = text.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the column after each part.
    fn ends(widths: &[u16], key: usize, limit: u16) -> Vec<usize> {
        let parts = parts(widths, key, limit);
        let mut start = key;
        for part in &parts {
            assert_eq!(part.start, start, "no column is left out or shown twice");
            start = part.end;
        }
        parts.into_iter().map(|part| part.end).collect()
    }

    #[test]
    fn a_table_that_fits_has_one_part() {
        // 4 + 2 + 5 + 2 + 5
        assert_eq!(ends(&[4, 5, 5], 1, 18), [3]);
        assert_eq!(ends(&[4, 5, 5], 1, u16::MAX), [3]);
    }

    #[test]
    fn a_wide_table_has_several_parts() {
        assert_eq!(ends(&[4, 5, 5], 1, 17), [2, 3]);
        assert_eq!(ends(&[4, 5, 5, 5, 5, 5], 1, 18), [3, 5, 6]);
        assert_eq!(ends(&[5, 5, 5], 0, 12), [2, 3]);
    }

    #[test]
    fn a_column_wider_than_the_terminal_stands_alone() {
        assert_eq!(ends(&[4, 50, 5], 1, 20), [2, 3]);
        assert_eq!(ends(&[40, 5], 1, 20), [2]);
        assert_eq!(ends(&[4, 5, 5], 1, 0), [2, 3]);
    }

    #[test]
    fn numbers_are_on_the_right() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let text =
            table(&row(["Policy", "Hits"]), 1, 1, &[row(["lru", "7"]), row(["s3fifo", "12345"])]);
        assert_eq!(text, "Policy   Hits\nlru         7\ns3fifo  12345\n");
    }
}
