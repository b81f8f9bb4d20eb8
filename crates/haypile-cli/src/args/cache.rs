//! The arguments of the commands on one cache.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use haypile::Ttl;

use super::value::{Delta, positive, ttl};
use crate::notation;

/// Which cache.
#[derive(Debug, Args)]
pub(crate) struct Url {
    #[expect(clippy::doc_markdown, reason = "clap prints it as it stands")]
    /// The cache, such as file:///tmp/app.haypile?size=64MiB, or file:/tmp/app.haypile,size=64MiB
    /// for short; what memory: holds without persist= ends with the command
    #[arg(value_name = "URL")]
    pub(crate) url: String,
}

/// How keys are written on the command line.
#[derive(Debug, Args)]
pub(crate) struct KeyForm {
    /// Keys are written as `haypile keys` prints them, with the escapes \\ \n \r \t and \xHH
    #[arg(long, short = 'e', conflicts_with = "key_base64")]
    key_escaped: bool,
    /// Keys are written in base64, as `haypile dump` writes those that are no text
    #[arg(long)]
    key_base64: bool,
}

impl KeyForm {
    /// The bytes of a key that was written so.
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

/// Which entries.
#[derive(Debug, Args)]
pub(crate) struct Selection {
    /// Only keys that begin so
    #[arg(long, value_name = "TEXT")]
    pub(crate) prefix: Option<OsString>,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) limit: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) form: KeyForm,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The bytes of the value are printed and nothing else. Only on a terminal a line end follows a value
that has none. The cache is left as it is: a file:
that is not there is not made, and nothing is saved to persist=.

Exit status: 0 done; 1 there is no such key; 2 wrong arguments, or the cache failed.

Examples:
  haypile get file:/tmp/app.haypile user:7
  haypile get file:/tmp/app.haypile logo > logo.png")]
pub(crate) struct Get {
    #[command(flatten)]
    pub(crate) cache: Url,
    /// The key
    pub(crate) key: OsString,
    #[command(flatten)]
    pub(crate) form: KeyForm,
    /// Print the key, the value and the rest of the TTL as a line of a dump
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is written.
#[derive(Debug, Args)]
pub(crate) struct Write {
    #[command(flatten)]
    pub(crate) cache: Url,
    /// The key; -- before it if it begins with a dash
    pub(crate) key: OsString,
    /// The value, or - to read it from standard input
    #[arg(allow_negative_numbers = true)]
    pub(crate) value: OsString,
    #[command(flatten)]
    pub(crate) form: KeyForm,
    /// How long the entry lives: 500ms, 30s, 24h, never [default: what the URL says with ttl=, or
    /// never]
    #[arg(long, value_name = "TIME", value_parser = ttl)]
    pub(crate) ttl: Option<Ttl>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A cache with persist= is loaded whole and saved whole by each command that changes it.

Exit status: 0 written; 1 not written, because there was an entry (--add) or none (--replace); 2
wrong arguments, or the cache failed or does not take a value so large.

Examples:
  haypile set file:/tmp/app.haypile user:7 Ada --ttl 1h
  haypile set file:/tmp/app.haypile logo - < logo.png")]
pub(crate) struct Set {
    #[command(flatten)]
    pub(crate) write: Write,
    /// Write only where there is no entry, as `haypile add` does
    #[arg(long, conflicts_with = "replace")]
    pub(crate) add: bool,
    /// Write only where there is an entry
    #[arg(long)]
    pub(crate) replace: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 written; 1 not written, because there was an entry; 2 wrong arguments, or the cache
failed or does not take a value so large.

Example: only the first who asks gets to do it
  haypile add file:/tmp/app.haypile report:2026-11 $$ --ttl 10m && ./report")]
pub(crate) struct Add {
    #[command(flatten)]
    pub(crate) write: Write,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 at least one of the keys was there; 1 none was; 2 wrong arguments, or the cache
failed.

Examples:
  haypile delete file:/tmp/app.haypile user:7 user:8
  haypile keys URL --prefix user: --null | xargs -0 haypile delete URL --")]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(crate) cache: Url,
    /// The keys
    #[arg(required = true, value_name = "KEY")]
    pub(crate) keys: Vec<OsString>,
    #[command(flatten)]
    pub(crate) form: KeyForm,
}

#[derive(Debug, Args)]
#[command(after_help = "\
A counter is a value of decimal digits. What is added beyond 18446744073709551615 begins again at
zero; what is subtracted ends at zero. The TTL stays. The new number is printed.

Exit status: 0 done; 1 there is no such key; 2 wrong arguments, a value that is no counter, or the
cache failed.

Examples:
  haypile incr file:/tmp/app.haypile visits --initial 1
  haypile incr file:/tmp/app.haypile places -1")]
pub(crate) struct Incr {
    #[command(flatten)]
    pub(crate) cache: Url,
    /// The key
    pub(crate) key: OsString,
    /// What is added; with a minus sign, subtracted
    #[arg(default_value = "1", allow_negative_numbers = true)]
    pub(crate) delta: Delta,
    /// Where there is no such key, write this number instead
    #[arg(long, value_name = "NUMBER")]
    pub(crate) initial: Option<u64>,
    /// How long a counter lives that is made by --initial
    #[arg(long, value_name = "TIME", value_parser = ttl, requires = "initial")]
    pub(crate) ttl: Option<Ttl>,
    #[command(flatten)]
    pub(crate) form: KeyForm,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Keys come in no particular order, each at least once. A key is printed as it is if it is text that
shows; what else is in it is escaped: \\n \\r \\t, \\\\ for a backslash, \\xHH for any other byte. The
option --key-escaped of the other commands reads that.

Examples:
  haypile keys file:/tmp/app.haypile --prefix user: --limit 10
  haypile keys URL --null | xargs -0 -n 1 haypile get URL --json --")]
pub(crate) struct Keys {
    #[command(flatten)]
    pub(crate) cache: Url,
    #[command(flatten)]
    pub(crate) selection: Selection,
    /// Print the bytes of keys, each with a line end behind it; a key that has one in it is an error
    #[arg(long, conflicts_with_all = ["null", "json"])]
    pub(crate) raw: bool,
    /// Print the bytes of keys, each with a zero byte behind it; a key that has one in it is an error
    #[arg(long, short = '0', conflicts_with = "json")]
    pub(crate) null: bool,
    /// Print a line of JSON for each key, as `haypile dump` does without the value
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Each line is an object of JSON: the first says the version, each of the others is an entry with
key, value and ttl_ms, which is what remains of its TTL. What is no text is in key_base64 or
value_base64. docs/format-dump.md describes it.

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
Entries replace those that are there under the same keys; others stay. TTLs count on from now. After
an error or Ctrl-C the entries before it are in the cache.

Exit status: 0 done, though bad lines may have been skipped; 2 wrong arguments, a bad line,
interrupted, or the cache failed.

Examples:
  haypile load file:/tmp/app.haypile,size=1GiB app.jsonl
  zstdcat app.jsonl.zst | haypile load file:/tmp/app.haypile")]
pub(crate) struct Load {
    #[command(flatten)]
    pub(crate) cache: Url,
    /// The file that dump wrote; - is standard input
    #[arg(default_value = "-")]
    pub(crate) file: PathBuf,
    /// Count bad lines, and entries that are too large for the cache, instead of ending at the first
    #[arg(long)]
    pub(crate) skip_bad: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Where the URL has a namespace=, only its entries are deleted. Nothing is asked.

Example:
  haypile clear file:/tmp/app.haypile")]
pub(crate) struct Clear {
    #[command(flatten)]
    pub(crate) cache: Url,
}
