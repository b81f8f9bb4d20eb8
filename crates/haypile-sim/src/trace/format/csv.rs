//! Separated columns: CSV, TSV and the like.
//!
//! A record is one line. Columns that contain the delimiter are quoted with `"`, a quote inside
//! being doubled (RFC 4180), but a line break cannot be quoted: so a stray quote spoils its own
//! line and not the rest of the file. Every line has as many columns as the first.
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

/// Reads the lines after the header.
pub(super) struct Csv {
    layout: Layout,
    splitter: Splitter,
}

impl Csv {
    /// Works out the columns from the first line that is not blank. The error says what is
    /// missing and what would state it.
    pub(super) fn new(first_line: &[u8], options: &CsvOptions) -> Result<Self, String> {
        let delimiter = layout::delimiter(first_line, options);
        let mut splitter = Splitter::new(delimiter);
        let fields = splitter.split(first_line).map_err(|bad| format!("first line: {bad}"))?;
        let layout = Layout::of(&fields, delimiter, options)?;
        Ok(Self { layout, splitter })
    }

    /// Number of columns of each line.
    pub(super) fn columns(&self) -> usize {
        self.layout.columns
    }

    /// Whether the requests have times.
    pub(super) fn has_times(&self) -> bool {
        self.layout.time.is_some()
    }

    /// Returns a note about a column that a reader of the results might take to count.
    pub(super) fn note(&self) -> Option<String> {
        let name = self.layout.ignored_ttl.as_ref()?;
        Some(format!("column {name} is ignored: entries do not expire in a simulation"))
    }

    /// Whether the first line names the columns instead of being a request.
    pub(super) fn has_header(&self) -> bool {
        self.layout.has_header
    }
}

impl LineParser for Csv {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Bad<'a>> {
        if line.trim_ascii().is_empty() {
            return Ok(Parsed::Nothing);
        }
        let layout = &self.layout;
        let fields = self.splitter.split(line)?;
        if fields.len() != layout.columns {
            let expected = format!("{} columns as in the first line", layout.columns);
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
