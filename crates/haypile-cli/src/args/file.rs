//! Arguments of the commands that look into a cache's file.

use clap::Args;

use super::cache_file::CacheFile;

#[derive(Debug, Args)]
#[command(after_help = "\
The file is only read, and may be in use. Counts are those of all processes since it was made. A
file of another user is read without being mapped, and nothing in it is trusted.

Examples:
  haypile stat /tmp/app.haypile
  haypile stat file:/tmp/app.haypile")]
pub(crate) struct Stat {
    /// The file of a file:// cache, or the URL of the cache
    #[arg(value_name = "FILE", value_parser = CacheFile::parser())]
    pub(crate) file: CacheFile,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Every entry is read and its checksum compared. The file is not changed, and may be in use. A file of
another user is read without being mapped. Exit status: 0 it is whole, 1 it is damaged, 2 it could
not be read.

Examples:
  haypile check /tmp/app.haypile
  haypile check file:/tmp/app.haypile")]
pub(crate) struct Check {
    /// The file of a file:// cache, or the URL of the cache
    #[arg(value_name = "FILE", value_parser = CacheFile::parser())]
    pub(crate) file: CacheFile,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
