//! Writes a chart to a file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use super::{Chart, PlotError};

/// The width of an image whose width nobody asked for, in pixels: that of most projectors.
const WIDTH_PX: u32 = 1920;

pub(super) fn write(chart: &Chart, path: &Path) -> Result<(), PlotError> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let (suffix, content) = match extension.to_ascii_lowercase().as_str() {
        "svg" => (".svg", chart.svg()?.into_bytes()),
        "png" => (".png", chart.png(WIDTH_PX)?),
        _ => return Err(PlotError::Extension { path: path.to_path_buf() }),
    };
    replace(path, suffix, &content)
        .map_err(|source| PlotError::Io { path: path.to_path_buf(), source })
}

/// Writes under a temporary name, then durably, then under its own name.
fn replace(path: &Path, suffix: &str, content: &[u8]) -> io::Result<()> {
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".haypile-").suffix(suffix);
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
