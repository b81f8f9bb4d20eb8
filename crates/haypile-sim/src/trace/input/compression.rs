//! Decompression, chosen by the first bytes and never by a name.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek};
use std::path::Path;

use super::lz4::{self, Lz4Reader};
use super::zip;
use crate::trace::TraceError;

/// The compression format of a trace file, such as gzip or Zstandard, or none.
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
    /// lz4 (its frames, not its blocks alone), one frame or several.
    Lz4,
    /// A zip archive with one file, stored or compressed with deflate.
    Zip,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "uncompressed",
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
            Self::Lz4 => "lz4",
            Self::Zip => "zip",
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
        if head.starts_with(&lz4::MAGIC) {
            return Self::Lz4;
        }
        if zip::MAGICS.iter().any(|magic| head.starts_with(magic)) {
            return Self::Zip;
        }
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
        [0x02, 0x21, 0x4c, 0x18, ..] => Some(("legacy lz4", "lz4 -dc FILE")),
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Some(("7z", "7z x -so FILE")),
        [0x1f, 0x9d, ..] => Some(("compress", "uncompress -c FILE")),
        _ => None,
    }
}

/// A stream of decompressed bytes of a trace's input.
pub(super) struct Decompressed<'r> {
    pub(super) compression: Compression,
    pub(super) plain: Box<dyn Read + 'r>,
    /// The name of the file inside a zip archive; `None` for other inputs.
    pub(super) member: Option<String>,
}

/// Detects the compression of a stream and returns its decompressed bytes. A zip archive is copied to a temporary file.
pub(super) fn decompress<'r>(
    name: &Path,
    mut stream: impl Read + 'r,
) -> Result<Decompressed<'r>, TraceError> {
    let (head, compression) = detect(&mut stream).map_err(|source| failure(name, source))?;
    let whole = Cursor::new(head).chain(stream);
    if compression == Compression::Zip {
        return archived(name, zip::spool(name, whole)?);
    }
    let plain = plain(compression, whole).map_err(|source| failure(name, source))?;
    Ok(Decompressed { compression, plain, member: None })
}

/// Detects the compression of a seekable file and returns its decompressed bytes.
pub(super) fn decompress_file(
    name: &Path,
    mut file: File,
) -> Result<Decompressed<'static>, TraceError> {
    let (_, compression) = detect(&mut file).map_err(|source| failure(name, source))?;
    file.rewind().map_err(|source| failure(name, source))?;
    if compression == Compression::Zip {
        return archived(name, file);
    }
    let plain = plain(compression, file).map_err(|source| failure(name, source))?;
    Ok(Decompressed { compression, plain, member: None })
}

fn archived(name: &Path, file: File) -> Result<Decompressed<'static>, TraceError> {
    let (plain, member): (Box<dyn Read>, _) = match zip::open(name, file)? {
        Some((plain, member)) => (Box::new(plain), Some(member)),
        None => (Box::new(io::empty()), None),
    };
    Ok(Decompressed { compression: Compression::Zip, plain, member })
}

fn failure(name: &Path, source: io::Error) -> TraceError {
    TraceError::Io { path: name.to_path_buf(), source }
}

/// Reads the first bytes of `reader` and returns them with the compression that they tell.
fn detect(reader: &mut impl Read) -> io::Result<(Vec<u8>, Compression)> {
    let mut head = Vec::with_capacity(MAGIC_BYTES);
    reader.take(MAGIC_BYTES as u64).read_to_end(&mut head)?;
    if let Some((name, command)) = foreign(&head) {
        let text = format!(
            "this is {name} data, which is not read: pipe it, as in {command} | haypile trace info -"
        );
        return Err(io::Error::new(io::ErrorKind::Unsupported, text));
    }
    let compression = Compression::of(&head);
    Ok((head, compression))
}

/// Returns the decompressed bytes of `packed`, which is not an archive.
fn plain<'r>(compression: Compression, packed: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    if compression == Compression::None {
        return Ok(Box::new(packed));
    }
    let packed = BufReader::with_capacity(BUFFER_BYTES, packed);
    Ok(match compression {
        Compression::None | Compression::Zip => Box::new(packed),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(packed)),
        Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(packed)),
        Compression::Xz => {
            let stream = liblzma::stream::Stream::new_stream_decoder(
                XZ_MEMORY_BYTES,
                liblzma::stream::CONCATENATED,
            )?;
            Box::new(liblzma::bufread::XzDecoder::new_stream(packed, stream))
        }
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(packed)?),
        Compression::Lz4 => Box::new(Lz4Reader::new(packed)),
    })
}
