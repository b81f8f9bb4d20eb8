//! Bodies in a content coding, which have a wanted size on the wire.
//!
//! The content is that of a typed body. Its filler is as long as the coding needs it to be: letters go into blocks that
//! are not compressed, so that each takes a byte, and blanks, which compress to almost nothing, make up for the
//! difference to the size after decoding. The few bytes that are missing then are a comment in the header of gzip
//! (RFC 1952, section 2.3), and empty blocks of metadata in br (RFC 7932, section 9.2).

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};

use super::filler::Filler;
use super::format::BodyFormat;
use super::{TypedBody, gif, len_of, png, text};
use crate::site::resource::MAX_BODY_BYTES;

/// A content coding (compression) of a generated body: gzip or Brotli.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentCoding {
    /// gzip (RFC 1952).
    Gzip,
    /// br (RFC 7932). Browsers accept it over TLS alone. The content is not compressed, so that it is about as long as
    /// what is transferred.
    Brotli,
}

impl ContentCoding {
    /// Returns the name of the content coding, as `Content-Encoding` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Brotli => "br",
        }
    }
}

/// The content coding of a recorded body, and its size after decoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCoding {
    /// The content coding of the recorded body; other codings than br are taken for gzip.
    pub coding: ContentCoding,
    /// The size of the recorded body after decoding, in bytes, where it is known.
    pub decoded_bytes: Option<u64>,
}

/// The description from which a compressed response body is generated: its coding, size and content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncodedBody {
    /// The content coding (compression) of the body.
    pub coding: ContentCoding,
    /// The size of the compressed body, as it is sent, in bytes; at most [`MAX_BODY_BYTES`].
    pub bytes: u64,
    /// The description of the body before compression, whose size is that after decoding.
    pub content: TypedBody,
}

/// Header and trailer of gzip.
const GZIP_BYTES: usize = 18;
const GZIP_HAS_COMMENT: u8 = 0x10;
/// The longest block that is not compressed, and what such a block has in addition to its bytes.
const GZIP_BLOCK_BYTES: usize = 0xFFFF;
const GZIP_BLOCK_HEAD_BYTES: usize = 5;
/// More blanks may take some bytes less than fewer.
const SLACK_BYTES: usize = 16;
/// The most bytes of content for each byte on the wire. Deflate cannot have much more than ten times as many.
const MAX_RATIO: u64 = 100;
/// The most bytes that blanks are added for.
const MAX_DECODED_BYTES: u64 = 64 << 20;

const BROTLI_BLOCK_BYTES: usize = 1 << 16;
const BROTLI_BLOCK_HEAD_BYTES: usize = 3;
/// The last block, which is empty.
const BROTLI_END: u8 = 0x03;
/// A block of no metadata.
const BROTLI_NOTHING: u8 = 0x06;

/// The content in three parts: letters stand between what comes before and after them.
struct Parts {
    before: Vec<u8>,
    after: Vec<u8>,
    /// The characters that can stand between the two.
    letter: Letter,
}

#[derive(Clone, Copy, PartialEq)]
enum Letter {
    Any,
    Blank,
}

impl EncodedBody {
    /// Returns the description of a compressed body of this size as sent, and about this size after decoding; the size
    /// of `content` is set. Returns `None` if the size is too small for the files that the body loads.
    pub fn fit(
        coding: ContentCoding,
        bytes: u64,
        decoded_bytes: Option<u64>,
        content: &TypedBody,
    ) -> Option<Self> {
        if bytes > MAX_BODY_BYTES {
            return None;
        }
        let parts = Parts::of(content);
        let least = parts.before.len() + parts.after.len();
        let wire = len_of(bytes);
        let letters = match coding {
            ContentCoding::Gzip => {
                let fixed = GZIP_BYTES + parts.compressed_len(0);
                stored_within(wire.checked_sub(fixed)?)
            }
            ContentCoding::Brotli => unpacked_within(wire)?.checked_sub(least)?,
        };
        let all = (least + letters) as u64;
        let body = |decoded: u64| Self {
            coding,
            bytes,
            content: TypedBody { bytes: decoded.max(all), ..content.clone() },
        };
        if coding == ContentCoding::Brotli {
            return Some(body(all));
        }
        let most = bytes.saturating_mul(MAX_RATIO).min(MAX_DECODED_BYTES);
        let wanted = body(decoded_bytes.unwrap_or(0).min(most));
        // That many blanks may take what the children need.
        Some(if wanted.check().is_ok() { wanted } else { body(all) })
    }

