//! Decompression, chosen by the first bytes and never by a name.

use std::fmt;
use std::io::{self, BufReader, Cursor, Read};

/// A compression format of an input, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    None,
    /// gzip (RFC 1952), one member or several.
    Gzip,
    /// bzip2, one stream or several.
    Bzip2,
    /// xz, one stream or several.
    Xz,
    /// Zstandard (RFC 8878), one frame or several.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "uncompressed",
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        })
    }
}

/// Bytes that tell the compression: a bzip2 header with the mark of its first block.
const MAGIC_BYTES: usize = 10;

const BUFFER_BYTES: usize = 64 * 1024;

/// Memory limit of an xz decoder. `xz -9` needs 65 MiB; only hand-made or hostile files need more
/// than this limit. The zstd decoder has a limit of its own, a window of 128 MiB.
const XZ_MEMORY_BYTES: u64 = 512 * 1024 * 1024;

impl Compression {
    /// The compression of an input that starts with these bytes ([`MAGIC_BYTES`] are enough).
    fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            // "BZh", the level, and then the mark of a block or of the end of the stream.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => {
                Self::Bzip2
            }
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            // A frame, or a skippable frame before one, as `pzstd` writes it.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// Returns the name of a compression that is not read, and the command that undoes it.
fn foreign(head: &[u8]) -> Option<(&'static str, &'static str)> {
    match head {
        [0x04, 0x22, 0x4d, 0x18, ..] => Some(("lz4", "lz4 -dc FILE")),
        [b'P', b'K', 3, 4, ..] => Some(("zip", "unzip -p FILE")),
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Some(("7z", "7z x -so FILE")),
        [0x1f, 0x9d, ..] => Some(("compress", "uncompress -c FILE")),
        _ => None,
    }
}

/// Detects the compression of a reader's bytes, and returns a reader of the decompressed bytes.
pub(super) fn decompress<'r>(
    mut reader: impl Read + 'r,
) -> io::Result<(Compression, Box<dyn Read + 'r>)> {
    let mut head = Vec::with_capacity(MAGIC_BYTES);
    reader.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut head)?;
    if let Some((name, command)) = foreign(&head) {
        let text = format!(
            "this is {name} data, which is not read: pipe it, as in {command} | haypile trace info -"
        );
        return Err(io::Error::new(io::ErrorKind::Unsupported, text));
    }
    let compression = Compression::of(&head);
    let whole = Cursor::new(head).chain(reader);
    let packed = |whole| BufReader::with_capacity(BUFFER_BYTES, whole);
    let plain: Box<dyn Read + 'r> = match compression {
        Compression::None => Box::new(whole),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed(whole))),
        Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(packed(whole))),
        Compression::Xz => {
            let stream = liblzma::stream::Stream::new_stream_decoder(
                XZ_MEMORY_BYTES,
                liblzma::stream::CONCATENATED,
            )?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(packed(whole), stream))
        }
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(packed(whole))?),
    };
    Ok((compression, plain))
}
