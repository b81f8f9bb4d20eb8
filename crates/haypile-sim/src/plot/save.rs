//! Writes a chart to a file.

use std::path::Path;

use super::{Chart, PlotError};
use crate::whole_file;

/// The width of an image whose width nobody asked for, in pixels: that of most projectors.
const WIDTH_PX: u32 = 1920;

pub(super) fn write(chart: &Chart, path: &Path) -> Result<(), PlotError> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let content = match extension.to_ascii_lowercase().as_str() {
        "svg" => chart.svg()?.into_bytes(),
        "png" => chart.png(WIDTH_PX)?,
        _ => return Err(PlotError::Extension { path: path.to_path_buf() }),
    };
    whole_file::write(path, &content)
        .map_err(|source| PlotError::Io { path: path.to_path_buf(), source })
}
