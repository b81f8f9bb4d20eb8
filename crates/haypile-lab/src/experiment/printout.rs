//! The results of an experiment as text and tables for a terminal.

use std::collections::BTreeSet;

use haypile_measure::result::Sample;
use haypile_number::with_plain_spaces;

use crate::report::table::{NOTHING, Table};

/// The printed results of an experiment: texts and tables, one below the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Printout {
    blocks: Vec<Block>,
}

/// A part of an experiment's printout: lines of text, or a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Complete lines.
    Text(String),
    /// A table, whose form depends on the width of the terminal.
    Table {
        /// Names of the columns.
        header: Vec<String>,
        /// Number of columns at the left that are text; the others are numbers.
        text_columns: usize,
        /// Number of columns at the left that distinguish the rows.
        key_columns: usize,
        /// Cells of each row, as many as the header has.
        rows: Vec<Vec<String>>,
        /// Columns that a narrow terminal leaves out, the least important first.
        spare_columns: Vec<usize>,
    },
}

impl Printout {
    /// Returns the parts of the printout (texts and tables) in their order.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the printout as Markdown: each line of text is a paragraph.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            match block {
                Block::Text(lines) => {
                    for line in lines.lines().filter(|line| !line.is_empty()) {
                        text.push_str(&escaped(line));
                        text.push_str("\n\n");
                    }
                }
                Block::Table { header, text_columns, rows, .. } => {
                    let line = |cells: &[String]| {
                        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
                        format!("| {} |\n", cells.join(" | "))
                    };
                    text.push_str(&line(header));
                    let rule = |at| if at < *text_columns { "---|" } else { "---:|" };
                    text.push('|');
                    text.extend((0..header.len()).map(rule));
                    text.push('\n');
                    text.extend(rows.iter().map(|row| line(row)));
                    text.push('\n');
                }
            }
        }
        text
    }

    /// Adds complete lines of text to the printout.
    pub fn text(&mut self, text: impl Into<String>) -> &mut Self {
        let text = with_plain_spaces(&text.into());
        if !text.is_empty() {
            self.blocks.push(Block::Text(text));
        }
        self
    }

    /// Adds an empty line to the printout, unless it has no part yet.
    pub fn gap(&mut self) -> &mut Self {
        if self.blocks.is_empty() { self } else { self.text("\n") }
    }

    /// Adds a table to the printout: its column names, how many columns at the left are text and
    /// distinguish the rows, and the rows' cells.
    pub fn table(
        &mut self,
        header: impl IntoIterator<Item = impl Into<String>>,
        text_columns: usize,
        key_columns: usize,
        rows: Vec<Vec<String>>,
    ) -> &mut Self {
        let header = header.into_iter().map(|name| with_plain_spaces(&name.into())).collect();
        let mut rows = rows;
        for cell in rows.iter_mut().flatten() {
            *cell = if cell == NOTHING { "-".to_owned() } else { with_plain_spaces(cell) };
        }
        let spare_columns = Vec::new();
        self.blocks.push(Block::Table { header, text_columns, key_columns, rows, spare_columns });
        self
    }

    /// Adds a table of the report to the printout, under its caption.
    pub(crate) fn show(&mut self, table: &Table) -> &mut Self {
        let texts = table.columns.iter().take_while(|column| !column.is_number).count();
        let header = table.columns.iter().map(|column| column.name.clone());
        let rows = table.rows.clone();
        self.gap().text(format!("{}\n", table.caption)).table(header, texts, texts, rows)
    }

    /// Adds the errors of samples to the printout, each distinct text once.
    pub(crate) fn errors(&mut self, samples: &[Sample]) -> &mut Self {
        let mut known = BTreeSet::new();
        for sample in samples {
            let Some(error) = &sample.error else { continue };
            let text = format!("{} on {}: {error}\n", sample.subject.name, sample.case);
            if known.insert(text.clone()) {
                self.text(text);
            }
        }
        self
    }

    /// Names columns of the printout's last table that a narrow terminal leaves out, the least
    /// important first.
    pub fn spare(&mut self, columns: impl IntoIterator<Item = usize>) -> &mut Self {
        if let Some(Block::Table { spare_columns, .. }) = self.blocks.last_mut() {
            spare_columns.extend(columns);
        }
        self
    }

    /// Adds all parts of another printout to the end of this one.
    pub fn append(&mut self, other: Self) -> &mut Self {
        self.blocks.extend(other.blocks);
        self
    }
}

/// Returns text in which nothing is markup, as commands of users may have.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if "\\`*_<>|[]#".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(if letter.is_control() { '\u{FFFD}' } else { letter });
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_has_paragraphs_and_tables_whose_cells_hold_bars() {
        let mut printout = Printout::default();
        printout.text("One <b>.\nTwo\u{1b} *.\n");
        printout.table(["a", "b"], 1, 1, vec![vec!["x | y".to_owned(), "1".to_owned()]]);
        let expected =
            "One \\<b\\>.\n\nTwo\u{FFFD} \\*.\n\n| a | b |\n|---|---:|\n| x \\| y | 1 |\n\n";
        assert_eq!(printout.markdown(), expected);
    }
}
