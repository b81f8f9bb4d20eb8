//! Lines and records that do not match the format.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

/// Characters of the offending text that a message shows.
const SHOWN_CHARS: usize = 40;

/// The position of a bad line or record in a trace file, for error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadPlace {
    /// Number of the line, counted from 1.
    Line(u64),
    /// A record of a binary format.
    Record {
        /// Number of the record, counted from 1.
        number: u64,
        /// Number of bytes before the record, after decompression.
        offset_bytes: u64,
    },
}

/// A line or record of a trace that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// The path of the file with the bad line or record.
    pub path: PathBuf,
    /// The position of the bad line or record in the file: the number of the line, or of the record and its first byte.
    pub place: BadPlace,
    /// A description of what the parser expected in the line or record, and of what it found instead.
    pub reason: String,
}

impl fmt::Display for BadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.place {
            BadPlace::Line(line) => write!(f, "{path}:{line}: {}", self.reason),
            BadPlace::Record { number, offset_bytes } => {
                write!(f, "{path}: record {number} at byte {offset_bytes}: {}", self.reason)
            }
        }
    }
}

/// The reason why a parser refuses a line or record of a trace. It becomes text only when it is reported, because a
/// file may have millions of bad lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bad<'a> {
    expected: Cow<'static, str>,
    found: Cow<'a, [u8]>,
}

impl<'a> Bad<'a> {
    pub(super) fn new(
        expected: impl Into<Cow<'static, str>>,
        found: impl Into<Cow<'a, [u8]>>,
    ) -> Self {
        Self { expected: expected.into(), found: found.into() }
    }
}

impl fmt::Display for Bad<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, found {}", self.expected, Shown(&self.found))
    }
}

/// A part of a trace's text, which is displayed quoted, escaped and shortened in error messages.
pub(super) struct Shown<'a>(pub(super) &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("nothing");
        }
        // No character takes more than four bytes.
        let cut = &self.0[..self.0.len().min(4 * (SHOWN_CHARS + 1))];
        let text = String::from_utf8_lossy(cut);
        f.write_str("\"")?;
        for (number, character) in text.chars().enumerate() {
            if number == SHOWN_CHARS {
                return f.write_str("\"...");
            }
            write!(f, "{}", character.escape_debug())?;
        }
        f.write_str("\"")
    }
}
