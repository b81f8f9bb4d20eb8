//! `haypile icons`: its commands, one file each.

mod lookup;
mod stat;
mod warm;

use std::process::ExitCode;

use haypile::Cache;
use haypile_icons::{IconCache, IconCacheOptions, cache_url};

use crate::args::icons::{IconPlace, IconsCommand};

/// Runs one of the commands.
pub(crate) fn run(command: &IconsCommand) -> anyhow::Result<ExitCode> {
    match command {
        IconsCommand::Warm(arguments) => warm::run(arguments),
        IconsCommand::Lookup(arguments) => lookup::run(arguments),
        IconsCommand::Stat(arguments) => stat::run(arguments),
    }
}

/// Opens the icons of a theme, and returns what the cache is called. A cache that was named has to
/// open; without the user's own, icons are made each time, and a line says why.
fn open(place: &IconPlace) -> anyhow::Result<(IconCache, String)> {
    let (cache, name) = if let Some(url) = &place.cache {
        (Some(Cache::new(crate::cache::registry().open(url)?)), url.clone())
    } else {
        let url = cache_url().map_err(anyhow::Error::from);
        match url.and_then(|url| Ok((Cache::open(&url)?, url))) {
            Ok((cache, url)) => (Some(cache), url),
            Err(error) => {
                eprintln!("warning: icons are not cached: {error:#}");
                (None, "none".to_owned())
            }
        }
    };
    let mut options = IconCacheOptions::default();
    if !place.base.is_empty() {
        let absolute = place.base.iter().map(std::path::absolute);
        options.base = absolute.collect::<std::io::Result<_>>()?;
    }
    Ok((IconCache::with(&place.theme, cache, options), name))
}
