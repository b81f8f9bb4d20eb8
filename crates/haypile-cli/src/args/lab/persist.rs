//! The arguments of `haypile lab persist`.

use clap::Args;
use haypile::ByteSize;

use super::Measuring;
use crate::args::value::size;

#[derive(Debug, Args)]
#[command(after_help = "\
650,987 entries of 100 to 4,096 bytes, 524,287,388 bytes in all, are written to disk and opened by a
new process.
  fill        everything is set
  write       everything is set, each entry read once, every tenth some times more; then it is written
  open        a new process opens it and reads everything
  open-half   a new process opens it with half of the room, and reads what was read more often; a
              cache that lives in its file keeps the room that it has
  write-aged  as write, but after --age every tenth is set again: the others are old
  open-aged   a new process opens that and reads everything

The subject copy writes and reads the same bytes and does nothing else: what the disk takes. A
cache that lives in its file has written most of it before; what write tells is the rest. Limits are
options of a subject; a policy that appears twice, with and without, is compared with itself.

Examples:
  haypile lab persist --directory /var/tmp --blocks 3
  haypile lab persist --subject copy,memory,file,lmdb --rivals PROGRAM --directory /var/tmp
  haypile lab persist --subject copy,memory:policy=slru,memory:policy=slru,persist_max=256MiB
  haypile lab persist --age 5 --subject memory:policy=lru,persist_age=4s")]
pub(crate) struct Persist {
    /// Drop files from the system's memory before they are opened
    #[arg(long)]
    pub(crate) cold: bool,
    /// Add the parts about age, with so many seconds between sets
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub(crate) age: Option<u32>,
    /// Stay below so many bytes of keys and values; the definition has 524,288,000
    #[arg(long, value_name = "SIZE", default_value = "524288000", value_parser = size)]
    pub(crate) total: ByteSize,
    #[command(flatten)]
    pub(crate) measuring: Measuring,
}
