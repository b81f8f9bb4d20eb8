//! `haypile man`

use std::path::Path;

use anyhow::Context;

use crate::args;

/// Writes a manual page for each command of this program into a directory.
pub(crate) fn run(directory: &Path) -> anyhow::Result<()> {
    clap_mangen::generate_to(args::command(), directory)
        .with_context(|| format!("cannot write manual pages into {}", directory.display()))
}
