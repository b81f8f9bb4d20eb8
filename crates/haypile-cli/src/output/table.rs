//! Tables for people.

use std::ops::Range;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// Blanks between columns.
const GAP: u16 = 2;

/// Returns a table as text without ruled lines; the first `text` columns are text, and the others
/// numbers.
///
/// For a terminal that is too narrow, the table has several parts, one below the other. Each begins
/// with the first `key` columns, which distinguish the rows.
pub(crate) fn table(header: &[String], text: usize, key: usize, rows: &[Vec<String>]) -> String {
    in_parts(header, text, key, rows, terminal_width())
}

/// Returns a table as text, as [`table`] does, but if possible in one part even if the terminal is
/// narrow: without some of the `spare` columns, of which the first ones are the least important, or
/// with numbers for the longest keys, which are explained above the table.
pub(crate) fn fitting_table(
    header: &[String],
    text: usize,
    key: usize,
    rows: &[Vec<String>],
    spare: &[usize],
) -> String {
    fitting(header, text, key, rows, spare, terminal_width())
}

/// The width of the terminal. A table for a program is as wide as it is.
fn terminal_width() -> u16 {
    Table::new().width().unwrap_or(u16::MAX)
}

/// The widest text that is easy to read.
const WIDEST_TEXT: usize = 100;

/// Returns a text with lines broken between words to fit the terminal. Text for a program stays as
/// it is, and so do lines without blanks.
pub(crate) fn wrapped(text: &str) -> String {
    match Table::new().width() {
        Some(width) => wrapped_to(text, usize::from(width).min(WIDEST_TEXT)),
        None => text.to_owned(),
    }
}

fn wrapped_to(text: &str, limit: usize) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let mut used = 0;
        let words =
            if line.chars().count() <= limit { vec![line] } else { line.split(' ').collect() };
        for word in words {
            let length = word.chars().count();
            if used > 0 && used + 1 + length > limit {
                lines.push('\n');
                used = 0;
            } else if used > 0 {
                lines.push(' ');
                used += 1;
            }
            lines.push_str(word);
            used += length;
        }
        lines.push('\n');
    }
    lines
}

fn fitting(
    header: &[String],
    text: usize,
    key: usize,
    rows: &[Vec<String>],
    spare: &[usize],
    limit: u16,
) -> String {
    // A column less is easier to read than a number for a name; two are not.
    let named = (0..=spare.len().min(1)).map(|without| (without, false));
    let numbered = (0..=spare.len()).map(|without| (without, true));
    for (without, is_numbered) in named.chain(numbered) {
        let without = &spare[..without];
        let kept: Vec<usize> = (0..header.len()).filter(|at| !without.contains(at)).collect();
        let pick = |row: &[String]| kept.iter().map(|&at| row[at].clone()).collect::<Vec<_>>();
        let mut titles = pick(header);
        let mut cells: Vec<Vec<String>> = rows.iter().map(|row| pick(row)).collect();
        let mut legend = String::new();
        if is_numbered {
            legend = number_keys(&mut titles, &mut cells, key.min(text));
        }
        if width(&content_widths(&titles, &cells)) <= usize::from(limit) {
            let note = left_out(header, without);
            return format!("{legend}{}{note}", render(&titles, text, &cells));
        }
    }
    in_parts(header, text, key, rows, limit)
}

/// Replaces the longest of the key columns by numbers; returns the lines that explain them.
fn number_keys(header: &mut [String], rows: &mut [Vec<String>], key: usize) -> String {
    let widths = content_widths(header, rows);
    let Some(at) = (0..key).max_by_key(|&at| widths[at]) else { return String::new() };
    let mut names: Vec<String> = Vec::new();
    for row in rows.iter_mut() {
        let name = &mut row[at];
        let place = names.iter().position(|known| known == name).unwrap_or_else(|| {
            names.push(name.clone());
            names.len() - 1
        });
        *name = (place + 1).to_string();
    }
    let line = |(name, number): (&String, usize)| format!("{number}  {name}\n");
    let legend: String = names.iter().zip(1..).map(line).collect();
    "#".clone_into(&mut header[at]);
    legend
}

/// The line below a table that names the columns that it lacks.
fn left_out(header: &[String], without: &[usize]) -> String {
    if without.is_empty() {
        return String::new();
    }
    let name = |&at: &usize| {
        let is_twice = header.iter().filter(|name| **name == header[at]).count() > 1;
        // Such as the deviation, which follows what deviates.
        if is_twice && at > 0 {
            format!("{} of {}", header[at], header[at - 1])
        } else {
            header[at].clone()
        }
    };
    let names: Vec<String> = without.iter().map(name).collect();
    format!("(left out, for the terminal is narrow: {})\n", names.join(", "))
}

