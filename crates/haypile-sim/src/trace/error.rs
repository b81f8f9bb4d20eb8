//! Errors of traces.

use std::io;
use std::path::PathBuf;

use super::format::{BadRecord, Format};
use super::hpt::HptError;
use super::input::Compression;

/// The error of a trace that cannot be read, written or used, such as a bad line in its file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A temporary file, which holds what does not fit into memory, failed.
    #[error(
        "{}: cannot keep a trace in a temporary file: {source}; name a directory with more room in \
         the environment variable TMPDIR",
        dir.display()
    )]
    Temporary {
        /// The directory of temporary files.
        dir: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not a usable `.hpt` file.
    #[error("{}: {source}", path.display())]
    Hpt {
        /// The file, or the name its bytes were given.
        path: PathBuf,
        /// The reason why the file is unusable.
        source: HptError,
    },
    /// The trace's column of next uses contradicts its requests.
    #[error(
        "the trace's column of next uses is wrong: it says that the key of request {request} is \
         next requested {}, but that is {}; convert the original trace again",
        at(*announced),
        at(*actual)
    )]
    NextUse {
        /// The first wrong request, counted from 0.
        request: u64,
        /// The request that it announces; `None` for never.
        announced: Option<u64>,
        /// The next request for the same key; `None` for never.
        actual: Option<u64>,
    },
    /// The share of writes is outside 0 to 1.
    #[error("the share of writes is {share}; name a number from 0 to 1")]
    Share {
        /// The requested share.
        share: f64,
    },
    /// The block size is not a multiple of a sector.
    #[error(
        "blocks cannot have {bytes} bytes; their size has to be a multiple of 512 bytes, such as \
         4KiB"
    )]
    BlockSize {
        /// The requested size.
        bytes: u64,
    },
    /// The rate of a sample is not between 0 and 1.
    #[error("the share of keys to sample is {rate}; name a number between 0 and 1, such as 0.01")]
    Rate {
        /// The requested rate.
        rate: f64,
    },
    /// A sample was asked of a sample.
    #[error("this trace is a sample already; take the other sample from the whole trace")]
    Resampled,
    /// A request goes beyond what a trace can hold.
    #[error("request {request} of the trace exceeds a limit: {limit}")]
    Limit {
        /// The number of the request, counted from 0.
        request: u64,
        /// The limit.
        limit: Limit,
    },
    /// A trace could not be written.
    #[error("cannot write the trace: {0}")]
    Write(#[source] io::Error),
    /// The receiver of the requests asked for an end.
    #[error("reading the trace was interrupted")]
    Interrupted,
    /// No input was named.
    #[error("no trace to read; name a file, or '-' for standard input")]
    NoInput,
    /// Standard input was named more than once.
    #[error("standard input ('-') can be read only once; name it once")]
    StandardInputTwice,
    /// A directory was named where a file belongs.
    #[error("{} is a directory; name the trace files in it", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
    },
    /// The compressed data ends before its end mark.
    #[error(
        "{}: the {compression} data is truncated; fetch or compress the file again",
        path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The compression of the file.
        compression: Compression,
    },
    /// The compressed data does not decompress.
    #[error(
        "{}: the {compression} data is damaged ({source}); fetch or compress the file again",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The compression of the file.
        compression: Compression,
        /// The decoder's error.
        source: io::Error,
    },
    /// An archive does not have one file that can be read.
    #[error("{}: {problem}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// The problem, and the way to read a file of the archive.
        problem: String,
    },
    /// The file holds no bytes.
    #[error("{} is empty; a trace has at least one request", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The input holds bytes but no request.
    #[error(
        "{} contains no request when read as {format}{}{}",
        path.display(),
        if notes.is_empty() { "" } else { ": " },
        notes.join("; ")
    )]
    NoRequests {
        /// The first file.
        path: PathBuf,
        /// The format in which the file was read.
        format: Format,
        /// Remarks about the files, such as that one is cut off.
        notes: Vec<String>,
    },
    /// A name is not in the list of known names.
    #[error("unknown {what} '{name}' (known: {allowed})")]
    UnknownName {
        /// The kind of name: `trace format`, `time unit`, ...
        what: &'static str,
        /// The name.
        name: String,
        /// All known names.
        allowed: String,
    },
    /// The trace has only deletions, which the written form leaves out.
    #[error(
        "the trace has only deletions, which this format cannot express; write an .hpt file \
         instead"
    )]
    OnlyDeletes,
    /// Two columns were named for one role.
    #[error("the role '{role}' is given to two columns; give it to one")]
    RoleTwice {
        /// The role.
        role: String,
    },
    /// The format cannot be recognised from name and content.
    #[error(
        "{}: cannot recognise the format from the file's name or content, which begins with \
         {begin}; {recipe}; or state one of {}",
        path.display(),
        names(candidates)
    )]
    Unrecognised {
        /// The file.
        path: PathBuf,
        /// The formats that the content could be.
        candidates: Vec<Format>,
        /// The beginning of the content, as a message can show it.
        begin: String,
        /// The nearest way of reading it.
        recipe: &'static str,
    },
    /// Files of different formats were given as one trace.
    #[error(
        "{} looks like {found}, but the files before it like {expected}; one trace has one \
        format; state it if the file is {expected} nonetheless",
        path.display()
    )]
    MixedFormats {
        /// The file that differs.
        path: PathBuf,
        /// The format of that file.
        found: Format,
        /// The format of the files before it.
        expected: Format,
    },
    /// The format is not read request by request.
    #[error("{}: {format} cannot be read here: {reason}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The format.
        format: Format,
        /// The reason, and the way to read such a file.
        reason: &'static str,
    },
    /// The columns of a CSV file cannot be determined.
    #[error("{}: {problem}", path.display())]
    Columns {
        /// The file.
        path: PathBuf,
        /// The missing or ambiguous column, and an option that states it.
        problem: String,
    },
    /// The layout of a file cannot be determined.
    #[error("{}: {problem}", path.display())]
    Layout {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A line or record does not match the format.
    #[error("{0}")]
    Bad(BadRecord),
    /// No line or record of a file matches the format.
    #[error(
        "no line or record of this file can be read as {format}: the first of {count} bad ones is \
         {first}"
    )]
    AllBad {
        /// The format in which the file was read.
        format: Format,
        /// The number of lines or records.
        count: u64,
        /// The first bad line or record.
        first: BadRecord,
    },
}

fn at(request: Option<u64>) -> String {
    request.map_or_else(|| "never".to_owned(), |request| format!("at request {request}"))
}

fn names(formats: &[Format]) -> String {
    formats.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ")
}

impl TraceError {
    /// Creates an error about a temporary file that cannot be created, written or mapped.
    pub(crate) fn temporary(source: io::Error) -> Self {
        Self::Temporary { dir: std::env::temp_dir(), source }
    }
}

/// A limit of a trace that an input exceeds: of requests, keys, or the length of a value or key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Limit {
    /// 2^32 - 2 requests.
    #[error("a trace holds at most 4,294,967,294 requests; split it")]
    Requests,
    /// 2^32 - 2 keys.
    #[error("a trace holds at most 4,294,967,294 distinct keys; split it")]
    Keys,
    /// 2^32 - 1 bytes of one value.
    #[error("a value of {bytes} bytes is above a trace's limit of 4,294,967,295 bytes")]
    Size {
        /// The requested size.
        bytes: u64,
    },
    /// 65,535 bytes of one key.
    #[error("a key of {bytes} bytes is above a trace's limit of 65,535 bytes")]
    Key {
        /// The length of the key.
        bytes: usize,
    },
}
