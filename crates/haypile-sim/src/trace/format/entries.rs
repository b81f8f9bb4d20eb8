//! Reads the lines or records of inputs, one by one.

use std::fmt;
use std::path::{Path, PathBuf};

use haypile_number::grouped;

use super::super::error::Limit;
use super::super::input::{self, Input, Line, MAX_LINE_BYTES, Record};
use super::super::{Key, Request, Sink, TraceError};
use super::address::Address;
use super::arc::Arc;
use super::bad::{Bad, BadPlace, BadRecord};
use super::blocks::{BlockSize, SECTOR_BYTES};
use super::csv::Csv;
use super::dataset::DataSetLines;
use super::entry::{LineParser, Parsed, RecordParser};
use super::integers::Integers;
use super::lcs::{HEADER_BYTES, Lcs};
use super::lirs::Lirs;
use super::memcached_watch::MemcachedWatch;
use super::options::{CsvOptions, ReadOptions};
use super::oracle_general::OracleGeneral;
use super::read::ReadReport;
use super::redis_monitor::RedisMonitor;
use super::spc::Spc;
use super::vscsi::Vscsi;
use super::web::WebLog;
use super::{Format, recognise};

/// Bad entries that a report describes; the others are only counted.
const DESCRIBED: usize = 10;

/// A reader that passes the requests of a trace's inputs to a sink, and counts bad lines and records.
pub(super) struct Entries<'s, S: ?Sized> {
    pub(super) options: ReadOptions,
    pub(super) report: ReadReport,
    sink: &'s mut S,
}

/// Counts of requests, and of bad lines and records, in one input of a trace.
pub(super) struct InputTally {
    pub(super) path: PathBuf,
    bad: u64,
    first: Option<BadRecord>,
    requests: u64,
    /// The latest time so far.
    latest_us: u64,
    /// Number of requests with an earlier time than one before them.
    backwards: u64,
}

impl InputTally {
    pub(super) fn new(path: &Path) -> Self {
        let path = path.to_path_buf();
        Self { path, bad: 0, first: None, requests: 0, latest_us: 0, backwards: 0 }
    }

    /// Counts `requests` of one time that reached the sink.
    #[inline]
    fn accept(&mut self, time_us: Option<u64>, requests: u64) {
        self.requests += requests;
        if let Some(time_us) = time_us {
            self.backwards += if time_us < self.latest_us { requests } else { 0 };
            self.latest_us = self.latest_us.max(time_us);
        }
    }
}

impl<'s, S: Sink + ?Sized> Entries<'s, S> {
    pub(super) fn new(format: Format, options: ReadOptions, sink: &'s mut S) -> Self {
        let report = ReadReport {
            format,
            requests: 0,
            bad: 0,
            first_bad: Vec::new(),
            bytes_read: 0,
            notes: Vec::new(),
            recording: None,
        };
        Self { options, report, sink }
    }

    /// Reads one input of a trace to its end, and passes its requests to the sink.
    pub(super) fn input(&mut self, mut input: Input<'_>) -> Result<(), TraceError> {
        let mut tally = InputTally::new(input.name());
        self.by_format(&mut input, &mut tally)?;
        self.end(&input, tally)
    }

