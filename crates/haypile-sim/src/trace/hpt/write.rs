//! Assembles columns into an image.

use std::io::{self, Write};
use std::path::Path;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};
use zerocopy::{FromZeros, IntoBytes};

use super::layout::{
    ALIGNMENT, BYTE_ORDER, CHECKED_HEADER_BYTES, ColumnType, DirectoryEntry, ENTRY_BYTES,
    HEADER_BYTES, Header, MAGIC, VERSION,
};
use crate::trace::TraceError;
use crate::trace::bytes::Bytes;
use crate::whole_file;

/// The content of a trace from which the bytes of an `.hpt` file are assembled: the numbers of requests and keys, and
/// the columns.
pub(crate) struct Parts<'a> {
    pub(crate) requests: usize,
    pub(crate) keys: u32,
    /// The columns with their bytes, in the order of the file.
    pub(crate) columns: Vec<(ColumnType, &'a [u8])>,
}

impl Parts<'_> {
    fn head(&self) -> Vec<u8> {
        let mut offset = (HEADER_BYTES + self.columns.len() * ENTRY_BYTES) as u64;
        let mut directory = Vec::new();
        for &(kind, bytes) in &self.columns {
            offset = offset.next_multiple_of(ALIGNMENT as u64);
            let entry = DirectoryEntry {
                kind: kind.number().into(),
                width: kind.width().into(),
                reserved: 0.into(),
                offset: offset.into(),
                bytes: (bytes.len() as u64).into(),
                checksum: xxh3_64(bytes).into(),
            };
            directory.extend_from_slice(entry.as_bytes());
            offset += bytes.len() as u64;
        }
        let mut header = Header {
            magic: MAGIC,
            major: VERSION.0.into(),
            minor: VERSION.1.into(),
            byte_order: BYTE_ORDER.into(),
            file_bytes: offset.into(),
            requests: (self.requests as u64).into(),
            keys: self.keys.into(),
            columns: u32::try_from(self.columns.len()).expect("a handful").into(),
            ..Header::new_zeroed()
        };
        let mut hash = Xxh3::new();
        hash.update(&header.as_bytes()[..CHECKED_HEADER_BYTES]);
        hash.update(&directory);
        header.checksum = hash.digest().into();
        [header.as_bytes(), &directory].concat()
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let head = self.head();
        out.write_all(&head)?;
        let mut written = head.len();
        for &(_, bytes) in &self.columns {
            let padding = written.next_multiple_of(ALIGNMENT) - written;
            out.write_all(&[0; ALIGNMENT][..padding])?;
            out.write_all(bytes)?;
            written += padding + bytes.len();
        }
        Ok(())
    }

    fn bytes_at_most(&self) -> usize {
        let columns: usize = self.columns.iter().map(|(_, bytes)| bytes.len() + ALIGNMENT).sum();
        HEADER_BYTES + self.columns.len() * ENTRY_BYTES + columns
    }
}

/// Assembles the bytes of an `.hpt` file in memory, or in an unnamed temporary file if they are more than
/// `memory_bytes`.
pub(crate) fn assemble(parts: &Parts<'_>, memory_bytes: usize) -> Result<Bytes, TraceError> {
    let bytes = parts.bytes_at_most();
    if bytes <= memory_bytes {
        let mut image = Vec::with_capacity(bytes);
        parts.write(&mut image).expect("writing into a vector does not fail");
        return Ok(Bytes::Memory(image));
    }
    let write = || {
        let mut file = tempfile::tempfile()?;
        parts.write(&mut file)?;
        Bytes::map(&file)
    };
    write().map_err(TraceError::temporary)
}

/// Writes the bytes of an `.hpt` file to `path` atomically: whole or not at all.
pub(crate) fn write_file(path: &Path, image: &[u8]) -> Result<(), TraceError> {
    whole_file::write(path, image)
        .map_err(|source| TraceError::Io { path: path.to_path_buf(), source })
}
