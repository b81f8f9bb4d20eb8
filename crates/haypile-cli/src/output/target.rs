//! Files that commands write.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, bail};

/// Checks that an output file can be created, before a command works for it.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    if path.is_dir() {
        bail!("{} is a directory; name the file to write", path.display());
    }
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    if let Some(directory) = directory
        && !directory.is_dir()
    {
        bail!(
            "{}: the directory {} does not exist; create it, or name another",
            path.display(),
            directory.display()
        );
    }
    Ok(())
}

/// Replaces an output file as a whole or not at all: a full disk leaves the old file. A device or a
/// pipe is written to.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let name = || path.display().to_string();
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return fs::write(path, bytes).with_context(name);
    }
    // Where the link leads, so that it stays one.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    // Without what the user's mask takes away.
    let mode = Permissions::from_mode(0o666);
    let mut builder = tempfile::Builder::new();
    let file = builder.permissions(mode).tempfile_in(directory.unwrap_or(Path::new(".")));
    let mut file = file.with_context(name)?;
    file.write_all(bytes).with_context(name)?;
    file.persist(path).map_err(|error| error.error).with_context(name)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_a_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("page.html"), folder.path().join("link.html"));
        replace(&path, b"old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
        let nowhere = folder.path().join("none/page.html");
        assert!(format!("{:#}", replace(&nowhere, b"new").unwrap_err()).contains("page.html"));
    }

    #[test]
    fn a_device_is_written_to() {
        assert!(replace(Path::new("/dev/full"), b"new").is_err());
        replace(Path::new("/dev/null"), b"new").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
