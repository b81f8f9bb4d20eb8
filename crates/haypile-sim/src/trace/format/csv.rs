//! Separated columns: CSV, TSV and the like.
//!
//! A record is one line. Columns that contain the delimiter are quoted with `"`, a quote inside
//! being doubled (RFC 4180), but a line break cannot be quoted: so a stray quote spoils its own
//! line and not the rest of the file. Every line has as many columns as the header, or as most of the first lines.
//! Lines that begin with `#` are comments, before the first other line and wherever they have other columns; not so
//! if all lines begin with it.
//!
//! Without a header, three numbers separated by blanks are taken for `time key size`, as
//! `AdaptSize` and webcachesim have it; otherwise the columns have to be numbered.

mod layout;
mod split;

use super::super::{Key, Request};
use super::bad::Bad;
use super::entry::{LineParser, MAX_RUN, Parsed};
use super::options::CsvOptions;
use super::{field, operation};
use layout::Layout;
use split::Splitter;

/// A parser of the lines of a CSV trace.
pub(super) struct Csv {
    layout: Layout,
    splitter: Splitter,
    /// The line that names the columns; it occurs again where files were joined.
    header: Option<Vec<u8>>,
    /// The description, in words, of the line that sets the number of columns.
    model: &'static str,
    comments: Comments,
}

/// Whether lines that begin with `#` are comments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comments {
    No,
    /// All lines, up to the first one with other columns.
    Leading,
    /// Lines with other columns than the first line.
    OfOtherColumns,
}

impl Csv {
    /// Creates a parser for a CSV trace, with the columns that its first lines and the options state. There is at least
    /// one line, and none is blank. The error names the missing column and the option that states it.
    pub(super) fn new(lines: &[&[u8]], options: &CsvOptions) -> Result<Self, String> {
        let is_comment = |line: &&&[u8]| line.starts_with(b"#");
        let comments = if lines.iter().all(|line| is_comment(&line)) {
            Comments::No
        } else {
            Comments::Leading
        };
        let lines = lines.iter().filter(|line| comments == Comments::No || !is_comment(line));
        let lines: Vec<&[u8]> = lines.copied().collect();
        let first = Self::like(lines[0], options);
        match &first {
            Ok(csv) if csv.header.is_some() => {}
            // What is wrong with the first line is not wrong with the others.
            _ => {
                let typical = typical(&lines, options);
                if typical != lines[0] {
                    let csv = Self::like(typical, options)?;
                    return Ok(Self { comments, model: "most of the first lines", ..csv });
                }
            }
        }
        Ok(Self { comments, ..first? })
    }

    /// Works out the columns from this line.
    fn like(line: &[u8], options: &CsvOptions) -> Result<Self, String> {
        let delimiter = layout::delimiter(line, options);
        let mut splitter = Splitter::new(delimiter);
        let fields = splitter.split(line).map_err(|bad| format!("first line: {bad}"))?;
        let layout = Layout::of(&fields, delimiter, options)?;
        let header = layout.has_header.then(|| line.to_vec());
        Ok(Self { layout, splitter, header, model: "the first line", comments: Comments::No })
    }

    /// Returns the number of columns in each line of the CSV trace.
    pub(super) fn columns(&self) -> usize {
        self.layout.columns
    }

    /// Whether the CSV trace has a column with the times of requests.
    pub(super) fn has_times(&self) -> bool {
        self.layout.time.is_some()
    }

    /// Returns a note that a CSV column with TTLs or expiry times is ignored, and why; `None` if no such column is
    /// ignored.
    pub(super) fn note(&self) -> Option<String> {
        if self.layout.ttl.is_some() && self.layout.time.is_none() {
            return Some("the TTLs are ignored: without times, nothing expires".to_owned());
        }
        let name = self.layout.ignored_expiry.as_ref()?;
        Some(format!("column {name} is ignored: a TTL, --columns ttl=, is a length of time"))
    }
}

