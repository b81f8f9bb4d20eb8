//! Several inputs whose requests have times, as one trace in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::super::input::{Input, Line, MAX_LINE_BYTES};
use super::super::{Key, Op, Request, Sink, TraceError};
use super::Format;
use super::bad::{Bad, BadPlace};
use super::csv::Csv;
use super::entries::{Entries, InputTally, csv};
use super::entry::{LineParser, Parsed};
use super::web::WebLog;

/// Parser of a format whose lines have times.
enum TimedParser {
    Csv(Box<Csv>),
    WebLog(WebLog),
}

impl LineParser for TimedParser {
    fn parse<'a>(&'a mut self, line: &'a [u8]) -> Result<Parsed<'a>, Bad<'a>> {
        match self {
            Self::Csv(parser) => parser.parse(line),
            Self::WebLog(parser) => parser.parse(line),
        }
    }
}

/// One of the inputs, with its next request.
struct Source<'r> {
    input: Input<'r>,
    parser: TimedParser,
    tally: InputTally,
    pending: Pending,
}

/// A request that owns its key.
#[derive(Default)]
struct Pending {
    number: Option<u64>,
    text: Vec<u8>,
    size_bytes: Option<u64>,
    op: Option<Op>,
    time_us: u64,
    ttl_us: Option<u64>,
    cost_ns: Option<u64>,
    count: u64,
    line: u64,
}

impl Pending {
    fn take(&mut self, request: &Request<'_>, count: u64, line: u64) {
        self.text.clear();
        self.number = match request.key {
            Key::Number(number) => Some(number),
            Key::Text(text) => {
                self.text.extend_from_slice(text);
                None
            }
        };
        self.size_bytes = request.size_bytes;
        self.op = Some(request.op);
        self.time_us = request.time_us.unwrap_or(self.time_us);
        (self.ttl_us, self.cost_ns) = (request.ttl_us, request.cost_ns);
        (self.count, self.line) = (count, line);
    }

    fn request(&self) -> Request<'_> {
        Request {
            key: self.number.map_or(Key::Text(&self.text), Key::Number),
            size_bytes: self.size_bytes,
            op: self.op.unwrap_or(Op::Read),
            time_us: Some(self.time_us),
            ttl_us: self.ttl_us,
            cost_ns: self.cost_ns,
        }
    }
}

/// Reads several inputs whose requests have times, and passes their requests to the sink of `entries`, merged by time.
/// Of equal times the earlier input goes first, and each input keeps its own order.
pub(super) fn read<S: Sink + ?Sized>(
    inputs: Vec<Input<'_>>,
    entries: &mut Entries<'_, S>,
) -> Result<(), TraceError> {
    let mut sources = Vec::with_capacity(inputs.len());
    let mut next = BinaryHeap::new();
    for (at, mut input) in inputs.into_iter().enumerate() {
        let parser = if entries.report.format == Format::Csv {
            let parser = csv(&mut input, entries.report.format, &entries.options)?;
            entries.note_once(parser.note());
            TimedParser::Csv(Box::new(parser))
        } else {
            let log = WebLog::of(entries.report.format, &entries.options);
            TimedParser::WebLog(log.expect("CSV and logs have times"))
        };
        let tally = InputTally::new(input.name());
        let mut source = Source { input, parser, tally, pending: Pending::default() };
        if source.advance(entries)? {
            next.push(Reverse((source.pending.time_us, at)));
        }
        sources.push(source);
    }
    while let Some(Reverse((_, at))) = next.pop() {
        let source = &mut sources[at];
        let pending = &source.pending;
        let limit = entries.repeat(pending.request(), pending.count, &mut source.tally)?;
        if let Some(limit) = limit {
            entries.refuse(&mut source.tally, BadPlace::Line(pending.line), &limit)?;
        }
        if source.advance(entries)? {
            next.push(Reverse((source.pending.time_us, at)));
        }
    }
    for source in sources {
        if let TimedParser::WebLog(log) = &source.parser {
            entries.note_web_log(log, &source.tally.path);
        }
        entries.end(&source.input, source.tally)?;
    }
    Ok(())
}

impl Source<'_> {
    /// Reads up to the next request; returns whether there is one.
    fn advance<S: Sink + ?Sized>(
        &mut self,
        entries: &mut Entries<'_, S>,
    ) -> Result<bool, TraceError> {
        loop {
            let line = self.input.lines() + 1;
            let place = BadPlace::Line(line);
            let text = match self.input.next_line()? {
                None => return Ok(false),
                Some(Line::Text(text)) => text,
                Some(Line::TooLong) => {
                    let reason = format!("expected a line of at most {MAX_LINE_BYTES} bytes");
                    entries.refuse(&mut self.tally, place, &reason)?;
                    continue;
                }
            };
            match self.parser.parse(text) {
                Ok(Parsed::One(request)) => {
                    self.pending.take(&request, 1, line);
                    return Ok(true);
                }
                Ok(Parsed::Repeat { request, count }) => {
                    self.pending.take(&request, count, line);
                    return Ok(true);
                }
                Ok(Parsed::Nothing) => {}
                Ok(Parsed::Run { .. } | Parsed::Several(_)) => {
                    unreachable!("no format that is merged has them")
                }
                Err(bad) => entries.refuse(&mut self.tally, place, &bad)?,
            }
        }
    }
}
