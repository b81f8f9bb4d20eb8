//! `haypile icons`: its commands, one file each.

mod lookup;
mod stat;
mod warm;

use std::path::PathBuf;
use std::process::ExitCode;

use haypile::Cache;
use haypile_icons::theme::is_installed;
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
        let url = cache_url().map(|url| url.to_string()).map_err(anyhow::Error::from);
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
    tell_of_missing_theme(&place.theme, &options.base);
    Ok((IconCache::with(&place.theme, cache, options), name))
}

/// Says so if a theme is in none of the folders: the icons found are those that every theme inherits.
fn tell_of_missing_theme(theme: &str, base: &[PathBuf]) {
    if is_installed(theme, base) {
        return;
    }
    let listed: Vec<_> = base.iter().map(|folder| folder.display().to_string()).collect();
    eprintln!(
        "warning: the theme '{theme}' is not in {}; icons are those of the theme hicolor, or have no theme",
        listed.join(", ")
    );
}
