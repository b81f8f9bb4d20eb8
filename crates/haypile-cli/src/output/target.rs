//! Files that commands write.

use std::path::Path;

use anyhow::bail;

/// Checks that the file can be created, before a command works for it.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    if path.is_dir() {
        bail!("{} is a directory; name the file to write", path.display());
    }
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    if let Some(directory) = directory
        && !directory.is_dir()
    {
        bail!("{}: the directory {} does not exist", path.display(), directory.display());
    }
    Ok(())
}
