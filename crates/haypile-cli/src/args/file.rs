//! Arguments of the commands that look into a cache's file.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
The file is only read, and may be in use. Counts are those of all processes since it was made.

Example:
  haypile stat /tmp/app.haypile")]
pub(crate) struct Stat {
    /// The file of a file:// cache
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Every entry is read and its checksum compared. The file is not changed, and may be in use. Exit
status: 0 it is whole, 1 it is damaged, 2 it could not be read.

Example:
  haypile check /tmp/app.haypile")]
pub(crate) struct Check {
    /// The file of a file:// cache
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
