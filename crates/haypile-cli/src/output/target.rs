//! Files that are written.

use std::path::Path;

use anyhow::bail;

/// Finds out whether there is a place for the file before any work is done for it.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    if path.is_dir() {
        bail!("{} is a directory: name the file to write", path.display());
    }
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    if let Some(directory) = directory
        && !directory.is_dir()
    {
        bail!("{}: there is no directory {}", path.display(), directory.display());
    }
    Ok(())
}