/// Returns the first line that has the delimiter and the number of columns of most.
fn typical<'a>(lines: &[&'a [u8]], options: &CsvOptions) -> &'a [u8] {
    let shapes: Vec<_> = lines
        .iter()
        .map(|line| {
            let delimiter = layout::delimiter(line, options);
            (delimiter, Splitter::new(delimiter).split(line).map_or(0, |fields| fields.len()))
        })
        .collect();
    let alike = |at: usize| shapes.iter().filter(|shape| **shape == shapes[at]).count();
    let most = (0..lines.len()).rev().max_by_key(|&at| alike(at));
    lines[most.expect("there is a line")]
}

/// Parses a column that states nothing in some lines: `None` if it is empty, `-` or `-1`.
fn optional<'a>(
    text: &'a [u8],
    parse: impl Fn(&'a [u8]) -> Option<u64>,
    expected: &'static str,
) -> Result<Option<u64>, Bad<'a>> {
    if matches!(text, b"" | b"-" | b"-1") {
        return Ok(None);
    }
    parse(text).map(Some).ok_or_else(|| Bad::new(expected, text))
}

impl LineParser for Csv {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Bad<'a>> {
        if line.trim_ascii().is_empty() {
            return Ok(Parsed::Nothing);
        }
        if self.header.as_deref().is_some_and(|header| header == line.trim_ascii()) {
            return Ok(Parsed::Nothing);
        }
        let is_comment = self.comments != Comments::No && line.starts_with(b"#");
        if is_comment && self.comments == Comments::Leading {
            return Ok(Parsed::Nothing);
        }
        if self.comments == Comments::Leading {
            self.comments = Comments::OfOtherColumns;
        }
        let layout = &self.layout;
        let fields = self.splitter.split(line)?;
        if fields.len() != layout.columns {
            if is_comment {
                return Ok(Parsed::Nothing);
            }
            let expected = format!("{} columns as in {}", layout.columns, self.model);
            return Err(Bad::new(expected, line));
        }
        let key = match field::key(fields.get(layout.key)) {
            Key::Text(b"") => return Err(Bad::new("a key", line)),
            key => key,
        };
        let mut request = Request::read(key);
        if let Some(column) = layout.size {
            let text = fields.get(column);
            let size = field::decimal(text)
                .ok_or_else(|| Bad::new("a size in bytes (decimal number)", text))?;
            request.size_bytes = Some(size);
        }
        if let Some(column) = layout.op {
            let text = fields.get(column);
            request.op =
                operation::operation(text).ok_or_else(|| Bad::new(operation::EXPECTED, text))?;
        }
        if let Some(column) = layout.time {
            let text = fields.get(column);
            let time = field::time_us(text, layout.time_unit).ok_or_else(|| {
                let expected = if field::is_fractional(text) {
                    "a time below 2^64 microseconds; if its unit is not the one that was assumed, state it"
                } else {
                    "a time (number, not negative)"
                };
                Bad::new(expected, text)
            })?;
            request.time_us = Some(time);
        }
        if let Some(column) = layout.ttl {
            let text = fields.get(column);
            let parse = |text| field::time_us(text, layout.ttl_unit);
            request.ttl_us = optional(text, parse, "a TTL (number, not negative)")?;
        }
        if let Some(column) = layout.cost {
            let text = fields.get(column);
            let parse = |text| field::time_ns(text, layout.cost_unit);
            let expected = "the cost of a miss (a time: number, not negative)";
            request.cost_ns = optional(text, parse, expected)?;
        }
        let Some(column) = layout.count else { return Ok(Parsed::One(request)) };
        let text = fields.get(column);
        match field::decimal(text) {
            Some(0) => Ok(Parsed::Nothing),
            Some(1) => Ok(Parsed::One(request)),
            Some(count) if count <= MAX_RUN => Ok(Parsed::Repeat { request, count }),
            _ => Err(Bad::new(format!("a count of at most {MAX_RUN} requests"), text)),
        }
    }
}
