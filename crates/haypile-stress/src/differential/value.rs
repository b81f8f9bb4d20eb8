//! Values of all sorts.

use std::fmt;
use std::rc::Rc;

use crate::filler;

/// First bytes of values that a part of the engine, or the protocol of a server, could mistake for
/// its own.
pub(super) const HEADS: [&[u8]; 12] = [
    // Marks of compress=: stored, LZ4, Zstandard, and a method that nobody has.
    b"\xF9hp\xF9",
    b"\xF9hp\xF9\x00",
    b"\xF9hp\xF9\x01\x80\x80\x04",
    b"\xF9hp\xF9\x02\x05\x00\x00\x00\x00",
    b"\xF9hp\xF9\xFF",
    // The compressed formats themselves.
    b"\x28\xB5\x2F\xFD",
    b"\x04\x22\x4D\x18",
    b"VA 3 c1\r\nEND\r\n",
    b"$-1\r\n+OK\r\n",
    b"-0",
    b"1\0",
    b"\0\0\0\0\0\0\0\0",
];

/// Last bytes of values that the engine could mistake for its own: trailers of copies in upper
/// levels, whose mark is `hpt`.
pub(super) const TAILS: [&[u8]; 3] = [
    b"hpt",
    b"\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01hpt",
    b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x06hpt",
];

/// The description of a random value, from which its bytes are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A value of decimal digits.
    Number(u64),
    Bytes {
        /// Distinguishes the value from all others of the run.
        identity: u64,
        bytes: usize,
        head: &'static [u8],
        tail: &'static [u8],
        /// Whether compression shortens it.
        repeats: bool,
    },
}

impl Value {
    /// Returns the bytes of the described value.
    pub(super) fn build(self) -> Rc<[u8]> {
        match self {
            Self::Number(number) => number.to_string().into_bytes().into(),
            Self::Bytes { identity, bytes, head, tail, repeats } => {
                let head = &head[..head.len().min(bytes)];
                let tail = &tail[..tail.len().min(bytes - head.len())];
                let middle = bytes - head.len() - tail.len();
                let mut value = Vec::with_capacity(bytes);
                value.extend_from_slice(head);
                if repeats {
                    let period = filler::slice(identity, 61);
                    value.extend(period.iter().copied().cycle().take(middle));
                } else {
                    value.extend_from_slice(filler::slice(identity, middle));
                }
                value.extend_from_slice(tail);
                value.into()
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "'{number}'"),
            Self::Bytes { identity, bytes, head, tail, repeats } => {
                write!(f, "{bytes} bytes (#{identity}")?;
                if !head.is_empty() {
                    write!(f, ", from '{}'", head.escape_ascii())?;
                }
                if !tail.is_empty() {
                    write!(f, ", to '{}'", tail.escape_ascii())?;
                }
                f.write_str(if *repeats { ", repeating)" } else { ")" })
            }
        }
    }
}

/// Returns a short description of a value's bytes, for messages.
pub(super) fn describe(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(24)];
    let more = if bytes.len() > shown.len() { "…" } else { "" };
    format!("{} bytes '{}{more}'", bytes.len(), shown.escape_ascii())
}