    /// Ends the reading of one input: adds its bytes and a note on requests in the wrong order to the report; returns
    /// an error if most or all of its lines are bad.
    pub(super) fn end(&mut self, input: &Input<'_>, tally: InputTally) -> Result<(), TraceError> {
        self.report.bytes_read += input.offset();
        if tally.backwards > 0 {
            self.report.notes.push(format!(
                "{}: {} of {} requests have an earlier time than one before them; they stay in the order of \
                 the file",
                tally.path.display(),
                grouped(tally.backwards),
                grouped(tally.requests),
            ));
        }
        match tally.first {
            // Not a log of this kind, after all.
            Some(first) if !self.options.skip_bad && tally.bad > input.lines() / 2 => {
                Err(TraceError::Bad(first))
            }
            Some(first) if tally.requests == 0 => {
                Err(TraceError::AllBad { format: self.report.format, count: tally.bad, first })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn note_once(&mut self, note: Option<String>) {
        self.report.notes.extend(note.filter(|note| !self.report.notes.contains(note)));
    }

    /// Adds notes to the report on which lines of a web server's log were left out, and how others were interpreted.
    pub(super) fn note_web_log(&mut self, log: &WebLog, path: &Path) {
        for note in log.notes(path) {
            self.note_once(Some(note));
        }
    }

    fn by_format(
        &mut self,
        input: &mut Input<'_>,
        tally: &mut InputTally,
    ) -> Result<(), TraceError> {
        let format = self.report.format;
        match format {
            Format::Spc => {
                let mut spc = Spc::new(self.options.spc_as, self.options.block_size);
                self.lines(input, tally, &mut spc)?;
                self.note_once(spc.note());
                Ok(())
            }
            Format::Arc => self.lines(input, tally, &mut Arc),
            Format::Lirs => self.lines(input, tally, &mut Lirs),
            Format::Address => self.lines(input, tally, &mut Address),
            Format::RedisMonitor => {
                let mut monitor = RedisMonitor::default();
                self.lines(input, tally, &mut monitor)?;
                self.note_once(monitor.note());
                Ok(())
            }
            Format::AccessLog
            | Format::JsonLog
            | Format::W3c
            | Format::Squid
            | Format::Elb
            | Format::S3Log
            | Format::Haproxy => {
                let mut log = WebLog::of(format, &self.options).expect("one of these");
                self.lines(input, tally, &mut log)?;
                self.note_web_log(&log, &tally.path);
                Ok(())
            }
            Format::DataSet(set) if set.csv().is_none() => {
                let mut lines = DataSetLines::new(set, self.options.block_size);
                self.lines(input, tally, &mut lines)?;
                self.note_once(lines.note());
                Ok(())
            }
            Format::Csv | Format::DataSet(_) => {
                let mut csv = csv(input, format, &self.options)?;
                self.note_once(csv.note());
                self.lines(input, tally, &mut csv)
            }
            Format::U32Le => self.records(input, tally, &Integers::U32Le),
            Format::I32Be => self.records(input, tally, &Integers::I32Be),
            Format::U64Le => self.records(input, tally, &Integers::U64Le),
            Format::OracleGeneral => self.records(input, tally, &OracleGeneral),
            Format::MemcachedWatch => {
                let mut watch = MemcachedWatch::default();
                self.lines(input, tally, &mut watch)?;
                let place = BadPlace::Line(input.lines());
                self.take(Parsed::Several(watch.finish()), tally, place)?;
                self.note_once(Some(watch.note()));
                Ok(())
            }
            Format::Lcs => {
                let version = lcs(input)?;
                self.records(input, tally, &version)
            }
            Format::Vscsi => {
                let version = vscsi(input)?;
                self.records(input, tally, &version)
            }
            Format::Hpt => Err(unsupported(
                input,
                format,
                "it is opened as a whole, alone, and from a file: convert other traces to join them",
            )),
            Format::Recording => unreachable!("recordings are merged, not read one by one"),
        }
    }

    fn lines(
        &mut self,
        input: &mut Input<'_>,
        tally: &mut InputTally,
        parser: &mut impl LineParser,
    ) -> Result<(), TraceError> {
        loop {
            let number = input.lines() + 1;
            let Some(line) = input.next_line()? else { return Ok(()) };
            let Line::Text(line) = line else {
                let reason = format!("expected a line of at most {MAX_LINE_BYTES} bytes");
                self.refuse(tally, BadPlace::Line(number), &reason)?;
                continue;
            };
            match parser.parse(line) {
                Ok(parsed) => self.take(parsed, tally, BadPlace::Line(number))?,
                Err(bad) => self.refuse(tally, BadPlace::Line(number), &bad)?,
            }
        }
    }

    /// Takes the requests of a line or a record.
    #[inline]
    fn take(
        &mut self,
        parsed: Parsed<'_>,
        tally: &mut InputTally,
        place: BadPlace,
    ) -> Result<(), TraceError> {
        let limit = match parsed {
            Parsed::Nothing => None,
            Parsed::One(request) => self.try_push(request, tally)?,
            Parsed::Repeat { request, count } => self.repeat(request, count, tally)?,
            Parsed::Several(several) => {
                let mut limit = None;
                for one in several {
                    limit = self.try_push(one.request(), tally)?.or(limit);
                }
                limit
            }
            Parsed::Run { like, first, count } => {
                tally.accept(like.time_us, count);
                for block in first..first + count {
                    self.push(Request { key: Key::Number(block), ..like })?;
                }
                None
            }
        };
        match limit {
            Some(limit) => self.refuse(tally, place, &limit),
            None => Ok(()),
        }
    }

    fn records(
        &mut self,
        input: &mut Input<'_>,
        tally: &mut InputTally,
        parser: &impl RecordParser,
    ) -> Result<(), TraceError> {
        let length = parser.record_bytes();
        // Keys of the other formats are not addresses.
        let block_size = self.options.block_size.filter(|_| self.report.format == Format::Vscsi);
        for number in 1.. {
            let place = BadPlace::Record { number, offset_bytes: input.offset() };
            match input.next_record(length)? {
                None => break,
                Some(Record::Whole(record)) => {
                    let parsed = parser.parse(record).and_then(|request| match block_size {
                        Some(block_size) => in_blocks(request, block_size),
                        None => Ok(Parsed::One(request)),
                    });
                    match parsed {
                        Ok(parsed) => self.take(parsed, tally, place)?,
                        Err(bad) => self.refuse(tally, place, &bad)?,
                    }
                }
                Some(Record::Cut(rest)) => {
                    let reason = format!(
                        "expected {length} bytes, found the end of the file after {rest}: it is \
                         truncated, or of another format"
                    );
                    self.refuse(tally, place, &reason)?;
                }
            }
        }
        Ok(())
    }

    /// Takes a request; returns the limit of a trace that a single request can exceed, which makes its
    /// entry a bad one.
    #[inline]
    fn try_push(
        &mut self,
        request: Request<'_>,
        tally: &mut InputTally,
    ) -> Result<Option<Limit>, TraceError> {
        match self.sink.push(request) {
            Ok(()) => {
                tally.accept(request.time_us, 1);
                self.report.requests += 1;
                Ok(None)
            }
            Err(TraceError::Limit {
                limit: limit @ (Limit::Size { .. } | Limit::Key { .. }),
                ..
            }) => Ok(Some(limit)),
            Err(error) => Err(error),
        }
    }

    /// Passes a request to the sink `count` times, at least once; returns the limit (of its size or key) that the
    /// request exceeds, if any.
    pub(super) fn repeat(
        &mut self,
        request: Request<'_>,
        count: u64,
        tally: &mut InputTally,
    ) -> Result<Option<Limit>, TraceError> {
        let limit = self.try_push(request, tally)?;
        if limit.is_none() {
            for _ in 1..count {
                self.push(request)?;
            }
            tally.accept(request.time_us, count - 1);
        }
        Ok(limit)
    }

    #[inline]
    pub(super) fn push(&mut self, request: Request<'_>) -> Result<(), TraceError> {
        self.report.requests += 1;
        self.sink.push(request)
    }

    #[cold]
    pub(super) fn refuse(
        &mut self,
        tally: &mut InputTally,
        place: BadPlace,
        reason: &dyn fmt::Display,
    ) -> Result<(), TraceError> {
        let describe = || BadRecord { path: tally.path.clone(), place, reason: reason.to_string() };
        // A server wrote a log for weeks: a torn line does not end its reading.
        if !self.options.skip_bad && !self.report.format.is_web_log() {
            return Err(TraceError::Bad(describe()));
        }
        if self.report.first_bad.len() < DESCRIBED {
            self.report.first_bad.push(describe());
        }
        if tally.first.is_none() {
            tally.first = Some(describe());
        }
        tally.bad += 1;
        self.report.bad += 1;
        Ok(())
    }
}

/// Returns the requests for the blocks that a request for a sector and those after it touches.
fn in_blocks(
    request: Request<'static>,
    block_size: BlockSize,
) -> Result<Parsed<'static>, Bad<'static>> {
    let Key::Number(sector) = request.key else { return Ok(Parsed::One(request)) };
    let beyond = || Bad::new("blocks below 2^64", format!("{sector}").into_bytes());
    let offset = sector.checked_mul(SECTOR_BYTES).ok_or_else(beyond)?;
    let bytes = request.size_bytes.unwrap_or(0);
    let (first, count) = block_size.touched(offset, bytes).ok_or_else(beyond)?;
    let block = Request { size_bytes: Some(block_size.bytes()), ..request };
    Parsed::run(block, first, count, b"a request")
}

fn unsupported(input: &Input<'_>, format: Format, reason: &'static str) -> TraceError {
    TraceError::Unsupported { path: input.name().to_path_buf(), format, reason }
}

fn layout_error(input: &Input<'_>, problem: String) -> TraceError {
    TraceError::Layout { path: input.name().to_path_buf(), problem }
}

/// Returns whether a CSV input, of which nothing has been read yet, has a column with the times of requests.
pub(super) fn has_times(input: &mut Input<'_>, options: &ReadOptions) -> Result<bool, TraceError> {
    let (head, whole) = input.head()?;
    let lines = recognise::lines(head, whole);
    let parser = if lines.is_empty() { None } else { Csv::new(&lines, &options.csv).ok() };
    Ok(parser.is_some_and(|parser| parser.has_times()))
}

/// Creates the parser of a CSV input, from the input's first lines and the options.
pub(super) fn csv(
    input: &mut Input<'_>,
    format: Format,
    options: &ReadOptions,
) -> Result<Csv, TraceError> {
    let (head, whole) = input.head()?;
    let lines = recognise::lines(head, whole);
    if lines.is_empty() {
        let problem = if whole {
            "there are only blank lines".to_owned()
        } else {
            format!("the first line is longer than {} bytes", input::HEAD_BYTES)
        };
        return Err(layout_error(input, problem));
    }
    let of_data_set = match format {
        Format::DataSet(set) if options.csv == CsvOptions::default() => set.csv(),
        _ => None,
    };
    Csv::new(&lines, of_data_set.as_ref().unwrap_or(&options.csv))
        .map_err(|problem| TraceError::Columns { path: input.name().to_path_buf(), problem })
}

/// Reads the header of an lcs input.
fn lcs(input: &mut Input<'_>) -> Result<Lcs, TraceError> {
    let version = match input.next_record(HEADER_BYTES)? {
        Some(Record::Whole(header)) => Lcs::of(header),
        _ => None,
    };
    version.ok_or_else(|| {
        layout_error(input, "the header is not that of an .lcs file of version 1 to 8".to_owned())
    })
}

/// The version of a vscsi input.
fn vscsi(input: &mut Input<'_>) -> Result<Vscsi, TraceError> {
    Vscsi::of(input.head()?.0).ok_or_else(|| {
        layout_error(input, "the first records are of neither version 1 nor version 2".to_owned())
    })
}
