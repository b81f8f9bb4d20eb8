//! Arguments of the commands that read a cache's file.

use clap::Args;

use super::cache_file::CacheFile;

#[derive(Debug, Args)]
#[command(after_help = "\
The command only reads the file, which may be in use. The counts are those of all processes since
the file was created. The command reads another user's file without mapping it, and trusts nothing
in it.

Examples:
  haypile stat /tmp/app.haypile
  haypile stat file:/tmp/app.haypile")]
pub(crate) struct Stat {
    /// Cache file to describe: the file of a file:// cache, or the cache's URL
    #[arg(value_name = "FILE", value_parser = CacheFile::parser())]
    pub(crate) file: CacheFile,
    /// Print the description of the cache file as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The command reads every entry and compares its checksum. It does not change the file, which may be
in use, and reads another user's file without mapping it.

Exit status: 0 intact; 1 damaged; 2 the file could not be read.

Examples:
  haypile check /tmp/app.haypile
  haypile check file:/tmp/app.haypile")]
pub(crate) struct Check {
    /// Cache file to verify: the file of a file:// cache, or the cache's URL
    #[arg(value_name = "FILE", value_parser = CacheFile::parser())]
    pub(crate) file: CacheFile,
    /// Print the numbers of intact and damaged entries as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
