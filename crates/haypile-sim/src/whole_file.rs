//! Atomic writes of files, which appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Writes `content` durably to a temporary file in the folder of `path`, and then renames it to `path`, so that no
/// reader ever sees half of it. It replaces an existing file.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".haypile-");
    // A temporary file is private by default; this one is an ordinary file in the end.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(dir)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    if cfg!(unix) {
        File::open(fs::canonicalize(dir)?)?.sync_all()?;
    }
    Ok(())
}
