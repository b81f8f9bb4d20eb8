//! Splits lines into columns.

use std::ops::Range;

use super::super::bad::Bad;
use super::super::options::Delimiter;

/// A splitter of CSV lines into columns, which keeps its buffers from line to line.
pub(super) struct Splitter {
    delimiter: Delimiter,
    columns: Vec<Range<usize>>,
    /// The csv crate's parser for lines with quotes, with the columns' text and its length.
    quoted: csv_core::Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
}

/// The text of each column in one line of CSV.
pub(super) struct Fields<'a> {
    text: &'a [u8],
    columns: &'a [Range<usize>],
}

impl<'a> Fields<'a> {
    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    /// Returns the text of a CSV column in the line, without surrounding blanks. `column` is below [`Self::len`].
    pub(super) fn get(&self, column: usize) -> &'a [u8] {
        self.text[self.columns[column].clone()].trim_ascii()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        (0..self.len()).map(|column| self.get(column))
    }
}

impl Splitter {
    pub(super) fn new(delimiter: Delimiter) -> Self {
        let mut builder = csv_core::ReaderBuilder::new();
        builder.terminator(csv_core::Terminator::Any(b'\n'));
        if let Delimiter::Byte(byte) = delimiter {
            builder.delimiter(byte);
        }
        Self {
            delimiter,
            columns: Vec::new(),
            quoted: builder.build(),
            text: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Splits a line of CSV, given without its line break, into columns.
    pub(super) fn split<'a>(&'a mut self, line: &'a [u8]) -> Result<Fields<'a>, Bad<'a>> {
        self.columns.clear();
        let text = match self.delimiter {
            Delimiter::Blanks => {
                let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
                let mut start = 0;
                for column in line.split(is_blank) {
                    if !column.is_empty() {
                        self.columns.push(start..start + column.len());
                    }
                    start += column.len() + 1;
                }
                line
            }
            // Few traces quote anything, and searching is several times faster than parsing.
            Delimiter::Byte(delimiter) if memchr::memchr(b'"', line).is_none() => {
                let mut start = 0;
                for end in memchr::memchr_iter(delimiter, line) {
                    self.columns.push(start..end);
                    start = end + 1;
                }
                self.columns.push(start..line.len());
                line
            }
            Delimiter::Byte(_) => {
                if !self.split_quoted(line) {
                    return Err(Bad::new("a closing quote on the same line", line));
                }
                &self.text
            }
        };
        Ok(Fields { text, columns: &self.columns })
    }

    /// False if a quote is not closed.
    fn split_quoted(&mut self, line: &[u8]) -> bool {
        // The text never grows by unquoting, and no byte ends more than one column.
        self.text.resize(line.len() + 1, 0);
        self.ends.resize(line.len() + 2, 0);
        self.quoted.reset();
        let (_, read, written, ended) =
            self.quoted.read_record(line, &mut self.text, &mut self.ends);
        debug_assert_eq!(read, line.len(), "the buffers hold the whole line");
        let (result, _, _, last) =
            self.quoted.read_record(b"\n", &mut self.text[written..], &mut self.ends[ended..]);
        if !matches!(result, csv_core::ReadRecordResult::Record) {
            return false;
        }
        let mut start = 0;
        for &end in &self.ends[..ended + last] {
            self.columns.push(start..end);
            start = end;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(delimiter: Delimiter, line: &str) -> Option<Vec<String>> {
        let mut splitter = Splitter::new(delimiter);
        // Twice: nothing may be left over from an earlier line.
        let _ = splitter.split(b"\"left over");
        let fields = splitter.split(line.as_bytes()).ok()?;
        Some(fields.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect())
    }

    #[test]
    fn quotes_are_undone_and_must_be_closed() {
        let comma = Delimiter::Byte(b',');
        assert_eq!(split(comma, "a, b ,,c").expect("columns"), ["a", "b", "", "c"]);
        assert_eq!(
            split(comma, r#""a,b",1,"say ""x""""#).expect("columns"),
            ["a,b", "1", r#"say "x""#]
        );
        assert_eq!(split(comma, r#"1,"""#).expect("columns"), ["1", ""]);
        assert_eq!(split(comma, "1,\"a\rb\"").expect("columns"), ["1", "a\rb"]);
        assert_eq!(split(comma, r#"1,"a"#), None);
        assert_eq!(split(comma, r#"","#), None);
        assert_eq!(
            split(Delimiter::Byte(b'\t'), "a,b\t\"c\td\"").expect("columns"),
            ["a,b", "c\td"]
        );
    }

    #[test]
    fn blanks_come_in_any_number() {
        assert_eq!(
            split(Delimiter::Blanks, "  1 \t 22  \"3 ").expect("columns"),
            ["1", "22", "\"3"]
        );
    }
}
