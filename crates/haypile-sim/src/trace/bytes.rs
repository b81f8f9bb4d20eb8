//! Bytes that are either in memory or in a mapped file.

use std::fs::File;
use std::io;
use std::ops::Deref;

use memmap2::Mmap;

/// The read-only bytes of a trace, held in memory or mapped from a file.
#[derive(Debug)]
pub(crate) enum Bytes {
    /// Bytes in memory.
    Memory(Vec<u8>),
    /// Bytes in a file, which the system reads page by page.
    Mapped(Mmap),
}

impl Bytes {
    /// Maps a whole file into memory for reading.
    ///
    /// A file that somebody else truncates while it is mapped ends this process with `SIGBUS` at
    /// the next look behind its new end. The system offers no way to read such a map safely.
    pub(crate) fn map(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Self::Memory(Vec::new()));
        }
        #[expect(unsafe_code, reason = "a memory map cannot be made without; the only one here")]
        // SAFETY: the map is read-only and private to this value. Its bytes stay the same as long
        // as nobody writes into the file: our own files are complete before they are mapped,
        // published only by a rename and never changed in place, and temporary ones have no name.
        // Nothing that is read through the map (bytes and unaligned integers, all of whose bit
        // patterns are valid) is trusted as an index without a bounds check.
        let map = unsafe { Mmap::map(file)? };
        Ok(Self::Mapped(map))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Memory(bytes) => bytes,
            Self::Mapped(map) => map,
        }
    }
}
