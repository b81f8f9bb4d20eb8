//! Opens the caches that arguments name by their URLs.

use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::sync::Arc;

use haypile::url::{CacheUrl, Level, UrlError, ValueKind};
use haypile::{Durability, Registry, Store};

use crate::args::cache::Url;
use crate::location::cache_url;
use crate::output::note;

/// The open cache of a command that works on one cache.
///
/// Dropping it does not close the cache: a memory store with `persist=` saves itself when it is
/// dropped, and a command that only reads a store opened with a smaller size would lose entries.
pub(crate) struct OpenCache {
    store: ManuallyDrop<Arc<dyn Store>>,
    /// The warnings that have been printed.
    warned: RefCell<Vec<String>>,
    /// Whether written entries end with the command, because they are kept in memory alone.
    is_forgotten: bool,
}

impl OpenCache {
    /// Opens the cache that the user named on the command line.
    pub(crate) fn open(url: &Url) -> anyhow::Result<Self> {
        let registry = registry();
        let url = registry.resolve(&cache_url(&url.url)?)?;
        Self::open_url(&registry, &url)
    }

    /// Opens a cache for a command that only reads, and does not create a missing file.
    pub(crate) fn open_to_read(url: &Url) -> anyhow::Result<Self> {
        let registry = registry();
        let url = registry.resolve(&cache_url(&url.url)?)?;
        let levels = url.levels().iter().map(|level| read_only(&registry, level));
        let url = CacheUrl::new(levels.collect::<Result<_, _>>()?)?;
        Self::open_url(&registry, &url)
    }

    /// Opens a cache for a command that inspects it, and trusts nothing in a file that other users
    /// can write.
    pub(crate) fn open_to_inspect(url: &Url) -> anyhow::Result<Self> {
        let registry = registry();
        let url = registry.resolve(&cache_url(&url.url)?)?;
        let levels = url.levels().iter().map(|level| {
            if is_exposed(level) {
                note!(
                    "haypile: other users can write {}; the output has been verified against \
                    damage, but may come from a user that you do not trust",
                    level.path().display()
                );
                return with_mode(&registry, level, "copy");
            }
            read_only(&registry, level)
        });
        let url = CacheUrl::new(levels.collect::<Result<_, _>>()?)?;
        Self::open_url(&registry, &url)
    }

    /// Opens the cache and prints its warnings on standard error.
    fn open_url(registry: &Registry, url: &CacheUrl) -> anyhow::Result<Self> {
        let store = ManuallyDrop::new(registry.open_url(url)?);
        let is_forgotten =
            |level: &Level| level.scheme() == "memory" && level.option("persist").is_none();
        let is_forgotten = url.levels().iter().all(is_forgotten);
        let cache = Self { store, warned: RefCell::default(), is_forgotten };
        cache.warn();
        Ok(cache)
    }

    /// Returns the open cache that the command works on.
    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Ends a command's use of the cache: saves a cache with `persist=` if the command has changed
    /// it, and completes a recording (`record=`) in any case. Prints warnings that were not printed
    /// before.
    pub(crate) fn end(&self, has_changed: bool) -> anyhow::Result<()> {
        let ended =
            if has_changed { self.store.close() } else { self.store.flush(Durability::Visible) };
        self.warn();
        if has_changed && self.is_forgotten {
            note!(
                "haypile: this cache ends with the command, and with it what was written; file:PATH keeps it, and so does \
                 persist=PATH"
            );
        }
        Ok(ended?)
    }

    fn warn(&self) {
        let mut warned = self.warned.borrow_mut();
        for warning in self.store.warnings() {
            if !warned.contains(&warning) {
                note!("haypile: {warning}");
                warned.push(warning);
            }
        }
    }
}

/// Returns the registry of all URL schemes that the program can open: the engine's, and those of
/// cache servers.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::new();
    haypile_remote::register(&mut registry);
    registry
}

/// Whether opening the level would refuse its file because other users can write it.
#[cfg(target_os = "linux")]
fn is_exposed(level: &Level) -> bool {
    level.scheme() == "file"
        && ["mode", "allow_shared"].iter().all(|name| level.option(name).is_none())
        && haypile::file::FileStat::is_exposed(level.path())
}

#[cfg(not(target_os = "linux"))]
fn is_exposed(_: &Level) -> bool {
    false
}

/// Returns the level with `mode=ro`, if its scheme has this option and its URL has no mode.
fn read_only(registry: &Registry, level: &Level) -> Result<Level, UrlError> {
    let scheme = registry.schemes().find(|scheme| scheme.name == level.scheme());
    let mode = scheme.and_then(|scheme| scheme.option("mode")).map(|option| option.kind);
    match mode {
        Some(ValueKind::Choice(modes))
            if modes.contains(&"ro") && level.option("mode").is_none() =>
        {
            with_mode(registry, level, "ro")
        }
        _ => Ok(level.clone()),
    }
}

/// Returns the level with this mode, without the options that have no effect in it: the URL has them for commands that
/// write.
fn with_mode(registry: &Registry, level: &Level, mode: &str) -> Result<Level, UrlError> {
    let scheme = registry.schemes().find(|scheme| scheme.name == level.scheme());
    let is_idle = |name: &str| scheme.is_some_and(|scheme| scheme.is_idle(name, "mode", mode));
    let place = Level::new(level.scheme())?.with_server(level.server()).with_path(level.path())?;
    let options = level.options().filter(|(name, _)| !is_idle(name));
    let level = options
        .into_iter()
        .try_fold(place, |level, (name, value)| level.with_option(name, value))?;
    level.with_option("mode", mode)
}
