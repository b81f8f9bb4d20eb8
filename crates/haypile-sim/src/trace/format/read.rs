//! Reads inputs of any format into a sink.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::super::input::{self, Input, Line, MAX_LINE_BYTES, Record};
use super::super::{Key, Request, Sink, TraceError};
use super::access_log::AccessLog;
use super::address::Address;
use super::arc::Arc;
use super::bad::{BadRecord, Place};
use super::csv::Csv;
use super::entry::{LineParser, Parsed, RecordParser};
use super::integers::Integers;
use super::lirs::Lirs;
use super::options::ReadOptions;
use super::oracle_general::OracleGeneral;
use super::spc::Spc;
use super::vscsi::Vscsi;
use super::{Format, recognise};

/// Bad entries that a report describes; the others are only counted.
const DESCRIBED: usize = 10;

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadReport {
    /// The format, given or recognised.
    pub format: Format,
    /// Requests that reached the sink.
    pub requests: u64,
    /// Lines and records that were skipped.
    pub bad: u64,
    /// The first few of them.
    pub first_bad: Vec<BadRecord>,
    /// Bytes read, after decompression.
    pub bytes_read: u64,
}

/// Reads inputs, one after the other, as one trace.
///
/// An input is the path of a file, compressed (gz, bz2, xz, zstd) or not, or `-` for standard
/// input. The format is that of the options, or recognised, and the same for all.
///
/// # Errors
/// What [`TraceReader::open`] and [`TraceReader::read`] say.
pub fn read(
    inputs: &[impl AsRef<Path>],
    options: &ReadOptions,
    sink: &mut (impl Sink + ?Sized),
) -> Result<ReadReport, TraceError> {
    TraceReader::open(inputs, options)?.read(sink)
}

/// Inputs whose format is known and whose requests have not been read yet.
pub struct TraceReader<'r> {
    first: Input<'r>,
    rest: Vec<PathBuf>,
    format: Format,
    options: ReadOptions,
}

impl fmt::Debug for TraceReader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceReader")
            .field("first", &self.first.name())
            .field("rest", &self.rest)
            .field("format", &self.format)
            .finish_non_exhaustive()
    }
}

impl TraceReader<'static> {
    /// Opens the first input, finds out its format, and makes sure that the others are there.
    ///
    /// # Errors
    /// No input, standard input twice, a file that is missing, a directory, empty or damaged, or
    /// a format that cannot be told.
    pub fn open(inputs: &[impl AsRef<Path>], options: &ReadOptions) -> Result<Self, TraceError> {
        let (first, rest) = inputs.split_first().ok_or(TraceError::NoInput)?;
        let standard_inputs =
            inputs.iter().filter(|path| input::is_standard_input(path.as_ref())).count();
        if standard_inputs > 1 {
            return Err(TraceError::StandardInputTwice);
        }
        let first = Input::open(first.as_ref())?;
        let rest: Vec<_> = rest.iter().map(|path| path.as_ref().to_path_buf()).collect();
        // Better now than after an hour with the first file.
        for path in rest.iter().filter(|path| !input::is_standard_input(path)) {
            input::check(path)?;
        }
        Self::with(first, rest, options)
    }
}

impl<'r> TraceReader<'r> {
    /// Reads from anything that can be read. Errors call it `name`, and recognition looks at the
    /// name as it looks at that of a file.
    ///
    /// # Errors
    /// As for [`TraceReader::open`].
    pub fn from_reader(
        name: impl Into<PathBuf>,
        reader: impl Read + 'r,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        Self::with(Input::from_reader(name.into(), reader)?, Vec::new(), options)
    }

    fn with(
        mut first: Input<'r>,
        rest: Vec<PathBuf>,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        let format = format_of(&mut first, options)?;
        Ok(Self { first, rest, format, options: options.clone() })
    }

    /// The format, given or recognised. [`Format::Hpt`] is opened elsewhere, by its path.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Pushes every request into `sink`.
    ///
    /// # Errors
    /// The first bad line or record, unless they are skipped; a file in which everything is bad,
    /// even so; inputs without any request; formats that are not read request by request; input
    /// and output errors; and what the sink says.
    pub fn read(self, sink: &mut (impl Sink + ?Sized)) -> Result<ReadReport, TraceError> {
        let mut reading = Reading::new(self.format, self.options, sink);
        let path = self.first.name().to_path_buf();
        reading.input(self.first)?;
        for path in &self.rest {
            let mut input = Input::open(path)?;
            let found = format_of(&mut input, &reading.options)?;
            if found != self.format {
                return Err(TraceError::MixedFormats {
                    path: path.clone(),
                    found,
                    expected: self.format,
                });
            }
            reading.input(input)?;
        }
        if reading.report.requests == 0 {
            return Err(TraceError::NoRequests { path, format: self.format });
        }
        Ok(reading.report)
    }
}

/// The format an input has to be read as.
fn format_of(input: &mut Input<'_>, options: &ReadOptions) -> Result<Format, TraceError> {
    let path = input.name().to_path_buf();
    let (head, whole) = input.head()?;
    if head.is_empty() {
        return Err(TraceError::Empty { path });
    }
    match options.format {
        Some(format) => Ok(format),
        None => recognise::recognise(&path, head, whole, options)
            .map_err(|candidates| TraceError::Unrecognised { path, candidates }),
    }
}

/// What goes on from input to input.
struct Reading<'s, S: ?Sized> {
    options: ReadOptions,
    report: ReadReport,
    sink: &'s mut S,
}

