//! Files that an earlier job has left in the working directory.

use std::fs;
use std::io::{self, ErrorKind};

/// Removes those of `files` that exist.
pub(crate) fn remove(files: &[&str]) -> io::Result<()> {
    for file in files {
        match fs::remove_file(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            removed => removed?,
        }
    }
    Ok(())
}
