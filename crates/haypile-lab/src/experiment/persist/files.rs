//! Copies of the files that a part left on disk, and their sizes.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{Advice, SeekFrom, fadvise, seek};
use rustix::io::Errno;

/// The size of one read or write.
const BUFFER_BYTES: usize = 1 << 20;

/// The unit of the blocks that the system counts, whatever those of the file system are.
const BLOCK_BYTES: u64 = 512;

/// The total size of several files: their lengths and the disk space that they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FilesSize {
    /// The sum of the files' lengths, in bytes.
    pub(super) file_bytes: u64,
    /// The disk space that the files take, in bytes: holes take nothing.
    pub(super) disk_bytes: u64,
}

/// Copies all files of a directory tree into an empty directory. Afterwards all copies are written
/// to disk; all of them are in the system's page cache, or, if `cold`, none.
///
/// Nothing is shared with the files that were copied, neither blocks nor pages, even where the file
/// system could: whoever writes to a copy pays for writing alone, and whoever reads it finds it as
/// warm as any other copy.
pub(super) fn copy_all(from: &Path, to: &Path, cold: bool) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            fs::create_dir(&target)?;
            copy_all(&source, &target, cold)?;
        } else if kind.is_file() {
            copy(&source, &target, cold)?;
        }
    }
    Ok(())
}

/// Returns the total size of all files in a directory tree.
pub(super) fn size_of_all(directory: &Path) -> io::Result<FilesSize> {
    let mut size = FilesSize::default();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            let within = size_of_all(&entry.path())?;
            size.file_bytes += within.file_bytes;
            size.disk_bytes += within.disk_bytes;
        } else {
            size.file_bytes += metadata.len();
            size.disk_bytes += metadata.blocks() * BLOCK_BYTES;
        }
    }
    Ok(size)
}

/// Copies a file with its mode; where it has a hole, the copy has one.
fn copy(from: &Path, to: &Path, cold: bool) -> io::Result<()> {
    let source = File::open(from)?;
    let metadata = source.metadata()?;
    let mut target = File::create_new(to)?;
    target.set_permissions(metadata.permissions())?;
    target.set_len(metadata.len())?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut end = 0;
    while let Some(start) = found(seek(&source, SeekFrom::Data(end)))? {
        end = found(seek(&source, SeekFrom::Hole(start)))?.unwrap_or(metadata.len());
        copy_range(&source, &mut target, start, end, &mut buffer)?;
    }
    target.sync_all()?;
    if cold {
        fadvise(&target, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}

/// A place in a file; none where there is nothing of the kind up to its end.
fn found(place: rustix::io::Result<u64>) -> io::Result<Option<u64>> {
    match place {
        Ok(place) => Ok(Some(place)),
        Err(Errno::NXIO) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Copies what is between two places through memory.
fn copy_range(
    source: &File,
    target: &mut File,
    start: u64,
    end: u64,
    buffer: &mut [u8],
) -> io::Result<()> {
    seek(&*target, SeekFrom::Start(start))?;
    let mut at = start;
    while at < end {
        let wanted = usize::try_from(end - at).unwrap_or(usize::MAX).min(buffer.len());
        let count = match source.read_at(&mut buffer[..wanted], at) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read?,
        };
        target.write_all(&buffer[..count])?;
        at += count as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn copies_are_the_same_and_nobody_else_s() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let long: Vec<u8> = (0..=250).cycle().take(3 * BUFFER_BYTES + 7).collect();
        fs::create_dir_all(from.path().join("deep/er")).unwrap();
        for (name, content) in [("empty", &[][..]), ("short", b"abc"), ("deep/er/long", &long)] {
            fs::write(from.path().join(name), content).unwrap();
        }
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(from.path().join("short"), mode).unwrap();
        for cold in [false, true] {
            let to = to.path().join(cold.to_string());
            fs::create_dir(&to).unwrap();
            copy_all(from.path(), &to, cold).unwrap();
            assert_eq!(fs::read(to.join("empty")).unwrap(), b"");
            assert_eq!(fs::read(to.join("deep/er/long")).unwrap(), long);
            assert_eq!(fs::metadata(to.join("short")).unwrap().mode() & 0o777, 0o600);
            fs::write(to.join("short"), "xyz").unwrap();
            assert_eq!(size_of_all(&to).unwrap().file_bytes, 3 + long.len() as u64);
        }
        assert_eq!(fs::read(from.path().join("short")).unwrap(), b"abc");
    }

    /// Where a file system has no holes, the whole is data, and the copy is right all the same.
    #[test]
    fn holes_stay_holes() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = from.path().join("sparse");
        let sparse = File::create(&path).unwrap();
        sparse.write_all_at(b"begin", 0).unwrap();
        sparse.write_all_at(b"middle", 40 << 20).unwrap();
        sparse.set_len(100 << 20).unwrap();
        sparse.sync_all().unwrap();
        copy_all(from.path(), to.path(), false).unwrap();
        let (old, new) = (size_of_all(from.path()).unwrap(), size_of_all(to.path()).unwrap());
        assert_eq!((old.file_bytes, new.file_bytes), (100 << 20, 100 << 20));
        assert!(new.disk_bytes <= old.disk_bytes, "{new:?} of {old:?}");
        let copied = File::open(to.path().join("sparse")).unwrap();
        for (at, expected) in [(0, b"begin\0"), (40 << 20, b"middle"), (99 << 20, &[0; 6])] {
            let mut found = [1; 6];
            copied.read_exact_at(&mut found, at).unwrap();
            assert_eq!(&found, expected, "at {at}");
        }
    }
}
