//! Charts that commands write.

use std::path::Path;

use haypile_plot::Chart;

use super::target;

/// Checks that a chart can be written to `path`, before a command works for it.
pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
    haypile_plot::check_path(path)?;
    target::check(path)
}

/// Writes a chart to `path`, as a whole or not at all.
pub(crate) fn write(chart: &Chart, path: &Path) -> anyhow::Result<()> {
    target::replace(path, chart.svg()?.as_bytes())
}
