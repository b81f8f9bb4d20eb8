//! Writes a chart to a file.

use std::path::Path;

use super::{Chart, PlotError};
use crate::whole_file;

/// Checks that the extension of `path` is `svg`, the format that [`Chart::write`] can write.
///
/// # Errors
/// [`PlotError::Png`] for the extension `png`, and [`PlotError::Extension`] for another or none.
pub fn check_path(path: &Path) -> Result<(), PlotError> {
    let extension = path.extension().unwrap_or_default();
    if extension.eq_ignore_ascii_case("svg") {
        Ok(())
    } else if extension.eq_ignore_ascii_case("png") {
        Err(PlotError::Png { path: path.to_path_buf() })
    } else {
        Err(PlotError::Extension { path: path.to_path_buf() })
    }
}

pub(super) fn write(chart: &Chart, path: &Path) -> Result<(), PlotError> {
    check_path(path)?;
    whole_file::write(path, chart.svg()?.as_bytes())
        .map_err(|source| PlotError::Io { path: path.to_path_buf(), source })
}
