//! `haypile incr`

use std::process::ExitCode;

use haypile::{SetOptions, Store};

use crate::args::Delta;
use crate::args::cache::Incr;
use crate::cache::OpenCache;
use crate::{NEGATIVE, output};

/// Executes `haypile incr`: adds to a counter and prints it.
pub(crate) fn run(arguments: &Incr) -> anyhow::Result<ExitCode> {
    let key = arguments.form.read(&arguments.key)?;
    let cache = OpenCache::open(&arguments.cache)?;
    let number = count(&**cache.store(), &key, arguments)?;
    cache.end(number.is_some())?;
    let Some(number) = number else { return Ok(ExitCode::from(NEGATIVE)) };
    output::text(&format!("{number}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn count(store: &dyn Store, key: &[u8], arguments: &Incr) -> haypile::Result<Option<u64>> {
    loop {
        let number = match arguments.delta {
            Delta::Add(delta) => store.incr(key, delta)?,
            Delta::Subtract(delta) => store.decr(key, delta)?,
        };
        let (None, Some(initial)) = (number, arguments.initial) else { return Ok(number) };
        let options = SetOptions::add().with_ttl(arguments.ttl.unwrap_or_default());
        if store.set(key, initial.to_string().as_bytes(), &options)?.is_stored() {
            return Ok(Some(initial));
        }
        // Another process has created the counter in the meantime.
    }
}
