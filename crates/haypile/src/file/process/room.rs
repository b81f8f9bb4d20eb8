//! Room for a file, reserved before the file is used: a page that gets none later is a SIGBUS.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;

use crate::call::{Call, errno};
use crate::file::format::header::{self, Header};
use crate::file::platform::filesystem::{self, FreeSpace};
use crate::file::platform::kernel::{self, Kernel};
use crate::file::platform::memory_limit;
use crate::file::process::error::FileError;
use crate::mutant;
use crate::private_file::size_limit;

/// A file is allocated in parts of this size; smaller ones where signals interrupt that.
const PART_BYTES: u64 = 1 << 30;
const SMALLEST_PART_BYTES: u64 = 64 << 10;
/// Zeros are written in parts of this size.
const ZEROS_BYTES: usize = 1 << 20;
const PAGE_BYTES: usize = 4096;

/// Checks that this process's limits (such as `RLIMIT_FSIZE`) allow a new file of this size;
/// otherwise the kernel would end the process by a signal.
pub(in crate::file) fn check_limits(path: &Path, file: &File, bytes: u64) -> Result<(), FileError> {
    check_file_size(path, bytes)?;
    check_memory(path, file, bytes)?;
    if let Some(space) = filesystem::free_space(file)
        && let needed_bytes = FreeSpace::needed_bytes(bytes)
        && space.free_bytes < bytes.saturating_add(needed_bytes)
    {
        let source = io::Error::other(format!(
            "{} bytes are free, and on btrfs a cache of this size needs {needed_bytes} in addition",
            space.free_bytes,
        ));
        return Err(FileError::NoRoom { path: path.to_owned(), bytes, source });
    }
    Ok(())
}

/// Returns a write beyond this limit is a SIGXFSZ.
fn check_file_size(path: &Path, bytes: u64) -> Result<(), FileError> {
    match size_limit() {
        Some(limit_bytes) if limit_bytes < bytes => {
            Err(FileError::FileSizeLimit { path: path.to_owned(), bytes, limit_bytes })
        }
        _ => Ok(()),
    }
}

/// Memory of a file system in memory counts for the control group of the process that takes it: above
/// the group's limit the kernel kills.
fn check_memory(path: &Path, file: &File, bytes: u64) -> Result<(), FileError> {
    if !filesystem::is_memory(file) {
        return Ok(());
    }
    match memory_limit::tightest() {
        Some(limit) if limit.left_bytes < bytes => {
            Err(FileError::MemoryLimit { path: path.to_owned(), bytes, limit })
        }
        _ => Ok(()),
    }
}

/// Allocates disk space for the whole of a new cache file.
pub(in crate::file) fn reserve(path: &Path, file: &File, bytes: u64) -> Result<(), FileError> {
    let reserved = match allocate(file, 0..bytes) {
        Err(error) if is_unsupported(&error) && filesystem::keeps_zeros(file) => {
            write_zeros(file, 0..bytes)
        }
        Err(error) if is_unsupported(&error) => Ok(()),
        other => other,
    };
    reserved.map_err(|error| failed(path, bytes, error))
}

/// Returns the error for a new cache file whose disk space could not be allocated, or for a system
/// call that failed for another reason.
pub(in crate::file) fn failed(path: &Path, bytes: u64, source: io::Error) -> FileError {
    let path = path.to_owned();
    match errno(&source) {
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG | libc::ENOMEM) => {
            FileError::NoRoom { path, bytes, source }
        }
        _ => FileError::Io { path, source },
    }
}

