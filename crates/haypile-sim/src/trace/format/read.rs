//! Reads inputs of any format into a sink.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::super::input::{self, Input};
use super::super::{Sink, TraceError};
use super::bad::BadRecord;
use super::entries::{self, Entries};
use super::options::ReadOptions;
use super::recording::{self, RecordingSummary};
use super::{Format, merge, recognise};

/// A report on the reading of a trace: counts of requests, bad lines, and notes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadReport {
    /// The format of the trace that was read, stated by the user or recognised.
    pub format: Format,
    /// Number of requests of the trace that were passed to the sink.
    pub requests: u64,
    /// Number of bad lines and records that were skipped in the trace.
    pub bad: u64,
    /// The first few bad lines and records that were skipped in the trace.
    pub first_bad: Vec<BadRecord>,
    /// Number of bytes of the trace that were read, counted after decompression.
    pub bytes_read: u64,
    /// Notes on the inputs of the trace, such as that a recording has no end mark.
    pub notes: Vec<String>,
    /// The summary of the trace's recordings; `None` if the trace is not a recording.
    pub recording: Option<RecordingSummary>,
}

/// Reads several inputs as one trace, and passes its requests to a sink. Recordings, logs of web servers and CSV with
/// times are merged by time, and others are read one after the other.
///
/// An input is the path of a file, compressed (gz, bz2, xz, zstd, lz4, zip) or not, or `-` for standard
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

/// Inputs of a trace whose format is known and whose requests have not been read yet.
pub struct TraceReader<'r> {
    first: Input<'r>,
    rest: Vec<PathBuf>,
    /// The empty inputs before the first one with content.
    empty: Vec<PathBuf>,
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
    /// Opens the first input of a trace, determines its format, and checks that the other inputs
    /// exist.
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
    /// Creates a reader of a trace from any stream of bytes. `name` is its name in errors, and its file name for
    /// recognition of the format.
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
        mut rest: Vec<PathBuf>,
        options: &ReadOptions,
    ) -> Result<Self, TraceError> {
        let mut empty = Vec::new();
        while !rest.is_empty() && first.head()?.0.is_empty() {
            empty.push(first.name().to_path_buf());
            first = Input::open(&rest.remove(0))?;
        }
        let format = format_of(&mut first, options)?;
        Ok(Self { first, rest, empty, format, options: options.clone() })
    }

    /// Returns the format of the trace, stated by the user or recognised. [`Format::Hpt`] is opened by its path
    /// instead.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Passes every request of the trace to a sink.
    ///
    /// # Errors
    /// The first bad line or record, unless they are skipped; a file in which everything is bad,
    /// even so; inputs without any request; formats that are not read request by request; input
    /// and output errors; and what the sink says.
    pub fn read(self, sink: &mut (impl Sink + ?Sized)) -> Result<ReadReport, TraceError> {
        let mut entries = Entries::new(self.format, self.options, sink);
        let path = self.first.name().to_path_buf();
        let empty = self.empty.iter().map(|path| format!("{}: the file is empty", path.display()));
        entries.report.notes.extend(empty);
        let mut recordings = Vec::new();
        // CSV and logs are merged by time, if all of them have times.
        let mut timed = Vec::new();
        let mut first = self.first;
        let mut is_timed = !self.rest.is_empty() && has_times(&mut first, &entries)?;
        if self.format == Format::Recording {
            recordings.push(first);
        } else if is_timed {
            timed.push(first);
        } else {
            entries.input(first)?;
        }
        for path in &self.rest {
            let mut input = Input::open(path)?;
            if self.format == Format::Recording && input.head()?.0.is_empty() {
                // A process that was killed before it wrote anything does not spoil the others.
                recordings.push(input);
                continue;
            }
            if input.head()?.0.is_empty() {
                // A log of today, say, that was begun a moment ago.
                entries.report.notes.push(format!("{}: the file is empty", path.display()));
                continue;
            }
            let found = format_of(&mut input, &entries.options)?;
            if found != self.format {
                return Err(TraceError::MixedFormats {
                    path: path.clone(),
                    found,
                    expected: self.format,
                });
            }
            if self.format == Format::Recording {
                recordings.push(input);
            } else if is_timed && has_times(&mut input, &entries)? {
                timed.push(input);
            } else {
                if is_timed {
                    entries.report.notes.push(format!(
                        "{}: the requests have no times, so the files are read one after the other",
                        path.display()
                    ));
                }
                is_timed = false;
                for input in timed.drain(..) {
                    entries.input(input)?;
                }
                entries.input(input)?;
            }
        }
        if !timed.is_empty() {
            let otherwise = match self.format {
                Format::Csv => "; --columns time=none reads them one after the other",
                _ => "",
            };
            entries.report.notes.push(format!(
                "{} files are merged by the times of their requests{otherwise}",
                timed.len()
            ));
            merge::read(timed, &mut entries)?;
        }
        if self.format == Format::Recording {
            recording::read(recordings, &mut entries)?;
        }
        if entries.report.requests == 0 {
            let notes = entries.report.notes;
            return Err(TraceError::NoRequests { path, format: self.format, notes });
        }
        Ok(entries.report)
    }
}

/// Whether an input is of a format that is merged by time, and has times.
fn has_times<S: Sink + ?Sized>(
    input: &mut Input<'_>,
    entries: &Entries<'_, S>,
) -> Result<bool, TraceError> {
    match entries.report.format {
        Format::Csv => entries::has_times(input, &entries.options),
        format if format.is_web_log() => recognise::has_times(input, format, &entries.options),
        _ => Ok(false),
    }
}

/// The format an input has to be read as.
fn format_of(input: &mut Input<'_>, options: &ReadOptions) -> Result<Format, TraceError> {
    let path = input.name().to_path_buf();
    let content_name = input.content_name().to_path_buf();
    let (head, whole) = input.head()?;
    if head.is_empty() {
        return Err(TraceError::Empty { path });
    }
    match options.format {
        Some(format) => Ok(format),
        None => recognise::recognise(&content_name, head, whole, options).map_err(|candidates| {
            let (begin, recipe) = recognise::recipe(head, whole);
            TraceError::Unrecognised { path, candidates, begin, recipe }
        }),
    }
}
