//! The bytes of a trace: from a file or standard input, decompressed, line by line or record by
//! record, in bounded memory.

mod compression;
mod lz4;
mod zip;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::TraceError;

pub use compression::Compression;
use compression::Decompressed;

/// Largest number of bytes at the start of a trace's input that [`Input::head`] returns.
pub(crate) const HEAD_BYTES: usize = 64 * 1024;

/// The length of the longest line of a trace that is read, in bytes without its line end. A longer line is
/// [`Line::TooLong`].
pub(crate) const MAX_LINE_BYTES: usize = 1024 * 1024;

const BUFFER_BYTES: usize = 128 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One open input of a trace, with its own buffer, so that lines and records are returned without
/// copying.
pub(crate) struct Input<'r> {
    name: PathBuf,
    /// The name of the file in an archive.
    member: Option<PathBuf>,
    compression: Compression,
    source: Box<dyn Read + 'r>,
    buffer: Vec<u8>,
    /// Start of the bytes read and not yet handed out, which are `buffer[start..end]`.
    start: usize,
    end: usize,
    /// Number of bytes handed out so far, after decompression.
    offset: u64,
    lines: u64,
    ended: bool,
}

/// One line of a trace's input, without its line end (`\n` or `\r\n`).
pub(crate) enum Line<'a> {
    Text(&'a [u8]),
    TooLong,
}

/// The result of [`Input::next_record`]: a whole binary record, or one that the end of the input cuts off.
pub(crate) enum Record<'a> {
    Whole(&'a [u8]),
    /// A record cut off by the end of the input, after this number of bytes.
    Cut(usize),
}

impl Input<'static> {
    /// Opens a trace's input: a file, or standard input for `-`.
    pub(crate) fn open(path: &Path) -> Result<Self, TraceError> {
        if is_standard_input(path) {
            return Self::from_reader(PathBuf::from("standard input"), io::stdin().lock());
        }
        check(path)?;
        let failure = |source| TraceError::Io { path: path.to_path_buf(), source };
        let file = File::open(path).map_err(failure)?;
        // Not so a named pipe, for example.
        let is_seekable = file.metadata().map_err(failure)?.is_file();
        if !is_seekable {
            return Self::from_reader(path.to_path_buf(), file);
        }
        Ok(Self::new(path.to_path_buf(), compression::decompress_file(path, file)?))
    }
}

impl<'r> Input<'r> {
    /// Creates a trace's input from any stream of bytes. `name` is used as its path, in errors and for recognition of
    /// the format.
    pub(crate) fn from_reader(name: PathBuf, reader: impl Read + 'r) -> Result<Self, TraceError> {
        let decompressed = compression::decompress(&name, reader)?;
        Ok(Self::new(name, decompressed))
    }

    fn new(name: PathBuf, decompressed: Decompressed<'r>) -> Self {
        let Decompressed { compression, plain: source, member } = decompressed;
        Self {
            name,
            member: member.map(PathBuf::from),
            compression,
            source,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            offset: 0,
            lines: 0,
            ended: false,
        }
    }

    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// Returns the file name by which the format may be recognised: that of the input, or of the file inside a zip
    /// archive.
    pub(crate) fn content_name(&self) -> &Path {
        self.member.as_deref().unwrap_or(&self.name)
    }

    /// Returns the number of bytes of the input that have been read so far, after decompression.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of lines of the input that have been read so far, which is the number of the last one,
    /// counted from 1.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// Returns the first bytes of the input that have not been read yet, up to [`HEAD_BYTES`] of them, and whether they
    /// are all that is left.
    pub(crate) fn head(&mut self) -> Result<(&[u8], bool), TraceError> {
        while self.end - self.start <= HEAD_BYTES && self.fill()? {}
        let whole = self.end - self.start <= HEAD_BYTES;
        let end = self.end.min(self.start + HEAD_BYTES);
        Ok((&self.buffer[self.start..end], whole))
    }

    /// Reads the next line of the input; `None` at the end.
    pub(crate) fn next_line(&mut self) -> Result<Option<Line<'_>>, TraceError> {
        let mut searched = 0;
        let length = loop {
            if let Some(found) =
                memchr::memchr(b'\n', &self.buffer[self.start + searched..self.end])
            {
                break searched + found;
            }
            searched = self.end - self.start;
            if searched > MAX_LINE_BYTES + 1 {
                self.skip_line()?;
                return Ok(Some(Line::TooLong));
            }
            if !self.fill()? {
                if searched == 0 {
                    return Ok(None);
                }
                break searched;
            }
        };
        let start = self.start;
        let consumed = (length + 1).min(self.end - start);
        self.consume(consumed);
        self.lines += 1;
        let mut line = &self.buffer[start..start + length];
        if self.lines == 1 {
            line = without_mark(line);
        }
        line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > MAX_LINE_BYTES {
            return Ok(Some(Line::TooLong));
        }
        Ok(Some(Line::Text(line)))
    }

    /// Reads the next `length` bytes of the input as a record; `None` at the end.
    pub(crate) fn next_record(&mut self, length: usize) -> Result<Option<Record<'_>>, TraceError> {
        while self.end - self.start < length {
            if !self.fill()? {
                let rest = self.end - self.start;
                self.consume(rest);
                return Ok((rest > 0).then_some(Record::Cut(rest)));
            }
        }
        let start = self.start;
        self.consume(length);
        Ok(Some(Record::Whole(&self.buffer[start..start + length])))
    }

    fn skip_line(&mut self) -> Result<(), TraceError> {
        self.lines += 1;
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
                self.consume(found + 1);
                return Ok(());
            }
            self.consume(self.end - self.start);
            if !self.fill()? {
                return Ok(());
            }
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Reads more behind `end`; false at the end of the input.
    fn fill(&mut self) -> Result<bool, TraceError> {
        if self.ended {
            return Ok(false);
        }
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        } else if self.end == self.buffer.len() && self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            // Only a long line gets here, and next_line gives up on it at its limit.
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(false);
                }
                Ok(read) => {
                    self.end += read;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failure(error)),
            }
        }
    }

    fn failure(&self, source: io::Error) -> TraceError {
        let path = self.name.clone();
        let compression = self.compression;
        // What has a system error number comes from the file and not from a decoder.
        if compression == Compression::None || source.raw_os_error().is_some() {
            TraceError::Io { path, source }
        } else if source.kind() == io::ErrorKind::UnexpectedEof {
            TraceError::Truncated { path, compression }
        } else {
            TraceError::Damaged { path, compression, source }
        }
    }
}

/// Checks that the path of an input exists and is not a directory.
pub(crate) fn check(path: &Path) -> Result<(), TraceError> {
    match fs::metadata(path) {
        Err(source) => Err(TraceError::Io { path: path.to_path_buf(), source }),
        // Opening a directory succeeds; only reading it fails, and with less to say.
        Ok(metadata) if metadata.is_dir() => {
            Err(TraceError::Directory { path: path.to_path_buf() })
        }
        Ok(_) => Ok(()),
    }
}

/// Returns the text without the UTF-8 byte order mark that some programs put before it.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)
}

/// Whether a path stands for standard input.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}