/// Allocates disk space for the holes of a cache file that was copied: on a full disk, a later
/// write to them would raise SIGBUS.
pub(in crate::file) fn fill_holes(
    path: &Path,
    file: &File,
    metadata: &Metadata,
    header: &Header,
    stamp: u64,
) -> Result<(), FileError> {
    let bytes = metadata.size();
    let allocated_bytes = allocated_bytes(metadata);
    // Nothing but pages counts in memory. On a disk, what describes the file counts as well, and so
    // does what lies behind its end; but the first process that opened it in this boot has filled it.
    let is_known =
        filesystem::is_memory(file) && allocated_bytes == bytes || has_stamp(file, stamp);
    if allocated_bytes >= bytes && (is_known || mutant::is_on("holes-judged-by-blocks")) {
        return Ok(());
    }
    let io_error = |source| FileError::Io { path: path.to_owned(), source };
    // A part that was allocated and never written is a hole as well, and stays what it is.
    let first = match holes(file, bytes).next() {
        Some(hole) => hole.start,
        None if allocated_bytes < bytes => 0,
        None => return Ok(()),
    };
    check_memory(path, file, bytes.saturating_sub(allocated_bytes))?;
    match allocate(file, first..bytes) {
        Ok(()) => Ok(()),
        Err(error) if !is_unsupported(&error) => Err(failed(path, bytes, error)),
        Err(_) if !filesystem::keeps_zeros(file) => Ok(()),
        Err(_) => {
            check_file_size(path, bytes)?;
            let kernel = kernel::open(path, true).and_then(|file| Kernel::new(file, path, true));
            let kernel = kernel.map_err(io_error)?;
            let attaching = kernel.start_attaching().map_err(io_error)?;
            let owner_slots = header.geometry.numbers.owner_slots;
            // Those who use it have filled it; and what they write now must not become zeros.
            if attaching.is_none() || kernel.is_any_slot_taken(owner_slots).map_err(io_error)? {
                return Ok(());
            }
            fill_with_zeros(file, bytes).map_err(|error| failed(path, bytes, error))
        }
    }
}

/// Returns the number of bytes that a file occupies on its file system.
pub(in crate::file) fn allocated_bytes(metadata: &Metadata) -> u64 {
    // In units of 512 bytes, whatever the file system's blocks are.
    metadata.blocks().saturating_mul(512)
}

/// Returns whether the users of a file have agreed on this stamp.
fn has_stamp(file: &File, stamp: u64) -> bool {
    let mut word = [0; 8];
    file.read_exact_at(&mut word, header::STAMP).is_ok() && u64::from_le_bytes(word) == stamp
}

/// Returns the holes of a file, as far as its file system tells them.
fn holes(file: &File, bytes: u64) -> impl Iterator<Item = Range<u64>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start =
            rustix::fs::seek(file, SeekFrom::Hole(at)).ok().filter(|start| *start < bytes)?;
        let end = rustix::fs::seek(file, SeekFrom::Data(start)).map_or(bytes, |end| end.min(bytes));
        at = end;
        Some(start..end)
    })
}

/// Allocates a range of a file, however often a signal comes.
fn allocate(file: &File, range: Range<u64>) -> io::Result<()> {
    // In parts: where a signal undoes what was begun, the next attempt is at less.
    let (mut at, mut part) = (range.start, PART_BYTES);
    while at < range.end {
        let length = part.min(range.end - at);
        match rustix::fs::fallocate(file, FallocateFlags::empty(), at, length) {
            Ok(()) => at += length,
            Err(Errno::INTR) => part = (part / 2).max(SMALLEST_PART_BYTES),
            Err(error) => return Err(error).call("fallocate"),
        }
    }
    Ok(())
}

/// Returns whether the file system cannot allocate, or a filter refuses to let it: then writing reserves room.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(errno(error), Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::EPERM))
}

/// Returns the length of the next part of a range.
fn part_of(range: &Range<u64>) -> usize {
    usize::try_from(range.end - range.start).map_or(ZEROS_BYTES, |left| left.min(ZEROS_BYTES))
}

/// Writes zeros over a range of a file.
fn write_zeros(file: &File, range: Range<u64>) -> io::Result<()> {
    static ZEROS: [u8; ZEROS_BYTES] = [0; ZEROS_BYTES];
    let mut at = range.start;
    while at < range.end {
        match file.write_at(&ZEROS[..part_of(&(at..range.end))], at) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => at += written as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error).call("pwrite"),
        }
    }
    Ok(())
}

/// Writes zeros to the holes of a file that nobody uses.
fn fill_with_zeros(file: &File, bytes: u64) -> io::Result<()> {
    let mut known: Vec<Range<u64>> = holes(file, bytes).collect();
    if known.is_empty() {
        // The file system does not tell where they are.
        known.push(0..bytes);
    }
    let mut part = vec![0; ZEROS_BYTES];
    for hole in known {
        for start in hole.clone().step_by(ZEROS_BYTES) {
            let part = &mut part[..part_of(&(start..hole.end))];
            file.read_exact_at(part, start).call("pread")?;
            for (at, page) in (start..).step_by(PAGE_BYTES).zip(part.chunks(PAGE_BYTES)) {
                if page.iter().all(|byte| *byte == 0) {
                    write_zeros(file, at..at + page.len() as u64)?;
                }
            }
        }
    }
    // A file system may only say here that there is no room.
    file.sync_data().call("fdatasync")
}
