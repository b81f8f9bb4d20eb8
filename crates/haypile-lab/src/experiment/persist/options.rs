//! Options of `haypile lab persist`.

use clap::Args;
use haypile::ByteSize;

use crate::experiment::value::size;

/// Command-line options of the experiment `persist`.
#[derive(Clone, Debug, Args)]
#[command(about = "Measure writing a cache to disk and opening it again")]
#[command(after_help = "\
A process writes 650,987 entries of 100 to 4,096 bytes, 524,287,388 bytes in all, to disk, and a new
process opens the cache.
  fill        sets all entries
  write       sets all entries, reads each once and every tenth more often, then writes the cache
  open        a new process opens the cache and reads all entries
  open-half   a new process opens the cache with half of the room, and reads the entries that were
              read more often; a cache that lives in its file keeps its room
  write-aged  as write, but sets every tenth entry again after --age, so that the others are old
  open-aged   a new process opens the aged cache and reads all entries

The subject copy only writes and reads the same bytes: its results are the cost of the disk. A cache
that lives in its file has written most entries before; its write measures the rest. Limits are
options of a subject; naming a policy with a limit and without compares it with itself.

Examples:
  haypile lab persist --directory /var/tmp --blocks 3
  haypile lab persist --subject copy,memory,file,lmdb --rivals PROGRAM --directory /var/tmp
  haypile lab persist --subject copy,memory:policy=slru,memory:policy=slru,persist_max=256MiB
  haypile lab persist --age 5 --subject memory:policy=lru,persist_age=4s")]
pub struct PersistOptions {
    /// Drop the cache files from the system's page cache before opening them
    #[arg(long)]
    pub cold: bool,
    /// Add the cases write-aged and open-aged, with this many seconds between the two times that
    /// entries are set
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub age: Option<u32>,
    /// Limit on the bytes of keys and values; RelStorage's measurement has 524,288,000
    #[arg(long, value_name = "SIZE", default_value = "524288000", value_parser = size)]
    pub total: ByteSize,
}
