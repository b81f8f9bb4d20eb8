//! Arguments of the commands on one cache.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use haypile::Ttl;

use super::value::{Delta, positive, ttl};
use crate::notation;

/// The URL of the cache that a command works on.
#[derive(Debug, Args)]
pub(crate) struct Url {
    #[expect(clippy::doc_markdown, reason = "clap prints it as it stands")]
    /// Cache: the path of its file, or its URL, such as file:///tmp/app.haypile?size=64MiB, or
    /// file:app.haypile,size=64MiB for short; a memory: cache without persist= lives only as long as
    /// the command
    #[arg(value_name = "URL")]
    pub(crate) url: OsString,
}

/// The notation in which the user writes keys on the command line: as they are, with escapes, or in
/// base64.
#[derive(Debug, Args)]
pub(crate) struct KeyForm {
    /// Read keys as `haypile keys` prints them, with the escapes \\ \n \r \t and \xHH
    #[arg(long, short = 'e', conflicts_with = "key_base64")]
    key_escaped: bool,
    /// Read keys as base64, in which `haypile dump` writes binary keys
    #[arg(long)]
    key_base64: bool,
}

impl KeyForm {
    /// Returns the bytes of a key that the user wrote on the command line in this notation.
    pub(crate) fn read(&self, key: &OsString) -> anyhow::Result<Vec<u8>> {
        let bytes = key.as_encoded_bytes();
        if self.key_escaped {
            notation::unescape(bytes)
        } else if self.key_base64 {
            notation::decode(bytes)
        } else {
            Ok(bytes.to_vec())
        }
    }
}

/// A selection of a cache's entries, by the beginning of their keys and by number.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// List only keys that begin with this prefix
    #[arg(long, value_name = "TEXT")]
    pub(crate) prefix: Option<OsString>,
    /// List at most this many entries
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) limit: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) form: KeyForm,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The command prints the bytes of the value and nothing else; on a terminal it ends the line. It does
not change the cache: it neither creates a missing file nor saves to persist=.

Exit status: 0 printed; 1 the key does not exist; 2 wrong arguments, or the cache failed.

Examples:
  haypile get file:/tmp/app.haypile user:7
  haypile get file:/tmp/app.haypile logo > logo.png
  haypile get file:/tmp/app.haypile user:7 --lease lease ||
    haypile set file:/tmp/app.haypile user:7 \"$(ask_the_data_base)\" --lease lease")]
pub(crate) struct Get {
    #[command(flatten)]
    pub(crate) cache: Url,
    /// Key of the entry to print
    pub(crate) key: OsString,
    #[command(flatten)]
    pub(crate) form: KeyForm,
    /// Print the key, the value and the remaining TTL of the entry as a line of JSON, in the form
    /// of haypile dump
    #[arg(long)]
    pub(crate) json: bool,
    /// If the key does not exist, write a lease on it to this file: the right to set what you are about to compute,
    /// unless anybody changes the key in the meantime
    #[arg(long, value_name = "FILE")]
    pub(crate) lease: Option<PathBuf>,
}

