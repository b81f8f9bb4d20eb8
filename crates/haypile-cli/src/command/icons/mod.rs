//! `haypile icons`: its commands, one file each.

mod lookup;
mod stat;
mod warm;

use std::path::PathBuf;
use std::process::ExitCode;

use haypile::{Cache, OpenError};
use haypile_icons::theme::is_installed;
use haypile_icons::{IconCache, IconCacheOptions, open_cache};

use crate::args::icons::{IconPlace, IconsCommand};
use crate::output::note;

/// Executes one of the commands below `haypile icons`.
pub(crate) fn run(command: &IconsCommand) -> anyhow::Result<ExitCode> {
    match command {
        IconsCommand::Warm(arguments) => warm::run(arguments),
        IconsCommand::Lookup(arguments) => lookup::run(arguments),
        IconsCommand::Stat(arguments) => stat::run(arguments),
    }
}

/// Whether a command makes sense without a cache.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CacheNeed {
    /// The command is about the cache.
    Needed,
    /// The command is about icons, which are found without a cache.
    Useful,
}

/// Opens the icons of a theme, and returns the name of the cache. The user's own file is replaced if it cannot be used,
/// and without it icons are made each time: a line says so. A cache that was named is left as it is: without it, a
/// command that needs it fails, and another says why icons are not cached.
fn open(place: &IconPlace, need: CacheNeed) -> anyhow::Result<(IconCache, String)> {
    let uncached = |error: &dyn std::fmt::Display| {
        note!("warning: icons are not cached: {error}");
        (None, "none".to_owned())
    };
    let (cache, name) = if let Some(url) = &place.cache {
        match crate::cache::registry().open(url) {
            Ok(store) => (Some(Cache::new(store)), url.clone()),
            Err(error @ OpenError::Backend { .. }) if need == CacheNeed::Useful => uncached(&error),
            Err(error) => return Err(error.into()),
        }
    } else {
        match open_cache() {
            Ok(opened) => {
                if let Some(reason) = &opened.replaced {
                    let path = opened.url.levels()[0].path().display();
                    note!("warning: {path} was replaced by an empty cache of icons: {reason}");
                }
                (Some(opened.cache), opened.url.to_string())
            }
            Err(error) => uncached(&error),
        }
    };
    // What a script has changed a moment ago is found, and warmed.
    let mut options = IconCacheOptions { shares_checks: false, ..IconCacheOptions::default() };
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
    note!(
        "warning: the theme '{theme}' is not in {}; icons are those of the theme hicolor, or have no theme",
        listed.join(", ")
    );
}
