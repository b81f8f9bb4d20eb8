//! Lines of the dump to load.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, bail};

use crate::output::progress::Progress;

/// The input of `haypile load`: a file or standard input.
pub(super) struct LoadInput {
    /// The name of the input in messages: the file's path, or `standard input`.
    pub(super) name: String,
    reader: Box<dyn BufRead + Send>,
    /// Whether the rest of a too long line comes next.
    in_line: bool,
    /// Total size, if it is known.
    total_bytes: Option<u64>,
}

/// A line of the input of `haypile load`, or the fact that it is too long.
pub(super) enum Piece<'a> {
    /// A line without its end.
    Whole(&'a [u8]),
    /// A line longer than the limit.
    TooLong,
}

impl LoadInput {
    /// Opens the input of `haypile load`: a file, or standard input for `-`.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            let reader = Box::new(BufReader::new(io::stdin()));
            let name = "standard input".to_owned();
            return Ok(Self { name, reader, in_line: false, total_bytes: None });
        }
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| name.clone())?;
        let metadata = file.metadata().with_context(|| name.clone())?;
        if metadata.is_dir() {
            bail!("{name} is a directory; name the file that dump wrote");
        }
        let total_bytes = metadata.is_file().then_some(metadata.len());
        Ok(Self { name, reader: Box::new(BufReader::new(file)), in_line: false, total_bytes })
    }

    /// Returns a progress bar that counts the bytes that `haypile load` has read.
    pub(super) fn progress(&self) -> Progress {
        let what = format!("loading {}", self.name);
        match self.total_bytes {
            Some(bytes) => Progress::towards(bytes, what),
            None => Progress::counting(what, "bytes"),
        }
    }

    /// Reads the next line of a dump into `buffer`, at most one byte more than the limit.
    pub(super) fn next<'a>(
        &mut self,
        buffer: &'a mut Vec<u8>,
        limit_bytes: u64,
    ) -> io::Result<Option<Piece<'a>>> {
        buffer.clear();
        if self.in_line {
            self.reader.skip_until(b'\n')?;
            self.in_line = false;
        }
        self.reader.by_ref().take(limit_bytes + 1).read_until(b'\n', buffer)?;
        if buffer.is_empty() {
            return Ok(None);
        }
        if buffer.last() == Some(&b'\n') {
            buffer.pop();
        } else if buffer.len() as u64 > limit_bytes {
            // The rest, which may never end, is skipped only when the next line is read.
            self.in_line = true;
            return Ok(Some(Piece::TooLong));
        }
        Ok(Some(Piece::Whole(buffer)))
    }
}