/// The entry that a command writes.
#[derive(Debug, Args)]
pub(crate) struct WriteArguments {
    #[command(flatten)]
    pub(crate) cache: Url,
    /// Key of the entry to write; write -- before a key that begins with a dash
    pub(crate) key: OsString,
    /// Value of the entry to write, or - to read it from standard input
    #[arg(allow_negative_numbers = true)]
    pub(crate) value: OsString,
    #[command(flatten)]
    pub(crate) form: KeyForm,
    /// Lifetime of the entry, such as 500ms, 30s, 24h or never [default: ttl= of the URL, or never]
    #[arg(long, value_name = "TIME", value_parser = ttl)]
    pub(crate) ttl: Option<Ttl>,
    /// Group (tag) of the entry, through which `haypile invalidate` makes it a miss; repeat the
    /// option for several groups
    #[arg(long = "group", value_name = "GROUP")]
    pub(crate) groups: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each command that changes a cache with persist= loads and saves the whole cache.

Exit status: 0 written; 1 not written, because the key exists (--add), does not (--replace), or may
have changed since (--lease); 2 wrong arguments, the cache failed, or the value is too large for it.

Examples:
  haypile set file:/tmp/app.haypile user:7 Ada --ttl 1h
  haypile set file:/tmp/app.haypile logo - < logo.png
  haypile set file:/tmp/app.haypile page:/ann - --group user:7 --group pages < page.html")]
pub(crate) struct Set {
    #[command(flatten)]
    pub(crate) write: WriteArguments,
    /// Write the entry only if its key does not exist, as `haypile add` does
    #[arg(long, conflicts_with = "replace")]
    pub(crate) add: bool,
    /// Write the entry only if its key exists already
    #[arg(long, conflicts_with = "lease")]
    pub(crate) replace: bool,
    /// Write the entry only if nobody has changed its key since `haypile get --lease` wrote this
    /// file
    #[arg(long, value_name = "FILE", conflicts_with = "add")]
    pub(crate) lease: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 written; 1 not written, because the key exists; 2 wrong arguments, the cache failed,
or the value is too large for it.

Example: of several processes, only the first runs the report
  haypile add file:/tmp/app.haypile report:2026-11 $$ --ttl 10m && ./report")]
pub(crate) struct Add {
    #[command(flatten)]
    pub(crate) write: WriteArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 deleted at least one key; 1 none of the keys exists; 2 wrong arguments, or the cache
failed.

Examples:
  haypile delete file:/tmp/app.haypile user:7 user:8
  haypile keys URL --prefix user: --null | xargs -0 haypile delete URL --")]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(crate) cache: Url,
    /// Keys of the entries to delete
    #[arg(required = true, value_name = "KEY")]
    pub(crate) keys: Vec<OsString>,
    #[command(flatten)]
    pub(crate) form: KeyForm,
}

#[derive(Debug, Args)]
#[command(after_help = "\
It takes the same time for one entry as for a million. What is computed from what was read before is
refused as well: `haypile set --lease FILE --group GROUP`. If the URL has a namespace=, its groups are
its own.

Exit status: 0 done, whether or not the groups have entries; 2 wrong arguments, the cache failed, or
it has no groups.

Example:
  haypile set file:/tmp/app.haypile page:/ann - --group user:7 --group pages < page.html
  haypile invalidate file:/tmp/app.haypile user:7")]
pub(crate) struct Invalidate {
    #[command(flatten)]
    pub(crate) cache: Url,
    /// Groups (tags that entries were written with) whose entries become misses
    #[arg(required = true, value_name = "GROUP")]
    pub(crate) groups: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A counter is a value of decimal digits. Adding wraps around to zero after 18446744073709551615;
subtracting stops at zero. The TTL does not change. The command prints the new number.

Exit status: 0 done; 1 the key does not exist; 2 wrong arguments, the value is not a counter, or the
cache failed.

Examples:
  haypile incr file:/tmp/app.haypile visits --initial 1
  haypile incr file:/tmp/app.haypile places -1")]
pub(crate) struct Incr {
    #[command(flatten)]
    pub(crate) cache: Url,
    /// Key of the counter
    pub(crate) key: OsString,
    /// Number to add to the counter; with a minus sign, to subtract
    #[arg(default_value = "1", allow_negative_numbers = true)]
    pub(crate) delta: Delta,
    /// Number that the counter gets if its key does not exist
    #[arg(long, value_name = "NUMBER")]
    pub(crate) initial: Option<u64>,
    /// Lifetime of a counter that --initial creates
    #[arg(long, value_name = "TIME", value_parser = ttl, requires = "initial")]
    pub(crate) ttl: Option<Ttl>,
    #[command(flatten)]
    pub(crate) form: KeyForm,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Keys come in no particular order, each at least once. The command prints printable text as it is,
and escapes everything else: \\n \\r \\t, \\\\ for a backslash, \\xHH for any other byte. The option
--key-escaped of the other commands reads this notation.

Examples:
  haypile keys file:/tmp/app.haypile --prefix user: --limit 10
  haypile keys URL --null | xargs -0 -n 1 haypile get URL --json --")]
pub(crate) struct Keys {
    #[command(flatten)]
    pub(crate) cache: Url,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Print the bytes of the keys, one key a line; a key that contains a line end is an error
    #[arg(long, conflicts_with_all = ["null", "json"])]
    pub(crate) raw: bool,
    /// Print the bytes of the keys, a zero byte after each; a key that contains one is an error
    #[arg(long, short = '0', conflicts_with = "json")]
    pub(crate) null: bool,
    /// Print a line of JSON for each key, like `haypile dump` but without the value
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each line is a JSON object. The first contains the version of the format, each of the others an
entry with key, value and ttl_ms, its remaining TTL. Binary keys and values are in key_base64 and
value_base64. docs/format-dump.md describes the format. Entries in groups are left out, and counted
at the end: a cache knows its groups by hashes alone, and a copy in no group could not be invalidated.

Examples:
  haypile dump file:/tmp/app.haypile > app.jsonl
  haypile dump URL | haypile load OTHER-URL
  haypile dump URL | jq -r 'select(.ttl_ms != null) | .key'")]
pub(crate) struct Dump {
    #[command(flatten)]
    pub(crate) cache: Url,
    #[command(flatten)]
    pub(crate) selection: Selection,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The entries replace those of the same keys; other entries stay. Their TTLs continue from now. After
an error or Ctrl-C, the entries before it are in the cache.

Exit status: 0 done, even if --skip-bad skipped lines; 2 wrong arguments, a bad line, or
the cache failed; 130 interrupted by Ctrl-C (128 + the number of the signal).

Examples:
  haypile load file:/tmp/app.haypile,size=1GiB app.jsonl
  zstdcat app.jsonl.zst | haypile load file:/tmp/app.haypile")]
pub(crate) struct Load {
    #[command(flatten)]
    pub(crate) cache: Url,
    /// Dump to load: a file that haypile dump wrote; - is standard input
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    /// Skip and count bad lines of the dump and entries too large for the cache, instead of
    /// stopping at the first
    #[arg(long)]
    pub(crate) skip_bad: bool,
    /// Print the numbers of loaded entries and skipped lines as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
If the URL has a namespace=, the command deletes only its entries. It does not ask for confirmation.

Example:
  haypile clear file:/tmp/app.haypile")]
pub(crate) struct Clear {
    #[command(flatten)]
    pub(crate) cache: Url,
}
