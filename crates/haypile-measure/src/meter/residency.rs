//! The part of a file that the system keeps in memory.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::{Mmap, MmapOptions};
use rustix::fs::{Advice, fadvise};
use rustix::param::page_size;

/// The residency of files: their length, and the number of their bytes in the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    /// The total length of the watched files, in bytes.
    pub file_bytes: u64,
    /// The number of bytes of the watched files that the kernel has in memory (in its page cache).
    pub resident_bytes: u64,
}

impl Residency {
    /// The largest part in memory of which reading is still called cold.
    const COLD: u64 = 20;

    /// Returns the residency of one file: its length, and the number of its bytes in the page cache.
    ///
    /// # Errors
    ///
    /// The file cannot be opened, or the system does not tell. It tells it of files that the process
    /// may write.
    pub fn of(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let file_bytes = file.metadata()?.len();
        if file_bytes == 0 {
            return Ok(Self::default());
        }
        #[expect(unsafe_code, reason = "the system tells residency of mappings only")]
        // SAFETY: no byte of the mapping is read or written.
        let map = unsafe { MmapOptions::new().map(&file)? };
        let pages = resident_pages(&map)? as u64;
        let resident_bytes = (pages * page_size() as u64).min(file_bytes);
        Ok(Self { file_bytes, resident_bytes })
    }

    /// Returns the sums of the lengths and cached bytes of these files and another file.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            file_bytes: self.file_bytes + other.file_bytes,
            resident_bytes: self.resident_bytes + other.resident_bytes,
        }
    }

    /// Whether reads of the files are cold: less than a twentieth of the bytes is in the page cache.
    pub fn is_cold(self) -> bool {
        self.resident_bytes < self.file_bytes.div_ceil(Self::COLD)
    }
}

/// Writes a file to the disk and asks the system to drop the file from the page cache. Pages that a process has mapped
/// stay, and so does every file of a file system in memory.
///
/// # Errors
///
/// The file cannot be opened or written.
pub fn drop_from_memory(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    file.sync_all()?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(())
}

/// Returns the number of pages of a mapping that are in memory.
fn resident_pages(map: &Mmap) -> io::Result<usize> {
    let mut pages = vec![0_u8; map.len().div_ceil(page_size())];
    #[expect(unsafe_code, reason = "no safe interface has this call")]
    // SAFETY: the range is that of a mapping that is still there, and `pages` has a byte for each of
    // its pages.
    let result = unsafe {
        libc::mincore(map.as_ptr().cast_mut().cast(), map.len(), pages.as_mut_ptr().cast())
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // Of each byte only the lowest bit is defined.
    Ok(pages.iter().filter(|page| **page & 1 == 1).count())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    #[test]
    fn what_was_just_written_is_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, vec![1; 1 << 20]).unwrap();
        let residency = Residency::of(&path).unwrap();
        assert_eq!(residency, Residency { file_bytes: 1 << 20, resident_bytes: 1 << 20 });
        assert!(!residency.is_cold());
        drop_from_memory(&path).unwrap();
        let dropped = Residency::of(&path).unwrap();
        // A file system in memory, or one whose pages others read ahead, keeps what it likes.
        assert!(dropped.resident_bytes <= residency.resident_bytes);
    }

    #[test]
    fn a_file_without_bytes_has_no_pages_and_a_missing_one_is_an_error() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(Residency::of(file.path()).unwrap(), Residency::default());
        file.write_all(b"x").unwrap();
        assert_eq!(Residency::of(file.path()).unwrap().file_bytes, 1);
        assert!(Residency::of(Path::new("/nowhere/at/all")).is_err());
        assert!(drop_from_memory(Path::new("/nowhere/at/all")).is_err());
    }

    #[test]
    fn below_a_twentieth_in_memory_is_cold() {
        let of = |resident_bytes| Residency { file_bytes: 1000, resident_bytes };
        assert!(of(0).is_cold() && of(49).is_cold());
        assert!(!of(50).is_cold());
        assert_eq!(of(1).and(of(2)), Residency { file_bytes: 2000, resident_bytes: 3 });
    }
}
