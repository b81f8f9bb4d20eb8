//! `haypile keys`

use std::io::{self, BufWriter, Write};

use anyhow::bail;

use super::walk::walk;
use crate::args::cache::Keys;
use crate::cache::OpenCache;
use crate::{dump, notation};

/// Executes `haypile keys`: lists the keys of a cache.
pub(crate) fn run(arguments: &Keys) -> anyhow::Result<()> {
    let cache = OpenCache::open_to_inspect(&arguments.cache)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let listed = walk(&**cache.store(), &arguments.selection, |key| {
        write_key(&mut out, key, arguments)?;
        Ok(true)
    });
    // The keys before an error are printed.
    out.flush()?;
    listed?;
    cache.end(false)
}

fn write_key(out: &mut impl Write, key: &[u8], arguments: &Keys) -> anyhow::Result<()> {
    match (arguments.raw, arguments.null) {
        (true, _) => write_bytes(out, key, b'\n'),
        (_, true) => write_bytes(out, key, b'\0'),
        _ if arguments.json => Ok(writeln!(out, "{}", dump::key(key)?)?),
        _ => Ok(writeln!(out, "{}", notation::escape(key))?),
    }
}

fn write_bytes(out: &mut impl Write, key: &[u8], end: u8) -> anyhow::Result<()> {
    if key.contains(&end) {
        let (option, other) = if end == 0 { ("--null", "") } else { ("--raw", " or with --null") };
        bail!(
            "the key '{}' contains the character that {option} prints after each key; list the \
             keys without {option}{other}",
            notation::escape(key)
        );
    }
    out.write_all(key)?;
    out.write_all(&[end])?;
    Ok(())
}
