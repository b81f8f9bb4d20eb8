//! Logs whose `#Fields:` names their columns: the W3C's extended log format, as IIS, `CloudFront` and other servers write it.
//!
//! Another line `#Fields:` within a file names the columns of the lines after it. The key is the host, if the log has it, and the
//! URL. The time is that of the columns `date` and `time`, in UTC; without `date` the day is that of the last line `#Date:`.

use super::super::bad::Bad;
use super::quoted::{Columns, Doubled};
use super::{Exchange, Line, Lines, Why, size, status, time};

#[derive(Debug, Default)]
pub(super) struct W3c {
    layout: Option<Layout>,
    /// The date of the last `#Date:` line.
    date: Vec<u8>,
    /// Whether the log is `CloudFront`'s, whose sizes include headers.
    is_cloudfront: bool,
}

/// The columns, by their numbers.
#[derive(Debug, Default)]
struct Layout {
    columns: usize,
    method: Option<usize>,
    host: Option<usize>,
    target: Option<usize>,
    query: Option<usize>,
    status: Option<usize>,
    size: Option<usize>,
    date: Option<usize>,
    time: Option<usize>,
    cache: Option<usize>,
}

impl Layout {
    fn of(names: &[u8]) -> Self {
        let names: Vec<&[u8]> = Columns(names).collect();
        let find = |wanted: &[&str]| {
            let mut wanted = wanted.iter();
            wanted.find_map(|wanted| {
                names.iter().position(|name| name.eq_ignore_ascii_case(wanted.as_bytes()))
            })
        };
        Self {
            columns: names.len(),
            method: find(&["cs-method"]),
            host: find(&["x-host-header", "cs(Host)", "cs-host", "cs-header(Host)"]),
            target: find(&["cs-uri", "cs-uri-stem"]),
            query: find(&["cs-uri"]).is_none().then(|| find(&["cs-uri-query"])).flatten(),
            status: find(&["sc-status", "c-status"]),
            size: find(&["sc-bytes"]),
            date: find(&["date", "date-local"]),
            time: find(&["time", "time-local"]),
            cache: find(&["x-edge-result-type", "s-action", "x-cache-status"]),
        }
    }
}

impl Lines for W3c {
    fn read<'a>(&'a mut self, line: &'a [u8]) -> Result<Line<'a>, Bad<'a>> {
        if let Some(directive) = line.strip_prefix(b"#") {
            self.directive(directive);
            return Ok(Line::Nothing);
        }
        let Some(layout) = &self.layout else {
            return Err(Bad::new("a line #Fields: before the first request", line));
        };
        let (Some(target), Some(status_column)) = (layout.target, layout.status) else {
            return Err(Bad::new("the columns cs-uri-stem and sc-status in #Fields:", line));
        };
        // A tab separates columns that may be empty or have blanks.
        let columns: Vec<&[u8]> = if line.contains(&b'\t') {
            line.split(|&byte| byte == b'\t').map(<[u8]>::trim_ascii).collect()
        } else {
            Doubled(line).collect()
        };
        if columns.len() != layout.columns {
            return Err(Bad::new(format!("{} columns as in #Fields:", layout.columns), line));
        }
        let at = |column: Option<usize>| {
            column.map(|at| columns[at]).filter(|text| !matches!(*text, b"" | b"-"))
        };
        let (Some(target), Some(status_text)) = (at(Some(target)), at(Some(status_column))) else {
            return Ok(Line::LeftOut(Why::NotHttp));
        };
        let date = at(layout.date).unwrap_or(&self.date);
        let time_us = at(layout.time).and_then(|time| time::of_day(date, time));
        Ok(Line::Exchange(Exchange {
            // A log without a method is one of reads.
            method: layout.method.map_or(b"GET", |_| at(layout.method).unwrap_or_default()),
            host: at(layout.host),
            target,
            query: at(layout.query),
            status: status(status_text)?,
            size_bytes: at(layout.size).map_or(Ok(None), size)?,
            time_us,
            was_hit: at(layout.cache).and_then(super::was_hit),
            cost_ns: None,
        }))
    }

    fn counts_headers(&self) -> bool {
        self.is_cloudfront
    }
}

impl W3c {
    fn directive(&mut self, text: &[u8]) {
        let Some((name, value)) = super::split_at_byte(text, b':') else { return };
        if name.eq_ignore_ascii_case(b"fields") {
            self.layout = Some(Layout::of(value));
            self.is_cloudfront |= memchr::memmem::find(value, b"x-edge-").is_some();
        } else if name.eq_ignore_ascii_case(b"date") || name.eq_ignore_ascii_case(b"start-date") {
            self.date = Columns(value).next().unwrap_or_default().to_vec();
        }
    }
}
