//! `haypile get`

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use super::lease;
use crate::args::cache::Get;
use crate::cache::OpenCache;
use crate::{NEGATIVE, dump, output};

/// Executes `haypile get`: prints the value of a key.
pub(crate) fn run(arguments: &Get) -> anyhow::Result<ExitCode> {
    let key = arguments.form.read(&arguments.key)?;
    // Only a store that is written to grants leases.
    let cache = match arguments.lease {
        None => OpenCache::open_to_read(&arguments.cache)?,
        Some(_) => OpenCache::open(&arguments.cache)?,
    };
    let value = cache.store().get_pinned(&key)?;
    if let (None, Some(path)) = (&value, &arguments.lease) {
        lease::write(path, cache.store().lease(&key)?)?;
    }
    cache.end(false)?;
    let Some(value) = value else { return Ok(ExitCode::from(NEGATIVE)) };
    if arguments.json {
        output::text(&format!("{}\n", dump::entry(&key, &value, value.hit())?))?;
    } else {
        print(&value)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the value; on a terminal, ends the line, so that the prompt stands on the next one.
fn print(value: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(value)?;
    if out.is_terminal() && !value.ends_with(b"\n") {
        out.write_all(b"\n")?;
    }
    out.flush()
}
