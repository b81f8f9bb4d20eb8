//! Files that are read as a whole.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file for reading; returns `None` if it is not a regular file. If a pipe is in its place,
/// the call does not wait for it.
///
/// # Errors
///
/// It cannot be opened.
pub(crate) fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let no_wait = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(no_wait).open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}