fn content_widths(header: &[String], rows: &[Vec<String>]) -> Vec<u16> {
    let mut table = Table::new();
    table.set_header(header).add_rows(rows);
    table.column_max_content_widths()
}

/// The width of a table with columns of these widths.
fn width(columns: &[u16]) -> usize {
    let gaps = columns.len().saturating_sub(1) * usize::from(GAP);
    columns.iter().copied().map(usize::from).sum::<usize>() + gaps
}

fn in_parts(
    header: &[String],
    text: usize,
    key: usize,
    rows: &[Vec<String>],
    limit: u16,
) -> String {
    let parts = parts(&content_widths(header, rows), key, limit);
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

    #[test]
    fn lines_break_between_words() {
        let text = "one two three\n\n  a  b\nmemory://?size=1MiB\n";
        assert_eq!(wrapped_to(text, 100), text);
        assert_eq!(wrapped_to(text, 8), "one two\nthree\n\n  a  b\nmemory://?size=1MiB\n");
        assert_eq!(wrapped_to("\u{e4}\u{e4} \u{e4}\u{e4}\n", 5), "\u{e4}\u{e4} \u{e4}\u{e4}\n");
    }

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

    /// Returns rows of a measurement as the laboratory prints them, with these subjects.
    fn measured(subjects: &[&str]) -> (Vec<String>, Vec<Vec<String>>) {
        let header = "Subject|CPU|MAD|Wall|MAD|Relative|95 % interval|Hit ratio|Memory".split('|');
        let row = |subject: &&str| {
            let cells = "1234.5|12.3 %|1234.5|12.3 %|10.123|10.023 to 10.245|1.000|123.4MiB";
            [*subject].into_iter().chain(cells.split('|')).map(str::to_owned).collect()
        };
        (header.map(str::to_owned).collect(), subjects.iter().map(row).collect())
    }

    fn widest(text: &str) -> usize {
        text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    #[test]
    fn a_measurement_has_one_table_of_80_columns() {
        for subjects in [
            &["memory", "moka"][..],
            &["quick_cache", "moka"],
            &["memory:policy=s3fifo,small=10,threshold=1", "memory:policy=wtinylfu,window=20"],
        ] {
            let (header, rows) = measured(subjects);
            let text = fitting(&header, 1, 1, &rows, &[4, 2], 80);
            assert!(widest(&text) <= 80, "{text}");
            let is_header = |line: &&str| line.starts_with("Subject") || line.starts_with('#');
            let headers: Vec<&str> = text.lines().filter(is_header).collect();
            assert_eq!(headers.len(), 1, "{text}");
            assert!(headers[0].contains("CPU") && headers[0].contains("Memory"), "{text}");
            assert!(subjects.iter().all(|subject| text.contains(subject)), "{text}");
        }
        let (header, rows) = measured(&["quick_cache", "moka"]);
        let wide = fitting(&header, 1, 1, &rows, &[4, 2], u16::MAX);
        assert_eq!(wide, table(&header, 1, 1, &rows));
    }

    #[test]
    fn what_a_narrow_table_lacks_is_named_and_keys_are_explained() {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        let header = row(["Subject", "CPU", "MAD", "MAD"]);
        let rows = [row(["a-long-name", "1", "2", "3"]), row(["other", "4", "5", "6"])];
        assert_eq!(
            fitting(&header, 1, 1, &rows, &[3], 24),
            "Subject      CPU  MAD\na-long-name    1    2\nother          4    5\n(left out, for the \
             terminal is narrow: MAD of MAD)\n"
        );
        assert_eq!(
            fitting(&header, 1, 1, &rows, &[3], 16),
            "1  a-long-name\n2  other\n#  CPU  MAD  MAD\n1    1    2    3\n2    4    5    6\n"
        );
        let narrow = fitting(&header, 1, 1, &rows, &[3], 5);
        assert_eq!(narrow, in_parts(&header, 1, 1, &rows, 5));
    }

    #[test]
    fn numbers_are_on_the_right() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let text =
            table(&row(["Policy", "Hits"]), 1, 1, &[row(["lru", "7"]), row(["s3fifo", "12345"])]);
        assert_eq!(text, "Policy   Hits\nlru         7\ns3fifo  12345\n");
    }
}