    /// Returns the smallest size, as sent, of a compressed body that loads these files, in bytes.
    pub fn min_bytes(coding: ContentCoding, content: &TypedBody) -> u64 {
        let parts = Parts::of(content);
        let least = parts.before.len() + parts.after.len();
        let bytes = match coding {
            ContentCoding::Gzip => GZIP_BYTES + parts.compressed_len(0),
            ContentCoding::Brotli => least + 1 + BROTLI_BLOCK_HEAD_BYTES * brotli_blocks(least),
        };
        bytes as u64
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.content.bytes > MAX_BODY_BYTES {
            let bytes = self.content.bytes;
            return Err(format!("a content of {bytes} bytes, and at most {MAX_BODY_BYTES}"));
        }
        let least = match self.coding {
            ContentCoding::Gzip => {
                let (parts, room) = self.parts()?;
                GZIP_BYTES + parts.compressed_len(room)
            }
            ContentCoding::Brotli => {
                let decoded = len_of(self.content.bytes);
                decoded + 1 + BROTLI_BLOCK_HEAD_BYTES * brotli_blocks(decoded)
            }
        };
        if self.bytes < least as u64 {
            return Err(format!(
                "a body of {} bytes in {}; its content has at least {least}",
                self.bytes,
                self.coding.name()
            ));
        }
        self.content.check()
    }

    /// The content without its filler, and the length of the filler.
    fn parts(&self) -> Result<(Parts, usize), String> {
        let parts = Parts::of(&self.content);
        let room = len_of(self.content.bytes).checked_sub(parts.before.len() + parts.after.len());
        let room = room.ok_or("a content that is too small for its children")?;
        Ok((parts, room))
    }

    /// Generates the compressed bytes of the described body: the same each time, in one version of this program.
    pub(super) fn encode(&self) -> Vec<u8> {
        let (parts, room) = self.parts().expect("checked: the content has room");
        let wire = len_of(self.bytes);
        let filled = |letters| match parts.letter {
            Letter::Any => Filler::new(self.content.seed).letters(letters),
            Letter::Blank => vec![b' '; letters],
        };
        match self.coding {
            ContentCoding::Gzip => {
                let fixed = GZIP_BYTES + parts.compressed_len(room) + SLACK_BYTES;
                let letters = stored_within(wire.saturating_sub(fixed)).min(room);
                parts.gzip(&filled(letters), room - letters, wire)
            }
            ContentCoding::Brotli => brotli(&parts.content(&filled(room)), wire),
        }
    }
}

impl Parts {
    fn of(content: &TypedBody) -> Self {
        let file =
            |before: &[u8], letter| Self { before: before.to_vec(), after: Vec::new(), letter };
        match content.format {
            // Decoders skip what comes after the end of an image.
            BodyFormat::Png => file(&png::file(png::MIN_BYTES, &mut Filler::new(0)), Letter::Any),
            BodyFormat::Gif => file(&gif::PIXEL, Letter::Any),
            BodyFormat::Woff2 => file(text::WOFF2_SIGNATURE, Letter::Any),
            BodyFormat::Blank => file(b"", Letter::Blank),
            _ => {
                let text::Frame { before, comment: (open, close), after, .. } =
                    text::frame(content);
                let before = [before.as_str(), open].concat().into_bytes();
                let after = [close, after].concat().into_bytes();
                Self { before, after, letter: Letter::Any }
            }
        }
    }

    /// The length of both parts after compression, with this number of blanks before the second one.
    fn compressed_len(&self, blanks: usize) -> usize {
        deflate(&self.before, End::Flushed).len() + self.last(blanks).len()
    }

    fn last(&self, blanks: usize) -> Vec<u8> {
        let mut last = vec![b' '; blanks];
        last.extend(&self.after);
        deflate(&last, End::Last)
    }

