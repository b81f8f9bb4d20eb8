//! `haypile set` and `haypile add`

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::process::ExitCode;

use anyhow::{Context, bail};
use haypile::{SetOptions, Store};

use super::lease;
use crate::NEGATIVE;
use crate::args::cache::{Add, Set, WriteArguments};
use crate::cache::OpenCache;

/// Executes `haypile set`: writes a value.
pub(crate) fn run(arguments: &Set) -> anyhow::Result<ExitCode> {
    let options = match (arguments.add, arguments.replace, &arguments.lease) {
        (true, ..) => SetOptions::add(),
        (_, true, _) => SetOptions::replace(),
        (_, _, Some(path)) => SetOptions::leased(lease::read(path)?),
        _ => SetOptions::set(),
    };
    write(&arguments.write, options)
}

/// Executes `haypile add`: writes a value unless the key exists.
pub(crate) fn add(arguments: &Add) -> anyhow::Result<ExitCode> {
    write(&arguments.write, SetOptions::add())
}

fn write(arguments: &WriteArguments, options: SetOptions) -> anyhow::Result<ExitCode> {
    let key = arguments.form.read(&arguments.key)?;
    let cache = OpenCache::open(&arguments.cache)?;
    let value = value(&arguments.value, &**cache.store())?;
    let options = options.with_ttl(arguments.ttl.unwrap_or_default());
    let groups: Vec<&[u8]> =
        arguments.groups.iter().map(|group| group.as_encoded_bytes()).collect();
    let written = cache.store().set_in_groups(&key, &value, &options, &groups)?;
    let is_stored = written.is_stored();
    cache.end(is_stored)?;
    Ok(if is_stored { ExitCode::SUCCESS } else { ExitCode::from(NEGATIVE) })
}

/// Returns the value, which `-` reads from standard input, but never more than the store takes.
fn value<'a>(argument: &'a OsStr, store: &dyn Store) -> anyhow::Result<Cow<'a, [u8]>> {
    if argument != "-" {
        return Ok(argument.as_encoded_bytes().into());
    }
    let limit_bytes = store.limits().max_value_bytes;
    let mut value = Vec::new();
    let input = io::stdin().lock().take(limit_bytes.saturating_add(1));
    { input }.read_to_end(&mut value).context("standard input")?;
    if value.len() as u64 > limit_bytes {
        bail!(
            "standard input has more than {limit_bytes} bytes, the largest value of {}; the old value \
            stays; make the cache larger or split the value",
            store.describe()
        );
    }
    Ok(value.into())
}