/// The bad entries of one input.
struct Tally {
    path: PathBuf,
    bad: u64,
    first: Option<BadRecord>,
}

impl<'s, S: Sink + ?Sized> Reading<'s, S> {
    fn new(format: Format, options: ReadOptions, sink: &'s mut S) -> Self {
        let report =
            ReadReport { format, requests: 0, bad: 0, first_bad: Vec::new(), bytes_read: 0 };
        Self { options, report, sink }
    }

    fn input(&mut self, mut input: Input<'_>) -> Result<(), TraceError> {
        let format = self.report.format;
        let before = self.report.requests;
        let mut tally = Tally { path: input.name().to_path_buf(), bad: 0, first: None };
        let spc = Spc { read_as: self.options.spc_as };
        let (input_ref, tally_ref) = (&mut input, &mut tally);
        match format {
            Format::Spc => self.lines(input_ref, tally_ref, spc),
            Format::Arc => self.lines(input_ref, tally_ref, Arc),
            Format::Lirs => self.lines(input_ref, tally_ref, Lirs),
            Format::Address => self.lines(input_ref, tally_ref, Address),
            Format::AccessLog => self.lines(input_ref, tally_ref, AccessLog::default()),
            Format::Csv => {
                let csv = csv(input_ref, &self.options)?;
                self.lines(input_ref, tally_ref, csv)
            }
            Format::U32Le => self.records(input_ref, tally_ref, Integers::U32Le),
            Format::I32Be => self.records(input_ref, tally_ref, Integers::I32Be),
            Format::U64Le => self.records(input_ref, tally_ref, Integers::U64Le),
            Format::OracleGeneral => self.records(input_ref, tally_ref, OracleGeneral),
            Format::Vscsi => {
                let version = vscsi(input_ref)?;
                self.records(input_ref, tally_ref, version)
            }
            Format::Hpt => Err(unsupported(
                input_ref,
                format,
                "it is opened as a whole, alone, and from a file: convert other traces to join them",
            )),
            Format::Recording => {
                Err(unsupported(input_ref, format, "this version does not read recordings yet"))
            }
        }?;
        self.report.bytes_read += input.offset();
        match tally.first {
            Some(first) if self.report.requests == before => {
                Err(TraceError::AllBad { format, count: tally.bad, first })
            }
            _ => Ok(()),
        }
    }

    fn lines(
        &mut self,
        input: &mut Input<'_>,
        tally: &mut Tally,
        mut parser: impl LineParser,
    ) -> Result<(), TraceError> {
        loop {
            let number = input.lines() + 1;
            let Some(line) = input.next_line()? else { return Ok(()) };
            let Line::Text(line) = line else {
                let reason = format!("expected a line of at most {MAX_LINE_BYTES} bytes");
                self.refuse(tally, Place::Line(number), &reason)?;
                continue;
            };
            match parser.parse(line) {
                Ok(Parsed::Nothing) => {}
                Ok(Parsed::One(request)) => self.push(request)?,
                Ok(Parsed::Run { like, first, count }) => {
                    for block in first..first + count {
                        self.push(Request { key: Key::Number(block), ..like })?;
                    }
                }
                Err(bad) => self.refuse(tally, Place::Line(number), &bad)?,
            }
        }
    }

    fn records(
        &mut self,
        input: &mut Input<'_>,
        tally: &mut Tally,
        parser: impl RecordParser,
    ) -> Result<(), TraceError> {
        let length = parser.record_bytes();
        for number in 1.. {
            let place = Place::Record { number, offset_bytes: input.offset() };
            match input.next_record(length)? {
                None => break,
                Some(Record::Whole(record)) => match parser.parse(record) {
                    Ok(request) => self.push(request)?,
                    Err(bad) => self.refuse(tally, place, &bad)?,
                },
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

    #[inline]
    fn push(&mut self, request: Request<'_>) -> Result<(), TraceError> {
        self.report.requests += 1;
        self.sink.push(request)
    }

    #[cold]
    fn refuse(
        &mut self,
        tally: &mut Tally,
        place: Place,
        reason: &dyn fmt::Display,
    ) -> Result<(), TraceError> {
        let describe = || BadRecord { path: tally.path.clone(), place, reason: reason.to_string() };
        if !self.options.skip_bad {
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

fn unsupported(input: &Input<'_>, format: Format, reason: &'static str) -> TraceError {
    TraceError::Unsupported { path: input.name().to_path_buf(), format, reason }
}

fn layout_error(input: &Input<'_>, problem: String) -> TraceError {
    TraceError::Layout { path: input.name().to_path_buf(), problem }
}

/// The parser of a CSV input, which is left after its header.
fn csv(input: &mut Input<'_>, options: &ReadOptions) -> Result<Csv, TraceError> {
    let (head, whole) = input.head()?;
    let parser = match recognise::first_line(head, whole) {
        Some(line) => Csv::new(line, &options.csv),
        None if whole => Err("there are only blank lines".to_owned()),
        None => Err(format!("the first line is longer than {} bytes", input::HEAD_BYTES)),
    };
    let parser = parser.map_err(|problem| layout_error(input, problem))?;
    if parser.has_header() {
        while let Some(Line::Text(line)) = input.next_line()? {
            if !line.trim_ascii().is_empty() {
                break;
            }
        }
    }
    Ok(parser)
}

/// The version of a vscsi input.
fn vscsi(input: &mut Input<'_>) -> Result<Vscsi, TraceError> {
    Vscsi::of(input.head()?.0).ok_or_else(|| {
        layout_error(input, "the first records are of neither version 1 nor version 2".to_owned())
    })
}