    /// Makes a file of this length, which is enough.
    fn gzip(&self, letters: &[u8], blanks: usize, wire: usize) -> Vec<u8> {
        let (first, last) = (deflate(&self.before, End::Flushed), self.last(blanks));
        let mut stored = Vec::with_capacity(letters.len());
        for block in letters.chunks(GZIP_BLOCK_BYTES) {
            let length = u16::try_from(block.len()).expect("chunks of this length");
            stored.push(0);
            stored.extend(length.to_le_bytes());
            stored.extend((!length).to_le_bytes());
            stored.extend(block);
        }
        let missing = wire.saturating_sub(GZIP_BYTES + first.len() + stored.len() + last.len());
        let mut file = Vec::with_capacity(wire);
        let flags = if missing > 0 { GZIP_HAS_COMMENT } else { 0 };
        file.extend([0x1F, 0x8B, 8, flags, 0, 0, 0, 0, 0, 0xFF]);
        if missing > 0 {
            file.extend(std::iter::repeat_n(b'x', missing - 1));
            file.push(0);
        }
        file.extend(first);
        file.extend(stored);
        file.extend(last);
        let mut sum = crc32fast::Hasher::new();
        for part in [&self.before[..], letters, &vec![b' '; blanks], &self.after] {
            sum.update(part);
        }
        file.extend(sum.finalize().to_le_bytes());
        let decoded = self.before.len() + letters.len() + blanks + self.after.len();
        let decoded = u32::try_from(decoded).expect("bodies are smaller than 4 GiB");
        file.extend(decoded.to_le_bytes());
        file
    }

    fn content(&self, letters: &[u8]) -> Vec<u8> {
        [&self.before[..], letters, &self.after].concat()
    }
}

#[derive(Clone, Copy)]
enum End {
    /// At the end of a byte, so that other blocks can follow.
    Flushed,
    /// With the mark of the last block.
    Last,
}

fn deflate(bytes: &[u8], end: End) -> Vec<u8> {
    const TAKES_ALL: &str = "a vector takes all";
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect(TAKES_ALL);
    match end {
        End::Flushed if bytes.is_empty() => Vec::new(),
        End::Flushed => {
            encoder.flush().expect(TAKES_ALL);
            encoder.get_ref().clone()
        }
        End::Last => encoder.finish().expect(TAKES_ALL),
    }
}

/// The most bytes whose blocks, which are not compressed, have no more than this length.
fn stored_within(length: usize) -> usize {
    let blocks = length.div_ceil(GZIP_BLOCK_BYTES + GZIP_BLOCK_HEAD_BYTES);
    length.saturating_sub(GZIP_BLOCK_HEAD_BYTES * blocks)
}

fn brotli_blocks(bytes: usize) -> usize {
    bytes.div_ceil(BROTLI_BLOCK_BYTES).max(1)
}

/// The most bytes of content of a file of this length; `None` if it is too short for any.
fn unpacked_within(wire: usize) -> Option<usize> {
    let blocks = wire.div_ceil(BROTLI_BLOCK_BYTES + BROTLI_BLOCK_HEAD_BYTES).max(1);
    wire.checked_sub(1 + BROTLI_BLOCK_HEAD_BYTES * blocks).filter(|bytes| *bytes > 0)
}

/// Makes a file of this length of blocks that are not compressed.
fn brotli(content: &[u8], wire: usize) -> Vec<u8> {
    let mut file = Vec::with_capacity(wire);
    for (number, block) in content.chunks(BROTLI_BLOCK_BYTES).enumerate() {
        // Not the last one; four nibbles of length less one; not compressed.
        let length = u32::try_from(block.len() - 1).expect("chunks of this length");
        let head = length << 3 | 1 << 19;
        // Before all stands the bit of the default window.
        let head = if number == 0 { head << 1 } else { head };
        file.extend(&head.to_le_bytes()[..BROTLI_BLOCK_HEAD_BYTES]);
        file.extend(block);
    }
    file.resize(wire.saturating_sub(1), BROTLI_NOTHING);
    file.push(BROTLI_END);
    file
}

#[cfg(test)]
mod tests;
